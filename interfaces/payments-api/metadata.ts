import { z } from 'zod'
import { withDefault } from '../endpoints/fields.ts'

/** Bytes of metadata at the most, as JSON. */
const MAX_METADATA = 64 * 1024

/** A partner's own key-value pairs; none when they are missing. */
export function metadata() {
  return withDefault(
    z
      .record(z.string(), z.string())
      .refine(
        (pairs) => Buffer.byteLength(JSON.stringify(pairs)) <= MAX_METADATA,
        `must not be longer than ${MAX_METADATA} bytes`,
      ),
    {},
  ).describe(
    'Your own key-value pairs, text values only, 64 KiB at the most; the service sets `api_client_id` and `source`',
  )
}

/** Metadata as they are kept: two names are the service's own. */
export function withOwnPairs(
  pairs: Readonly<Record<string, string>>,
  tenantId: string,
): Readonly<Record<string, string>> {
  return { ...pairs, api_client_id: tenantId, source: 'payment_api' }
}
