import { JsonReader, Refusal } from './reader.ts'

const UNBOUNDED = { depth: Infinity, values: Infinity, members: Infinity, numberLength: Infinity }
/** Of what may be the first part of a number or word. */
const CUT = /[-+.\w]/

/**
 * A member of the object that a JSON text begins with, read from its first bytes alone; undefined when it does not stand
 * there whole, or what stands before it cannot be read.
 */
export function memberAtBeginning(bytes: Buffer, name: string): unknown {
  const text = bytes.toString('utf8')
  let end = text.length
  while (end > 0 && CUT.test(text[end - 1]!)) end -= 1
  const reader = new JsonReader(text.slice(0, end), UNBOUNDED)
  try {
    reader.read(bytes.length)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
  }
  const { value } = reader
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}
