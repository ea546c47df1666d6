import { z } from 'zod'

/**
 * A personal value as it stands in events and read models: ciphertext under the data key of one
 * data subject, `sld1.<subject>.<base64url>`. Destroying the subject's key leaves the bytes (and
 * the hash chain over them) as they are and makes every copy unreadable at once.
 */
export type Sealed = string & { readonly __sealed: true }

const SEALED = /^sld1\.[A-Za-z0-9/_:]{1,80}\.[A-Za-z0-9_-]+$/

/** True for a value of the sealed form. */
export function isSealed(value: unknown): value is Sealed {
  return typeof value === 'string' && value.startsWith('sld1.') && SEALED.test(value)
}

/** Schema of a personal field of an event: it refuses plain text, so none can be appended by mistake. */
export const sealed = () => z.custom<Sealed>(isSealed, { message: 'must be sealed under a data key' })

/** The data subject whose key sealed the value, for example `person/5f…`. */
export function subjectOf(value: Sealed): string {
  return value.split('.')[1]!
}
