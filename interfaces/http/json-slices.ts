import { COLON, COMMA, skipSpace, skipSpaceBack } from './json-bytes.ts'
import {
  findInText,
  findKey,
  findRefused,
  isRefused,
  notJson,
  type PlacedFault,
  pathOf,
  syntaxAt,
} from './json-faults.ts'

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
 * Parses a body slice by slice, while a scan goes ahead of it that knows the levels: whenever the scan says that a slice
 * is full, what it holds is parsed and added to the levels that go beyond it. What an object repeats is looked for only
 * where fewer members were parsed than counted, and no path is built without a fault.
 */
export class Slices {
  readonly #bytes: Buffer
  /** The body as the only element of an array around it, and one level per depth; beyond `depth` none is open. */
  readonly #levels: Level[] = [new Level()]
  #depth = 0
  /** Members that the scan has counted in this slice. */
  counted = 0
  /** Whether the scan has met escapes in this slice that may stand for refused characters. */
  doubtful = false
  /** Whether the scan has met a number in this slice that reading changes. */
  rounded = false
  /** Where the first repeated key, refused character or such number stands. */
  fault: { readonly kind: PlacedFault; readonly path: string } | null = null
  /** Where the first key stands that was left out. */
  leftOut: string | null = null
  #runs: Run[] = []
  #parsed = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** How many levels are open in the body. */
  get depth(): number {
    return this.#depth
  }

  /** The array around the body. */
  get root(): Level {
    return this.#levels[0]!
  }

  /** Opens a level. @returns it. */
  open(isArray: boolean, at: number): Level {
    this.#depth += 1
    this.#levels[this.#depth] ??= new Level()
    const level = this.#levels[this.#depth]!
    level.open(isArray, at)
    return level
  }

  /** Closes the innermost level, with its slice where it has outgrown one. @returns the level around it. */
  close(at: number): Level {
    const level = this.#levels[this.#depth]!
    const outer = this.#levels[this.#depth - 1]!
    if (level.value !== null) {
      this.#takeElements(level, at, 'end')
      this.#judge()
      outer.from = at + 1
      outer.before = 'element'
    }
    this.#depth -= 1
    return outer
  }

  /** The path of the value that the scan has come to. */
  pathAt(at: number): string {
    const around = this.#levels.slice(1, this.#depth + 1)
    return pathOf(
      around.map(({ isArray, commas, keyStart, keyEnd }) => {
        if (isArray) return commas
        if (keyStart < 0) throw syntaxAt(this.#bytes, at)
        return this.#read(keyStart, keyEnd, '', '') as string
      }),
    )
  }

  /** Takes the rest of the body. @returns its value. */
  end(): unknown {
    const { root } = this
    const { length } = this.#bytes
    if (root.value === null) {
      const value = this.#parse({ level: null, from: 0, until: length, base: 0 }, '', '')
      this.#judge()
      return value
    }
    this.#takeElements(root, length, 'end')
    this.#judge()
    if (root.commas > 0) throw syntaxAt(this.#bytes, root.from)
    return (root.value as unknown[])[0]
  }

  /** Takes what is not parsed yet before a comma of the innermost level, which gets a value, and all around it. */
  takeUpTo(comma: number): void {
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
      throw syntaxAt(this.#bytes, inner.start)
    }
    this.#takeElements(outer, keyStart, 'element')
    const key = this.#read(keyStart, keyEnd, '', '') as string
    this.#parsed += 1
    inner.step = key
    if (this.doubtful && isRefused(key)) this.#note('characters', outer, ['(key)'])
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
      if (bytes[from] !== COMMA) throw syntaxAt(bytes, from)
      from = skipSpace(bytes, from + 1, until)
      before = 'comma'
    }
    if (from === until) {
      const isRight =
        next === 'element'
          ? before !== 'element'
          : before === 'element' || (next === 'end' && before === 'opening')
      if (!isRight) throw syntaxAt(bytes, from)
      return
    }
    if (next === 'element') {
      if (bytes[until - 1] !== COMMA) throw syntaxAt(bytes, until)
      until = skipSpaceBack(bytes, from, until - 1)
      if (from === until) throw syntaxAt(bytes, from)
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
    if (key === LEFT_OUT) {
      this.leftOut ??= this.#pathOf(level, [key])
      return
    }
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
      throw at ? syntaxAt(this.#bytes, from, Number(at[1]) - opening.length) : notJson()
    }
  }

  #parse(run: Omit<Run, 'value'>, opening: string, closing: string): unknown {
    const value = this.#read(run.from, run.until, opening, closing)
    const whole = { ...run, value }
    this.#parsed += countMembers(value, () => {
      this.leftOut ??= this.#pathIn(whole, findKey(value, LEFT_OUT)!)
    })
    this.#runs.push(whole)
    return value
  }

  /**
   * Ends a slice: looks for the repeated key where not all counted members came out, for the number where one was
   * rounded, and for doubtful escapes.
   */
  #judge(): void {
    const isAtFault = this.#parsed !== this.counted || this.rounded
    for (const run of this.#runs) {
      if (!isAtFault || this.fault !== null) break
      const text = this.#bytes.toString('utf8', run.from, run.until)
      const found = findInText(run.level === null ? text : run.level.isArray ? `[${text}]` : `{${text}}`)
      if (found !== null) this.#noteIn(run, found.kind, found.steps)
    }
    for (const run of this.#runs) {
      if (!this.doubtful || this.fault !== null) break
      const inside = findRefused(run.value)
      if (inside !== null) this.#noteIn(run, 'characters', inside)
    }
    this.#runs = []
    this.counted = 0
    this.#parsed = 0
    this.doubtful = false
    this.rounded = false
  }

  #noteIn(run: Run, kind: PlacedFault, inside: readonly (string | number)[]): void {
    this.fault ??= { kind, path: this.#pathIn(run, inside) }
  }

  #note(kind: PlacedFault, level: Level | null, inside: readonly (string | number)[]): void {
    this.fault ??= { kind, path: this.#pathOf(level, inside) }
  }

  #pathIn({ level, base }: Run, inside: readonly (string | number)[]): string {
    const [first, ...rest] = inside
    return this.#pathOf(level, level?.isArray && typeof first === 'number' ? [first + base, ...rest] : inside)
  }

  #pathOf(level: Level | null, inside: readonly (string | number)[]): string {
    // neither the array around the body nor the place of the body in it are part of the path
    const around = level === null ? [] : this.#levels.slice(2, this.#levels.indexOf(level) + 1)
    return pathOf([...around.map(({ step }) => step), ...inside])
  }
}

/** The key that is left out: a copy of an object would take what it holds for more than a member. */
const LEFT_OUT = '__proto__'

/** Members of all objects of a parsed tree; removes what is left out on the way. @param onLeftOut told before. */
function countMembers(root: unknown, onLeftOut: () => void): number {
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
      if (key === LEFT_OUT) {
        onLeftOut()
        members += countMembers(record[key], onLeftOut)
        delete record[key]
        continue
      }
      const item = record[key]
      if (typeof item === 'object' && item !== null) open.push(item)
    }
  }
  return members
}
