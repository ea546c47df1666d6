import { createHash } from 'node:crypto'
import { TimeSlice } from './time-slices.ts'

/** Characters of the canonical text that are kept before they are hashed. */
const HASHED_AT_ONCE = 64 * 1024

/** An array or object of which some elements are hashed already. */
interface OpenPart {
  readonly elements: readonly unknown[]
  /** The key in front of each element, sorted; null in an array. */
  readonly keys: readonly string[] | null
  next: number
}

/**
 * Hash of a request's JSON value that does not depend on the order of members or on white space.
 * It leaves this process only as a keyed fingerprint.
 */
export async function requestHash(value: unknown): Promise<string> {
  const hash = createHash('sha256')
  const slice = new TimeSlice()
  const open: OpenPart[] = []
  let text = ''
  const write = (part: unknown): void => {
    if (Array.isArray(part)) {
      text += '['
      open.push({ elements: part, keys: null, next: 0 })
    } else if (typeof part === 'object' && part !== null) {
      text += '{'
      const keys = Object.keys(part).sort()
      const elements = keys.map((key) => (part as Record<string, unknown>)[key])
      open.push({ elements, keys, next: 0 })
    } else {
      text += JSON.stringify(part) ?? 'undefined'
    }
  }
  write(value)
  for (let part = open.at(-1); part !== undefined; part = open.at(-1)) {
    if (part.next === part.elements.length) {
      text += part.keys ? '}' : ']'
      open.pop()
      if (open.length > 0) text += ','
    } else {
      if (part.keys) text += `${JSON.stringify(part.keys[part.next])}:`
      const element = part.elements[part.next]
      part.next += 1
      write(element)
      if (typeof element !== 'object' || element === null) text += ','
    }
    if (text.length > HASHED_AT_ONCE) {
      hash.update(text)
      text = ''
      await slice.over()
    }
  }
  return hash.update(text).digest('hex')
}
