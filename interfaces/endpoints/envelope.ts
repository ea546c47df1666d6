import { z } from 'zod'
import { ProviderRefused, ProviderUnavailable } from '../../application/ports/provider.ts'
import { HttpError, writeEnvelopeError } from '../http/errors.ts'
import type { Api } from './api.ts'
import { naming } from './faults.ts'

/** What APIs have in common whose answers stand in an envelope, `{"ok": true, "data": …}`. */
export const WITH_ENVELOPE = {
  takesEmptyBodies: true,
  objectOf(value) {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>
    }
    throw new HttpError(400, null, 'The body must be a JSON object')
  },
  unreadable: () => null,
  refuse(faults) {
    // what is wrong with a list as a whole goes before what is wrong in it
    const whole = faults.find(({ field }) => faults[0]!.field.startsWith(`${field}[`))
    const first = whole ?? faults[0]!
    return new HttpError(400, null, `${first.field} ${first.message}`.trim(), naming(faults, first))
  },
  refusalOf(error) {
    if (error instanceof ProviderUnavailable) return new HttpError(502, null, error.message)
    if (!(error instanceof ProviderRefused)) return null
    return new HttpError(409, null, error.message, { code: 'provider_refused' })
  },
  writeError: writeEnvelopeError,
  envelope: {
    wrap: (data, pagination) =>
      pagination === undefined ? { ok: true, data } : { ok: true, data, pagination },
    schema: (data, pagination) => z.object({ ok: z.literal(true), data, ...(pagination && { pagination }) }),
  },
} as const satisfies Partial<Api>
