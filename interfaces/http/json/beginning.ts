import { JsonReader, Refusal } from './reader.ts'

const UNBOUNDED = { depth: Infinity, values: Infinity, members: Infinity }
/** What may be the first part of a number or word. */
const CUT = /[-+.\w]+$/

/**
 * A member of the object that a JSON text begins with, read from its first bytes alone; undefined when it does not stand
 * there whole, or what stands before it cannot be read.
 */
export function memberAtBeginning(bytes: Buffer, name: string): unknown {
  const reader = new JsonReader(bytes.toString('utf8').replace(CUT, ''), UNBOUNDED)
  try {
    reader.read(bytes.length)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
  }
  const { value } = reader
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}
