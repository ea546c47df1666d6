import { z } from 'zod'

/** An id as every interface prints it: 24 lower-case hexadecimal characters. */
const ID_PATTERN = /^[0-9a-f]{24}$/

/** Schema of an id. */
export const id = () => z.string().regex(ID_PATTERN)

/** True for a well-formed id; anything else can name nothing. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && ID_PATTERN.test(value)
}

/** The two kinds of data, kept apart everywhere: a key of one never sees a record of the other. */
export const environment = () => z.enum(['live', 'sandbox'])
export type Environment = 'live' | 'sandbox'
