import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'

/** Characters that are written at once, about. */
const SLICE = 256 * 1024

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

/** Answers with JSON in slices, between which others have their turn; for answers that hold {@link JsonText}. */
export async function sendJsonInSlices(
  response: ServerResponse,
  status: number,
  body: unknown,
): Promise<void> {
  const slices = await slicesOf(body)
  if (response.headersSent) return
  response.statusCode = status
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader(
    'Content-Length',
    slices.reduce((bytes, slice) => bytes + Buffer.byteLength(slice), 0),
  )
  for (const slice of slices) {
    if (response.destroyed) return
    response.write(slice)
    await nextTurn()
  }
  response.end()
}

async function slicesOf(body: unknown): Promise<readonly string[]> {
  const slices: string[] = []
  let slice = ''
  for (const piece of piecesOf(body)) {
    slice += piece
    if (slice.length < SLICE) continue
    slices.push(slice)
    slice = ''
    await nextTurn()
  }
  return [...slices, slice]
}

/** The JSON of a value of plain objects, arrays, texts, numbers and the like, piece by piece. */
export function* piecesOf(value: unknown): Generator<string, void, void> {
  if (value instanceof JsonText) {
    yield value.text
  } else if (Array.isArray(value)) {
    let before = '['
    for (const item of value) {
      yield before
      yield* piecesOf(item ?? null)
      before = ','
    }
    yield before === '[' ? '[]' : ']'
  } else if (typeof value === 'object' && value !== null) {
    let before = '{'
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      yield `${before}${JSON.stringify(name)}:`
      yield* piecesOf(member)
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  } else {
    yield JSON.stringify(value)
  }
}
