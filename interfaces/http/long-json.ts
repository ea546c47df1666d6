import type { ServerResponse } from 'node:http'
import { TimeSlice } from '../../application/time-slices.ts'
import { sendJsonText } from './answers.ts'
import { CallerGone } from './body.ts'

/** Elements of a long array that become text at once. */
const ELEMENTS_AT_ONCE = 100
/** Characters of an answer that go out at once, about; a shorter one goes out whole, with its length. */
const WRITTEN_AT_ONCE = 64 * 1024

/** The JSON text of a value, with long arrays in pieces. Joined it is what `JSON.stringify` gives. */
export function* jsonPieces(value: unknown): Generator<string, void, void> {
  if (Array.isArray(value) && value.length > ELEMENTS_AT_ONCE) {
    for (let from = 0; from < value.length; from += ELEMENTS_AT_ONCE) {
      const some = JSON.stringify(value.slice(from, from + ELEMENTS_AT_ONCE))
      yield `${from === 0 ? '[' : ','}${some.slice(1, -1)}`
    }
    yield ']'
  } else if (isPlainObject(value)) {
    let before = '{'
    for (const key of Object.keys(value)) {
      const member = value[key]
      if (member === undefined) continue
      yield `${before}${JSON.stringify(key)}:`
      yield* jsonPieces(member)
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  } else {
    yield JSON.stringify(value)
  }
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/**
 * Answers with JSON that comes in pieces. A long answer is written slice by slice, no faster than the
 * caller takes it, so that it neither holds up others nor stands in memory as a whole.
 * @throws CallerGone when the caller leaves before the end.
 */
export async function sendJsonPieces(
  response: ServerResponse,
  status: number,
  pieces: Iterable<string>,
): Promise<void> {
  const slice = new TimeSlice()
  let text = ''
  for (const piece of pieces) {
    text += piece
    if (text.length < WRITTEN_AT_ONCE) continue
    if (!response.headersSent) {
      response.statusCode = status
      response.setHeader('Content-Type', 'application/json; charset=utf-8')
    }
    const isTaken = response.write(text)
    text = ''
    if (!isTaken) await drained(response)
    await slice.over()
  }
  if (response.headersSent) response.end(text)
  else sendJsonText(response, status, text)
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (done: () => void) => {
      response.removeListener('drain', onDrain)
      response.removeListener('close', onClose)
      done()
    }
    const onDrain = () => settle(resolve)
    const onClose = () => settle(() => reject(new CallerGone()))
    if (response.destroyed) reject(new CallerGone())
    response.once('drain', onDrain)
    response.once('close', onClose)
  })
}
