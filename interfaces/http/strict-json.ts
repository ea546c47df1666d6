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
  skipSpace,
  skipSpaceBack,
} from './json-bytes.ts'
import { findDuplicate, findRefused, isRefused, pathOf } from './json-faults.ts'

/** Levels of arrays and objects that a body may nest. */
export const MAX_DEPTH = 64
/** Values (scalars, arrays and objects) that a body may hold in all. */
export const MAX_VALUES = 2_000_000
/** Members that one object may have, far above what any request has a use for. */
export const MAX_MEMBERS = 10_000

/** Why a body was refused; `values`: it holds more than {@link MAX_VALUES} or {@link MAX_MEMBERS}. */
export type JsonFault = 'syntax' | 'duplicate_key' | 'depth' | 'encoding' | 'characters' | 'values'

export type ParsedJson =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false
      readonly kind: JsonFault
      /** One sentence that never quotes values of the body. */
      readonly message: string
      /** Where, for example `employees[3].first_name`; of duplicate keys and refused characters. */
      readonly path?: string
      /** What the body reads as nevertheless; of duplicate keys and refused characters. */
      readonly value?: unknown
    }

/** Bytes that are handed to `JSON.parse` at once, about. */
const SLICE_BYTES = 32 * 1024

/**
 * Parses a JSON body and refuses what different readers would read differently, or what cannot be
 * stored: invalid UTF-8, duplicate keys, more than {@link MAX_DEPTH} levels, NUL characters and lone
 * surrogates in strings or keys. Keys named `__proto__` are left out.
 */
export function parseJson(bytes: Buffer, sliceBytes = SLICE_BYTES): ParsedJson {
  const steps = new Parsing(bytes, sliceBytes).run()
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** {@link parseJson} for a body that may be large: others have their turn in between. */
export async function parseLargeJson(bytes: Buffer): Promise<ParsedJson> {
  return bytes.length <= SLICE_BYTES
    ? parseJson(bytes)
    : runInTimeSlices(new Parsing(bytes, SLICE_BYTES).run())
}

/** Ends the parsing; {@link Parsing.run} answers it. */
class Refusal {
  readonly kind: JsonFault
  readonly message: string

  constructor(kind: JsonFault, message: string) {
    this.kind = kind
    this.message = message
  }
}

type Container = unknown[] | Record<string, unknown>

/**
 * An array or object that is open at the scan's place. Most close within a slice and are parsed as
 * part of what is around them. One that outgrows the slice gets a value of its own, to which its
 * elements (or members) are added run by run.
 */
class Level {
  isArray = true
  /** Place of the opening bracket. */
  start = -1
  /** Where the elements begin that are not parsed yet. */
  from = 0
  /** What stands before `from`. */
  before: 'opening' | 'comma' | 'element' = 'opening'
  /** Place of the latest key, quotes included. */
  keyStart = -1
  keyEnd = -1
  commas = 0
  /** The elements so far; null until it outgrows a slice. */
  value: Container | null = null
  /** The key or index under which `value` stands in the level around it. */
  step: string | number = 0

  /** Starts over: there is one object per depth, since most levels are gone after a few bytes. */
  open(isArray: boolean, start: number): void {
    this.isArray = isArray
    this.start = start
    this.from = start + 1
    this.before = 'opening'
    this.keyStart = -1
    this.commas = 0
    this.value = null
  }
}

/** A stretch of the body that `JSON.parse` took at once. */
interface Run {
  /** The level whose elements it holds; null: it is the whole body. */
  readonly level: Level | null
  readonly from: number
  readonly until: number
  /** Index of its first element in an array. */
  readonly base: number
  readonly value: unknown
}

/**
 * One pass over the bytes that knows the level it is in before anything recursive sees the text, and
 * counts values and members. Whenever a slice is full, what it holds is parsed and added to the levels
 * that go beyond it. Time is linear in the bytes; what an object repeats is looked for only where
 * fewer members were parsed than counted, and no path is built without a fault.
 */
export class Parsing {
  readonly #bytes: Buffer
  readonly #sliceBytes: number
  /** The body as the only element of an array around it, and one level per depth; beyond `#depth` none is open. */
  readonly #levels: Level[] = [new Level()]
  #depth = 0
  /** Of the slice that is being taken: its runs, members counted and parsed, whether escapes are doubtful. */
  #runs: Run[] = []
  #counted = 0
  #parsed = 0
  #doubtful = false
  #fault: { readonly kind: 'duplicate_key' | 'characters'; readonly path: string } | null = null

  constructor(bytes: Buffer, sliceBytes: number) {
    this.#bytes = bytes
    this.#sliceBytes = sliceBytes
  }

  /** Yields after each slice. */
  *run(): Generator<void, ParsedJson, void> {
    if (this.#bytes.length === 0) return { ok: false, kind: 'syntax', message: 'The body is empty' }
    if (!isUtf8(this.#bytes)) {
      return { ok: false, kind: 'encoding', message: 'The body is not valid UTF-8' }
    }
    try {
      const value = yield* this.#scan()
      const fault = this.#fault
      return fault ? { ok: false, ...fault, message: messageOf(fault), value } : { ok: true, value }
    } catch (error) {
      if (error instanceof Refusal) return { ok: false, kind: error.kind, message: error.message }
      throw error
    }
  }

  *#scan(): Generator<void, unknown, void> {
    const bytes = this.#bytes
    const { length } = bytes
    const levels = this.#levels
    const root = levels[0]!
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
            if (bytes[at] === 0x75) this.#doubtful ||= isDoubtful(bytes, at + 1)
          }
        }
        stringEnd = at + 1
      } else if (byte === COMMA) {
        values += 1
        level.commas += 1
        if (values > MAX_VALUES) throw tooMany(`${MAX_VALUES} values`)
        if (!level.isArray && level.commas >= MAX_MEMBERS)
          throw tooMany(`${MAX_MEMBERS} members in one object`)
        // better between two rows than within one: a level that has a value is cut sooner
        if (at - sliceStart >= (level.value === null ? 2 : 1) * this.#sliceBytes) {
          this.#takeUpTo(at)
          sliceStart = at + 1
          yield
        }
      } else if (byte === COLON) {
        this.#counted += 1
        level.keyStart = stringStart
        level.keyEnd = stringEnd
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (this.#depth === MAX_DEPTH) {
          throw new Refusal('depth', `The body nests deeper than ${MAX_DEPTH} levels`)
        }
        this.#depth += 1
        levels[this.#depth] ??= new Level()
        level = levels[this.#depth]!
        level.open(byte === OPEN_BRACKET, at)
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (level === root || level.isArray !== (byte === CLOSE_BRACKET)) throw this.#syntaxAt(at)
        if (skipSpaceBack(bytes, level.start + 1, at) > level.start + 1) values += 1
        if (values > MAX_VALUES) throw tooMany(`${MAX_VALUES} values`)
        const outer = levels[this.#depth - 1]!
        if (level.value !== null) {
          this.#takeElements(level, at, 'end')
          this.#judge()
          outer.from = at + 1
          outer.before = 'element'
          sliceStart = at + 1
        }
        this.#depth -= 1
        level = outer
      }
    }
    if (level !== root) throw new Refusal('syntax', 'The body is not valid JSON: it ends too early')
    if (root.value === null) {
      const value = this.#parse({ level: null, from: 0, until: length, base: 0 }, '', '')
      this.#judge()
      return value
    }
    this.#takeElements(root, length, 'end')
    this.#judge()
    if (root.commas > 0) throw this.#syntaxAt(root.from)
    return (root.value as unknown[])[0]
  }

  /** Takes what is not parsed yet before a comma of the innermost level, which gets a value, and all around it. */
  #takeUpTo(comma: number): void {
    const levels = this.#levels
    const innermost = levels[this.#depth]!
    levels[0]!.value ??= []
    for (let depth = 0; depth < this.#depth; depth += 1) {
      const inner = levels[depth + 1]!
      if (inner.value === null) this.#takeBefore(levels[depth]!, inner)
    }
    this.#takeElements(innermost, comma, 'comma')
    innermost.from = comma + 1
    innermost.before = 'comma'
    this.#judge()
  }

  /** Takes the elements in front of an inner level that outgrows the slice, and adds that level's own value. */
  #takeBefore(outer: Level, inner: Level): void {
    inner.value = inner.isArray ? [] : {}
    if (outer.isArray) {
      this.#takeElements(outer, inner.start, 'element')
      inner.step = (outer.value as unknown[]).push(inner.value) - 1
      return
    }
    const { keyStart, keyEnd } = outer
    const colon = skipSpace(this.#bytes, keyEnd, inner.start)
    if (
      keyStart < outer.from ||
      this.#bytes[colon] !== COLON ||
      skipSpace(this.#bytes, colon + 1, inner.start) !== inner.start
    ) {
      throw this.#syntaxAt(inner.start)
    }
    this.#takeElements(outer, keyStart, 'element')
    const key = this.#read(keyStart, keyEnd, '', '') as string
    this.#parsed += 1
    inner.step = key
    if (this.#doubtful && isRefused(key)) this.#note('characters', outer, ['(key)'])
    this.#put(outer, key, inner.value)
  }

  /**
   * Parses the elements of a level that end at a place, and adds them to its value.
   * @param next what stands there: a comma, an element that is added apart, or the level's end.
   */
  #takeElements(level: Level, end: number, next: 'comma' | 'element' | 'end'): void {
    const bytes = this.#bytes
    let from = skipSpace(bytes, level.from, end)
    let until = skipSpaceBack(bytes, from, end)
    let { before } = level
    if (before === 'element' && from < until) {
      if (bytes[from] !== COMMA) throw this.#syntaxAt(from)
      from = skipSpace(bytes, from + 1, until)
      before = 'comma'
    }
    if (from === until) {
      const isRight =
        next === 'element'
          ? before !== 'element'
          : before === 'element' || (next === 'end' && before === 'opening')
      if (!isRight) throw this.#syntaxAt(from)
      return
    }
    if (next === 'element') {
      if (bytes[until - 1] !== COMMA) throw this.#syntaxAt(until)
      until = skipSpaceBack(bytes, from, until - 1)
      if (from === until) throw this.#syntaxAt(from)
    }
    if (level.isArray) {
      const elements = level.value as unknown[]
      const run = this.#parse({ level, from, until, base: elements.length }, '[', ']') as unknown[]
      for (const element of run) elements.push(element)
    } else {
      const run = this.#parse({ level, from, until, base: 0 }, '{', '}') as Record<string, unknown>
      for (const key of Object.keys(run)) this.#put(level, key, run[key])
    }
  }

  #put(level: Level, key: string, value: unknown): void {
    if (key === '__proto__') return
    const object = level.value as Record<string, unknown>
    if (Object.hasOwn(object, key)) this.#note('duplicate_key', level, [key])
    object[key] = value
  }

  #read(from: number, until: number, opening: string, closing: string): unknown {
    const text = this.#bytes.toString('utf8', from, until)
    try {
      return JSON.parse(`${opening}${text}${closing}`)
    } catch (error) {
      // the parser's own messages quote the body, which may be personal: only the place is taken over
      const at = /at position (\d+)/.exec(error instanceof Error ? error.message : '')
      throw at ? this.#syntaxAt(from, Number(at[1]) - opening.length) : new Refusal('syntax', NOT_JSON)
    }
  }

  #parse(run: Omit<Run, 'value'>, opening: string, closing: string): unknown {
    const value = this.#read(run.from, run.until, opening, closing)
    this.#parsed += countMembers(value)
    this.#runs.push({ ...run, value })
    return value
  }

  /** Ends a slice: looks for the repeated key where not all counted members came out, and for doubtful escapes. */
  #judge(): void {
    const isRepeated = this.#parsed !== this.#counted
    for (const run of this.#runs) {
      if (!isRepeated || this.#fault !== null) break
      const text = this.#bytes.toString('utf8', run.from, run.until)
      const inside = findDuplicate(run.level === null ? text : run.level.isArray ? `[${text}]` : `{${text}}`)
      if (inside !== null) this.#noteIn(run, 'duplicate_key', inside)
    }
    for (const run of this.#runs) {
      if (!this.#doubtful || this.#fault !== null) break
      const inside = findRefused(run.value)
      if (inside !== null) this.#noteIn(run, 'characters', inside)
    }
    this.#runs = []
    this.#counted = 0
    this.#parsed = 0
    this.#doubtful = false
  }

  #noteIn(run: Run, kind: 'duplicate_key' | 'characters', inside: (string | number)[]): void {
    const [first] = inside
    if (run.level?.isArray && typeof first === 'number') inside[0] = first + run.base
    this.#note(kind, run.level, inside)
  }

  #note(
    kind: 'duplicate_key' | 'characters',
    level: Level | null,
    inside: readonly (string | number)[],
  ): void {
    if (this.#fault !== null) return
    // neither the array around the body nor the place of the body in it are part of the path
    const around = level === null ? [] : this.#levels.slice(2, this.#levels.indexOf(level) + 1)
    this.#fault = { kind, path: pathOf([...around.map(({ step }) => step), ...inside]) }
  }

  /** @param from place in the bytes. @param characters after it. */
  #syntaxAt(from: number, characters = 0): Refusal {
    const before = this.#bytes.toString('utf8', 0, from).length
    return new Refusal('syntax', `${NOT_JSON} (at character ${before + characters})`)
  }
}

const NOT_JSON = 'The body is not valid JSON'

function tooMany(what: string): Refusal {
  return new Refusal('values', `The body holds more than ${what}`)
}

function messageOf({ kind, path }: { kind: 'duplicate_key' | 'characters'; path: string }): string {
  if (kind === 'duplicate_key') return `The key ${path} stands there twice`
  const where = path === '' ? 'The body' : path
  return `${where} holds a character that is refused (NUL or half of a surrogate pair)`
}

/** Members of all objects of a parsed tree; removes `__proto__` on the way. */
function countMembers(root: unknown): number {
  if (typeof root !== 'object' || root === null) return 0
  let members = 0
  const open: object[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) {
      for (const item of node) if (typeof item === 'object' && item !== null) open.push(item)
      continue
    }
    const record = node as Record<string, unknown>
    for (const key in record) {
      members += 1
      if (key === '__proto__') {
        members += countMembers(record[key])
        delete record[key]
        continue
      }
      const item = record[key]
      if (typeof item === 'object' && item !== null) open.push(item)
    }
  }
  return members
}
