import { isRounded, SHORT } from './numbers.ts'

/** What a value or key is refused for; `numbers`: reading changes them. */
type PlacedFault = 'duplicate_key' | 'characters' | 'numbers'

/** `values`: the body holds more values, or an object in it more members, than may be. */
export type JsonFault = PlacedFault | 'syntax' | 'depth' | 'encoding' | 'values'

/** What a text may hold at the most. */
export interface JsonLimits {
  /** Levels of arrays and objects. */
  readonly depth: number
  /** Scalars, arrays and objects in all. */
  readonly values: number
  /** Of one object. */
  readonly members: number
  /** Characters of a number. */
  readonly numberLength: number
}

/** Ends the reading of a text. */
export class Refusal {
  readonly kind: JsonFault
  /** One sentence that never quotes the text. */
  readonly message: string
  /** Where, of a number that is too long. */
  readonly path: string | undefined

  constructor(kind: JsonFault, message: string, path?: string) {
    this.kind = kind
    this.message = message
    this.path = path
  }
}

/** An array or object that is open. */
interface Level {
  readonly elements: unknown[] | null
  readonly object: Record<string, unknown>
  /** The present key of an object. */
  key: string
  members: number
  leavesOut: boolean
}

/** The key that is left out: a copy of an object would take what it holds for more than a member. */
const LEFT_OUT = '__proto__'
const MOST_LEFT_OUT = 100

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const COLON = 0x3a
const LARGE_E = 0x45
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const SMALL_E = 0x65
const SMALL_U = 0x75
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const ESCAPED = /\\["\\]/g
const BAD_ESCAPE = /\\(?![/bfnrt]|u[\da-fA-F]{4})/
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y
const LITERALS = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const
const LONE_SURROGATE = /\p{Surrogate}/u
/** Characters of objects that are read at once, about. */
const AT_ONCE = 16 * 1024
/** Levels of arrays and objects that are read at once; what is looked at in vain is looked at as many times. */
const LEVELS_AT_ONCE = 4
const OTHER = [0, 0] as const
/** Characters from which on the engine keeps a slice as a view, which would hold the whole text in memory. */
const VIEWED = 13

/**
 * Reads a JSON text as `JSON.parse` does, bit by bit, and takes note of where an object repeats a key, a text holds what
 * cannot be stored, or reading changes a number.
 */
export class JsonReader {
  readonly #text: string
  readonly #limits: JsonLimits
  /** From the outside in. */
  readonly #levels: Level[] = []
  #at = 0
  #values = 0
  /** Up to here objects are not read at once. */
  #closelyUntil = 0
  #value: unknown
  /** The first fault that leaves the rest readable. */
  fault: { readonly kind: PlacedFault; readonly path: string } | null = null
  readonly #ignores: (path: string) => boolean
  /** Where keys stand that were left out and are not ignored, the first {@link MOST_LEFT_OUT}. */
  readonly leftOut: string[] = []

  /** @param ignores whether nobody needs to know that the key at a path was left out. */
  constructor(text: string, limits: JsonLimits, ignores: (path: string) => boolean = () => false) {
    this.#text = text
    this.#limits = limits
    this.#ignores = ignores
  }

  /** What the text says; of one that was not read to its end, the outermost array or object as far as it was read. */
  get value(): unknown {
    const [outermost] = this.#levels
    return outermost ? (outermost.elements ?? outermost.object) : this.#value
  }

  /** Reads on for about so many characters. @returns whether that was the end. @throws Refusal */
  read(characters: number): boolean {
    const limit = this.#at + characters
    while (this.#at < limit) {
      const code = this.#next()
      if (++this.#values > this.#limits.values) throw tooMany(`${this.#limits.values} values`)
      if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        const isRead = code === OPEN_BRACE && this.#plainObjects()
        if (!isRead && !this.#isEmptyAfterOpening(code === OPEN_BRACKET)) continue
      } else this.#put(code === QUOTE ? this.#string(false) : this.#scalar())
      if (this.#isAtEnd()) return true
    }
    return false
  }

  /** The next character that is no white space; NaN at the end. */
  #next(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code
      this.#at += 1
    }
  }

  /** Has `JSON.parse` read an object with those behind it in its array. @returns false where it must be looked at closely. */
  #plainObjects(): boolean {
    if (this.#at < this.#closelyUntil || this.#levels.length + LEVELS_AT_ONCE > this.#limits.depth)
      return false
    const text = this.#text
    const isInArray = !!this.#levels.at(-1)?.elements
    let members = 0
    let end = this.#at - 1
    do {
      const [next, count] = plainObjectAt(text, end + 1)
      if (next === 0) break
      members += count
      end = next
    } while (isInArray && end - this.#at < AT_ONCE && text.startsWith(',{', end))
    if (end < this.#at) return false
    const objects = parsed(`[${text.slice(this.#at, end)}]`) as unknown[] | undefined
    const found = { values: this.#values - 1, members: 0, isRead: members <= this.#limits.members }
    for (const object of objects ?? []) count(object, found)
    // a key that stands there twice counts once
    if (!objects || !found.isRead || found.members !== members || found.values > this.#limits.values) {
      this.#closelyUntil = end
      return false
    }
    for (const object of objects) this.#put(object)
    this.#values = found.values
    this.#at = end
    return true
  }

  #isEmptyAfterOpening(isArray: boolean): boolean {
    const { depth } = this.#limits
    if (this.#levels.length === depth) {
      throw new Refusal('depth', `The body nests deeper than ${depth} levels`)
    }
    const level = { elements: isArray ? [] : null, object: {}, key: '', members: 0, leavesOut: false }
    this.#levels.push(level)
    this.#at += 1
    if (this.#next() === (isArray ? CLOSE_BRACKET : CLOSE_BRACE)) return true
    if (!isArray) this.#key(level)
    return false
  }

  /** Goes on behind a value: to the next one, or out of what ends there. @returns whether the text ends. */
  #isAtEnd(): boolean {
    for (;;) {
      const code = this.#next()
      const level = this.#levels.at(-1)
      if (!level) {
        if (this.#at < this.#text.length) throw this.#syntax()
        return true
      }
      if (code === COMMA) {
        this.#at += 1
        this.#next()
        if (!level.elements) this.#key(level)
        return false
      }
      if (code !== (level.elements ? CLOSE_BRACKET : CLOSE_BRACE)) throw this.#syntax()
      this.#at += 1
      this.#levels.pop()
      this.#put(level.elements ?? level.object)
    }
  }

  #put(value: unknown): void {
    const level = this.#levels.at(-1)
    if (!level) this.#value = value
    else if (level.elements) level.elements.push(value)
    else if (level.key === LEFT_OUT) level.leavesOut = true
    else level.object[level.key] = value
  }

  #key(level: Level): void {
    if (this.#text.charCodeAt(this.#at) !== QUOTE) throw this.#syntax()
    const key = this.#string(true)
    level.key = key
    if (++level.members > this.#limits.members) {
      throw tooMany(`${this.#limits.members} members in one object`)
    }
    if (key === LEFT_OUT ? level.leavesOut : Object.hasOwn(level.object, key)) this.#note('duplicate_key')
    if (key === LEFT_OUT) this.#noteLeftOut()
    if (this.#next() !== COLON) throw this.#syntax()
    this.#at += 1
    this.#next()
  }

  #string(isKey: boolean): string {
    const text = this.#text
    const from = this.#at
    let isEscaped = false
    let isDoubtful = false
    let at = from + 1
    for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
      if (code === BACKSLASH) {
        isEscaped = true
        isDoubtful ||= text.charCodeAt(at + 1) === SMALL_U
        at += 2
      } else if (code >= 0x20) at += 1
      else throw this.#syntax(at)
    }
    this.#at = at + 1
    // names of members are copied where they are stored
    if (!isEscaped && (isKey || at - from <= VIEWED)) return text.slice(from + 1, at)
    const value = parsed(text.slice(from, at + 1)) as string | undefined
    if (value === undefined) throw this.#syntax(from + badEscapeIn(text.slice(from, at)))
    if (isDoubtful && (value.includes('\0') || LONE_SURROGATE.test(value))) {
      this.#note('characters', isKey ? '(key)' : undefined)
    }
    return value
  }

  #scalar(): number | boolean | null {
    const end = endOf(NUMBER, this.#text, this.#at)
    if (end === 0) {
      for (const [word, value] of LITERALS) {
        if (!this.#text.startsWith(word, this.#at)) continue
        this.#at += word.length
        return value
      }
      throw this.#syntax()
    }
    const { numberLength } = this.#limits
    if (end - this.#at > numberLength) throw tooLong(this.#path(), numberLength)
    const number = this.#text.slice(this.#at, end)
    if (isRounded(number)) this.#note('numbers')
    this.#at = end
    return Number(number)
  }

  #note(kind: PlacedFault, last?: string): void {
    this.fault ??= { kind, path: this.#path(last) }
  }

  #noteLeftOut(): void {
    if (this.leftOut.length === MOST_LEFT_OUT) return
    const path = this.#path()
    if (!this.#ignores(path)) this.leftOut.push(path)
  }

  /** `employees[3].first_name`, of the value that is being read; long keys are shortened. */
  #path(last?: string): string {
    let path = ''
    for (const level of this.#levels) {
      const isLast = level === this.#levels.at(-1)
      const key = isLast && last !== undefined ? last : level.key
      if (level.elements) path += `[${level.elements.length}]`
      else path += `${path === '' ? '' : '.'}${key.length > 60 ? `${key.slice(0, 59)}…` : key}`
    }
    return path
  }

  #syntax(at = this.#at): Refusal {
    const where = at >= this.#text.length ? ': it ends too early' : ` (at character ${at})`
    return new Refusal('syntax', `The body is not valid JSON${where}`)
  }
}

/**
 * Where an object ends and how many members it and those in it have, of one without a character by its number, and without a
 * number so long that reading might change it; 0 where it is another one, long, or deep. What JSON is, is not judged here.
 */
function plainObjectAt(text: string, from: number): readonly [end: number, members: number] {
  let members = 0
  let levels = 0
  for (let at = from; at - from < AT_ONCE; at += 1) {
    let code = text.charCodeAt(at)
    if (code === QUOTE) {
      do {
        at += 1
        code = text.charCodeAt(at)
        if (code === BACKSLASH) {
          at += 1
          if (text.charCodeAt(at) === SMALL_U) return OTHER
        } else if (Number.isNaN(code)) return OTHER
      } while (code !== QUOTE)
    } else if (code === COLON) members += 1
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      levels -= 1
      if (levels === 0) return [at + 1, members]
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      levels += 1
      if (levels > LEVELS_AT_ONCE) return OTHER
    } else if (code === MINUS || isDigit(code)) {
      const number = at
      do {
        at += 1
        code = text.charCodeAt(at)
      } while (isDigit(code) || code === POINT)
      if (at - number > SHORT || code === SMALL_E || code === LARGE_E) return OTHER
      at -= 1
    } else if (Number.isNaN(code)) return OTHER
  }
  return OTHER
}

/** Counts a value, what is in it, and the members of its objects. */
function count(value: unknown, found: { values: number; members: number; isRead: boolean }): void {
  found.values += 1
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const element of value) count(element, found)
    return
  }
  for (const key in value) {
    found.members += 1
    if (key === LEFT_OUT) found.isRead = false
    count((value as Record<string, unknown>)[key], found)
  }
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** The place behind what a sticky expression matches at a place; 0 when it does not match. */
function endOf(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at
  expression.test(text)
  return expression.lastIndex
}

/** What `JSON.parse` reads; undefined where it refuses. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function badEscapeIn(text: string): number {
  return text.replace(ESCAPED, '__').search(BAD_ESCAPE)
}

function tooMany(what: string): Refusal {
  return new Refusal('values', `The body holds more than ${what}`)
}

function tooLong(path: string, length: number): Refusal {
  const what = `is a number of more than ${length} characters; send fewer digits`
  return new Refusal('numbers', `${path || 'The body'} ${what}`, path)
}
