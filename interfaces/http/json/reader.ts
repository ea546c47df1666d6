import { isRounded, MAX_NUMBER_LENGTH } from './numbers.ts'

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

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y
const LITERALS = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const
const LONE_SURROGATE = /\p{Surrogate}/u
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
  #value: unknown
  /** The first fault that leaves the rest readable. */
  fault: { readonly kind: PlacedFault; readonly path: string } | null = null
  /** Where the first key stands that was left out. */
  leftOut: string | null = null

  constructor(text: string, limits: JsonLimits) {
    this.#text = text
    this.#limits = limits
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
        if (!this.#isEmptyAfterOpening(code === OPEN_BRACKET)) continue
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
    if (key === LEFT_OUT) this.leftOut ??= this.#path()
    if (this.#next() !== COLON) throw this.#syntax()
    this.#at += 1
    this.#next()
  }

  #string(isKey: boolean): string {
    const text = this.#text
    const from = this.#at
    let isEscaped = false
    let at = from + 1
    for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
      this.#at = at
      if (code === BACKSLASH) {
        at = endOf(ESCAPE, text, at)
        isEscaped = true
      } else at = code >= 0x20 ? at + 1 : 0
      if (at === 0) throw this.#syntax()
    }
    this.#at = at + 1
    // names of members are copied where they are stored
    if (!isEscaped && (isKey || at - from <= VIEWED)) return text.slice(from + 1, at)
    const value = JSON.parse(text.slice(from, at + 1)) as string
    if (isEscaped && (value.includes('\0') || LONE_SURROGATE.test(value))) {
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
    if (end - this.#at > MAX_NUMBER_LENGTH) throw tooLong(this.#path())
    const number = this.#text.slice(this.#at, end)
    if (isRounded(number)) this.#note('numbers')
    this.#at = end
    return Number(number)
  }

  #note(kind: PlacedFault, last?: string): void {
    this.fault ??= { kind, path: this.#path(last) }
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

  #syntax(): Refusal {
    const isOver = this.#at >= this.#text.length
    const where = isOver ? ': it ends too early' : ` (at character ${this.#at})`
    return new Refusal('syntax', `The body is not valid JSON${where}`)
  }
}

/** The place behind what a sticky expression matches at a place; 0 when it does not match. */
function endOf(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at
  expression.test(text)
  return expression.lastIndex
}

function tooMany(what: string): Refusal {
  return new Refusal('values', `The body holds more than ${what}`)
}

function tooLong(path: string): Refusal {
  const what = `is a number of more than ${MAX_NUMBER_LENGTH} characters; send fewer digits`
  return new Refusal('numbers', `${path || 'The body'} ${what}`, path)
}
