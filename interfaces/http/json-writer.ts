import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { TimeSlice } from '../../application/commands/time-slices.ts'
import { sendJsonText } from './answers.ts'
import { CallerGone } from './body.ts'

/** Elements of an array that become text at once, at the most. */
const ELEMENTS_AT_ONCE = 100
/** Characters of the elements of an array that make a piece, unless one element has more. */
const PIECE = 32 * 1024
/** Characters of an answer that go out at once, about; a shorter one goes out whole, with its length. */
const WRITTEN_AT_ONCE = 64 * 1024

/** JSON that is text already: it stands in an answer as it is, without being parsed and made into text again. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An object in an answer that the handler gives as {@link JsonText}. */
export const objectText = z
  .unknown()
  .refine((value) => value instanceof JsonText)
  .meta({ override: { type: 'object' } })

/**
 * The JSON text of a value, with arrays in pieces that are bounded. Joined it is what `JSON.stringify` gives, but for each
 * {@link JsonText}, which may be a member of the value, or of the elements of an array of it.
 */
export function* jsonPieces(value: unknown): Generator<string, void, void> {
  if (value instanceof JsonText) {
    yield value.text
  } else if (Array.isArray(value)) {
    yield* arrayPieces(value)
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

function* arrayPieces(elements: readonly unknown[]): Generator<string, void, void> {
  let piece = '['
  let count = 0
  for (const [index, element] of elements.entries()) {
    const holdsText = isPlainObject(element) && Object.values(element).some((one) => one instanceof JsonText)
    const text = holdsText ? [...jsonPieces(element)].join('') : (JSON.stringify(element) ?? 'null')
    if (count === ELEMENTS_AT_ONCE || (count > 0 && piece.length + text.length > PIECE)) {
      yield piece
      piece = ''
      count = 0
    }
    piece += index === 0 ? text : `,${text}`
    count += 1
  }
  yield piece
  yield ']'
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/**
 * Answers with JSON that comes in pieces. A long answer is written slice by slice, no faster than the
 * caller takes it, so that it neither holds up others nor stands in memory as a whole.
 * @param pieces where they are an array, a long answer says its length, too.
 * @returns its length in characters. @throws CallerGone when the caller leaves before the end.
 */
export async function sendJsonPieces(
  response: ServerResponse,
  status: number,
  pieces: Iterable<string>,
): Promise<number> {
  const slice = new TimeSlice()
  let text = ''
  let length = 0
  if (Array.isArray(pieces) && !response.headersSent) {
    response.setHeader(
      'Content-Length',
      pieces.reduce((bytes, piece) => bytes + Buffer.byteLength(piece), 0),
    )
  }
  for (const piece of pieces) {
    text += piece
    length += piece.length
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
  return length
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
