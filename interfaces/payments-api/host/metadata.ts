import { z } from 'zod'
import { withDefault } from '../../endpoints/fields.ts'

/** Bytes of metadata at the most, as JSON. */
const MAX_METADATA = 64 * 1024
/** Pairs of metadata at the most: bytes alone would allow thousands, which cost far more to read than they weigh. */
const MAX_PAIRS = 500

/** A partner's own key-value pairs; none when they are missing. @param hasOwnPairs the service adds some. */
export function metadata({ hasOwnPairs = true } = {}) {
  return withDefault(
    z
      .record(z.string(), z.string())
      .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, `must not have more than ${MAX_PAIRS} pairs`)
      .refine(
        (pairs) => Buffer.byteLength(JSON.stringify(pairs)) <= MAX_METADATA,
        `must not be longer than ${MAX_METADATA} bytes`,
      ),
    {},
  ).describe(
    `Your own key-value pairs, text values only, ${MAX_PAIRS} of them and ${MAX_METADATA / 1024} KiB at the most` +
      (hasOwnPairs ? '; the service sets `api_client_id` and `source`' : ''),
  )
}
