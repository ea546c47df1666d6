import { isUtf8 } from 'node:buffer'
import { runInTimeSlices } from '../../application/time-slices.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isDoubtful,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpaceBack,
} from './json-bytes.ts'
import { type JsonFault, notJson, Refusal, syntaxAt } from './json-faults.ts'
import { beginsNumber, endOfNumber, isRoundedAt, MAX_NUMBER_LENGTH } from './json-numbers.ts'
import { Slices } from './json-slices.ts'

/** Levels of arrays and objects that a body may nest. */
export const MAX_DEPTH = 64
/** Values (scalars, arrays and objects) that a body may hold in all. */
const MAX_VALUES = 2_000_000
/** Members that one object may have, far above what any request has a use for. */
const MAX_MEMBERS = 10_000

type ParsedJson =
  | {
      readonly ok: true
      readonly value: unknown
      /** Where a key named `__proto__` was left out, the first of them; absent where there is none. */
      readonly leftOut?: string
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

/** Bytes that are handed to `JSON.parse` at once, about. */
const SLICE_BYTES = 32 * 1024

/**
 * Parses a JSON body and refuses what different readers would read differently, or what cannot be
 * stored: invalid UTF-8, duplicate keys, more than {@link MAX_DEPTH} levels, NUL characters and lone
 * surrogates in strings or keys, numbers within the safe integers that reading would change, and any of more than
 * {@link MAX_NUMBER_LENGTH} characters. Keys named `__proto__` are left out.
 */
export function parseJson(bytes: Buffer, sliceBytes = SLICE_BYTES): ParsedJson {
  const steps = parseInSlices(bytes, sliceBytes)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** {@link parseJson} for a body that may be large: others have their turn in between. */
export async function parseLargeJson(bytes: Buffer): Promise<ParsedJson> {
  return bytes.length <= SLICE_BYTES ? parseJson(bytes) : runInTimeSlices(parseInSlices(bytes, SLICE_BYTES))
}

/** {@link parseJson} step by step: yields after each slice. */
export function* parseInSlices(bytes: Buffer, sliceBytes: number): Generator<void, ParsedJson, void> {
  if (bytes.length === 0) return { ok: false, kind: 'syntax', message: 'The body is empty' }
  if (!isUtf8(bytes)) return { ok: false, kind: 'encoding', message: notUtf8(bytes) }
  const slices = new Slices(bytes)
  try {
    const value = yield* scan(bytes, sliceBytes, slices)
    const { fault, leftOut } = slices
    if (fault) return { ok: false, ...fault, message: messageOf(fault), value }
    return leftOut === null ? { ok: true, value } : { ok: true, value, leftOut }
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
    let end = Math.min(from + SLICE_BYTES, bytes.length)
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

/**
 * One pass over the bytes that knows the level it is in before anything recursive sees the text, and counts values and
 * members. Time is linear in the bytes.
 */
function* scan(bytes: Buffer, sliceBytes: number, slices: Slices): Generator<void, unknown, void> {
  const { length } = bytes
  const { root } = slices
  let level = root
  let values = 1
  let sliceStart = 0
  let stringStart = -1
  let stringEnd = -1
  for (let at = 0; at < length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      stringStart = at
      for (at += 1; at < length; at += 1) {
        const inside = bytes[at]
        if (inside === QUOTE) break
        if (inside === BACKSLASH) {
          at += 1
          if (bytes[at] === 0x75) slices.doubtful ||= isDoubtful(bytes, at + 1)
        }
      }
      stringEnd = at + 1
    } else if (byte === COMMA) {
      values += 1
      level.commas += 1
      if (values > MAX_VALUES) throw tooMany(`${MAX_VALUES} values`)
      if (!level.isArray && level.commas >= MAX_MEMBERS) throw tooMany(`${MAX_MEMBERS} members in one object`)
      // better between two rows than within one: a level that has a value is cut sooner
      if (at - sliceStart >= (level.value === null ? 2 : 1) * sliceBytes) {
        slices.takeUpTo(at)
        sliceStart = at + 1
        yield
      }
    } else if (byte === COLON) {
      slices.counted += 1
      level.keyStart = stringStart
      level.keyEnd = stringEnd
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (slices.depth === MAX_DEPTH) {
        throw new Refusal('depth', `The body nests deeper than ${MAX_DEPTH} levels`)
      }
      level = slices.open(byte === OPEN_BRACKET, at)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (level === root || level.isArray !== (byte === CLOSE_BRACKET)) throw syntaxAt(bytes, at)
      if (skipSpaceBack(bytes, level.start + 1, at) > level.start + 1) values += 1
      if (values > MAX_VALUES) throw tooMany(`${MAX_VALUES} values`)
      if (level.value !== null) sliceStart = at + 1
      level = slices.close(at)
    } else if (beginsNumber(byte!)) {
      const end = endOfNumber(bytes, at)
      // before anything reads it: that would hold up others, since no slice ends within a number
      if (end - at > MAX_NUMBER_LENGTH) {
        throw isValueAt(bytes, at, level.isArray) ? tooLong(slices.pathAt(at)) : syntaxAt(bytes, at)
      }
      slices.rounded ||= isRoundedAt(bytes, at, end)
      at = end - 1
    }
  }
  if (level !== root) throw notJson(': it ends too early')
  return slices.end()
}

/** Whether a value may begin at a place, by what stands before it. */
function isValueAt(bytes: Buffer, at: number, isInArray: boolean): boolean {
  const end = skipSpaceBack(bytes, 0, at)
  const before = bytes[end - 1]
  return end === 0 || before === COLON || before === OPEN_BRACKET || (before === COMMA && isInArray)
}

function tooMany(what: string): Refusal {
  return new Refusal('values', `The body holds more than ${what}`)
}

function tooLong(path: string): Refusal {
  const what = `is a number of more than ${MAX_NUMBER_LENGTH} characters; send fewer digits`
  return new Refusal('numbers', `${placeOf(path)} ${what}`, path)
}

function placeOf(path: string): string {
  return path === '' ? 'The body' : path
}

function messageOf({ kind, path }: NonNullable<Slices['fault']>): string {
  if (kind === 'duplicate_key') return `The key ${path} stands there twice`
  const where = placeOf(path)
  if (kind === 'numbers') return `${where} is a number that is not kept as it is written; send fewer digits`
  return `${where} holds a character that is refused (NUL or half of a surrogate pair)`
}
