import { z } from 'zod'
import { Lag } from './projection-schemas.ts'

export const Work = z
  .object({
    counts: z.object({
      due: z.int(),
      leased: z.int(),
      held: z.int().describe('Waiting for an injected hold to be cleared'),
      later: z.int(),
      failed: z.int(),
    }),
    unknown: z
      .array(z.object({ process_manager: z.string(), kind: z.string(), count: z.int() }))
      .readonly()
      .describe('Work of kinds that this release does not have'),
    failed: z
      .array(
        z.object({
          process_manager: z.string(),
          kind: z.string(),
          key: z.string(),
          attempts: z.int(),
          error: z.string().nullable(),
          correlation_id: z.string(),
          tenant_id: z.string().nullable(),
        }),
      )
      .readonly(),
    process_managers: z
      .array(
        z.object({
          name: z.string(),
          position: z.string(),
          state: z.enum(['active', 'idle', 'problem']).describe('`idle`: no process runs it'),
          problem: z.string().nullable(),
          owner: z.string().nullable(),
          lag: Lag,
          parked_streams: z.int(),
        }),
      )
      .readonly(),
  })
  .meta({ id: 'Work' })
/** Work of the process managers. */
export type WorkOverview = z.input<typeof Work>
