import { z } from 'zod'

/** Who pays, as operators see it: masked; the events of the stream open it, which is recorded. */
export const Payer = z
  .object({ name: z.string(), email: z.string(), phone: z.string().nullable() })
  .meta({ id: 'MaskedPayer' })
  .describe('Masked: `GET /streams/{stream}` opens it with `reveal=true`')
