import { isUtf8 } from 'node:buffer'
import { runInTimeSlices } from '../../../application/commands/time-slices.ts'
import { type JsonFault, JsonReader, Refusal } from './reader.ts'

/** Levels of arrays and objects that a body may nest. */
export const MAX_DEPTH = 64
/** Members of an object, and characters of a number, are far more than any request has a use for. */
const LIMITS = { depth: MAX_DEPTH, values: 2_000_000, members: 10_000, numberLength: 1_000 }

type ParsedJson =
  | {
      readonly ok: true
      readonly value: unknown
      /** Where keys named `__proto__` were left out and are not ignored, the first hundred; absent where there is none. */
      readonly leftOut?: readonly string[]
    }
  | {
      readonly ok: false
      readonly kind: JsonFault
      /** One sentence that never quotes values of the body. */
      readonly message: string
      /** Where, for example `employees[3].first_name`; of duplicate keys, refused characters and rounded numbers. */
      readonly path?: string
      /** What the body reads as nevertheless; of the same, but not of a number that is too long to be read. */
      readonly value?: unknown
    }

/** Characters that are read at once, about. */
const SLICE = 32 * 1024

/**
 * Parses a JSON body and refuses what different readers would read differently, or what cannot be stored: invalid UTF-8,
 * duplicate keys, more than {@link MAX_DEPTH} levels, NUL characters and lone surrogates in strings or keys, numbers within
 * the safe integers that reading would change, and any of more than 1,000 characters. Keys named `__proto__` are left out.
 * @param ignores whether nobody needs to know that the one at a path was left out.
 */
export function parseJson(bytes: Buffer, ignores?: (path: string) => boolean): ParsedJson {
  const step = parseInSlices(bytes, Infinity, ignores).next()
  return step.value as ParsedJson
}

/** {@link parseJson} for a body that may be large: others have their turn in between. */
export async function parseLargeJson(
  bytes: Buffer,
  ignores?: (path: string) => boolean,
): Promise<ParsedJson> {
  return bytes.length <= SLICE
    ? parseJson(bytes, ignores)
    : runInTimeSlices(parseInSlices(bytes, SLICE, ignores))
}

/**
 * {@link parseJson} step by step: yields after each slice of so many characters. Only that the bytes are UTF-8, and become one
 * text, is done at once: some milliseconds for the largest body that is taken.
 */
export function* parseInSlices(
  bytes: Buffer,
  slice: number,
  ignores?: (path: string) => boolean,
): Generator<void, ParsedJson, void> {
  if (bytes.length === 0) return { ok: false, kind: 'syntax', message: 'The body is empty' }
  if (!isUtf8(bytes)) return { ok: false, kind: 'encoding', message: notUtf8(bytes) }
  const reader = new JsonReader(bytes.toString('utf8'), LIMITS, ignores)
  try {
    while (!reader.read(slice)) yield
    const { value, fault, leftOut } = reader
    if (fault) return { ok: false, ...fault, message: messageOf(fault), value }
    return leftOut.length === 0 ? { ok: true, value } : { ok: true, value, leftOut }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { kind, message, path } = error
    return { ok: false, kind, message, ...(path !== undefined && { path }) }
  }
}

/** What says where the first character stands that is none in UTF-8. */
function notUtf8(bytes: Buffer): string {
  let from = 0
  while (from < bytes.length) {
    // up to where a character begins, so that none is cut
    let end = Math.min(from + SLICE, bytes.length)
    while (end < bytes.length && end > from + 1 && isContinuation(bytes[end])) end -= 1
    if (!isUtf8(bytes.subarray(from, end))) break
    from = end
  }
  for (let end = from; from < bytes.length; from = end) {
    do end += 1
    while (end - from < 4 && isContinuation(bytes[end]) && !isUtf8(bytes.subarray(from, end)))
    if (!isUtf8(bytes.subarray(from, end))) break
  }
  return `The body is not valid UTF-8: byte ${bytes[from]!.toString(16).padStart(2, '0')} at offset ${from}`
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

function messageOf({ kind, path }: NonNullable<JsonReader['fault']>): string {
  if (kind === 'duplicate_key') return `The key ${path} stands there twice`
  const where = path || 'The body'
  if (kind === 'numbers') return `${where} is a number that is not kept as it is written; send fewer digits`
  return `${where} holds a character that is refused (NUL or half of a surrogate pair)`
}
