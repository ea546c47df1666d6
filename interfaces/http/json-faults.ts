/**
 * Why a body is refused, and where it is at fault. The latter is asked only once it is known that there is a fault, and
 * builds a path only for the place that it finds.
 */

import { isRounded } from './json-numbers.ts'

/** What a value or key is refused for; `numbers`: reading changes them. */
export type PlacedFault = 'duplicate_key' | 'characters' | 'numbers'

/** `values`: the body holds more values, or an object in it more members, than may be. */
export type JsonFault = PlacedFault | 'syntax' | 'depth' | 'encoding' | 'values'

/** Ends the parsing of a body. */
export class Refusal {
  readonly kind: JsonFault
  /** One sentence that never quotes the body. */
  readonly message: string
  /** Where, of a number that is too long. */
  readonly path: string | undefined

  constructor(kind: JsonFault, message: string, path?: string) {
    this.kind = kind
    this.message = message
    this.path = path
  }
}

/** The body is no JSON. @param detail why or where, without quoting it. */
export function notJson(detail = ''): Refusal {
  return new Refusal('syntax', `The body is not valid JSON${detail}`)
}

/** The body is no JSON from a place on. @param from in the bytes. @param characters after it. */
export function syntaxAt(bytes: Buffer, from: number, characters = 0): Refusal {
  const before = bytes.toString('utf8', 0, from).length
  return notJson(` (at character ${before + characters})`)
}

type Step = string | number

/** `employees[3].first_name`, from the outside in; long keys are shortened. */
export function pathOf(steps: readonly Step[]): string {
  let path = ''
  for (const step of steps) {
    if (typeof step === 'number') path += `[${step}]`
    else path += path === '' ? shortened(step) : `.${shortened(step)}`
  }
  return path
}

function shortened(key: string): string {
  return key.length > 60 ? `${key.slice(0, 59)}…` : key
}

const LONE_SURROGATE = /\p{Surrogate}/u

/** Whether a text holds NUL or half of a surrogate pair, which PostgreSQL takes in no text. */
export function isRefused(text: string): boolean {
  return text.includes('\0') || LONE_SURROGATE.test(text)
}

/** Where the first refused string or key stands, null when there is none. @param node of bounded depth. */
export function findRefused(node: unknown): Step[] | null {
  if (typeof node === 'string') return isRefused(node) ? [] : null
  if (typeof node !== 'object' || node === null) return null
  if (Array.isArray(node)) {
    for (let index = 0; index < node.length; index += 1) {
      const inside = findRefused(node[index])
      if (inside !== null) return [index, ...inside]
    }
    return null
  }
  for (const key of Object.keys(node)) {
    if (isRefused(key)) return ['(key)']
    const inside = findRefused((node as Record<string, unknown>)[key])
    if (inside !== null) return [key, ...inside]
  }
  return null
}

/** Where a key stands first, null when it stands nowhere. @param node of bounded depth. */
export function findKey(node: unknown, wanted: string): Step[] | null {
  if (typeof node !== 'object' || node === null) return null
  for (const key of Object.keys(node)) {
    const step = Array.isArray(node) ? Number(key) : key
    if (step === wanted) return [step]
    const inside = findKey((node as Record<string, unknown>)[key], wanted)
    if (inside !== null) return [step, ...inside]
  }
  return null
}

interface OpenLevel {
  /** The keys seen so far; null in an array. */
  readonly keys: Set<string> | null
  /** The present key or index. */
  step: Step
}

/** A fault of a text, and where it stands. */
interface Found {
  readonly kind: PlacedFault
  readonly steps: Step[]
}

/** Digits of a number and what may stand between them. */
const NUMBER = /[-+.eE\d]*/y

/** The first key that an object repeats, or number that reading changes, in valid JSON; null when there is none. */
export function findInText(text: string): Found | null {
  const levels: OpenLevel[] = []
  const found = (kind: PlacedFault): Found => ({ kind, steps: levels.map(({ step }) => step) })
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    const level = levels.at(-1)
    if (char === '"') {
      const start = at
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1
      if (!level?.keys || !isFollowedByColon(text, at + 1)) continue
      const key = JSON.parse(text.slice(start, at + 1)) as string
      level.step = key
      if (level.keys.has(key)) return found('duplicate_key')
      level.keys.add(key)
    } else if (char === '{') {
      levels.push({ keys: new Set(), step: '' })
    } else if (char === '[') {
      levels.push({ keys: null, step: 0 })
    } else if (char === '}' || char === ']') {
      levels.pop()
    } else if (char === ',' && typeof level?.step === 'number') {
      level.step += 1
    } else if (char === '-' || (char! >= '0' && char! <= '9')) {
      NUMBER.lastIndex = at
      const [number] = NUMBER.exec(text)!
      if (isRounded(number)) return found('numbers')
      at += number.length - 1
    }
  }
  return null
}

function isFollowedByColon(text: string, from: number): boolean {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1
  return text[at] === ':'
}
