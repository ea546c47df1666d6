import { z } from 'zod'
import { requestAction } from '../../../application/operations/pending-actions.ts'
import { PENDING_OPERATIONS, type PendingOperation } from '../../../domain/operations/pending-actions.ts'
import { Answer } from '../../endpoints/endpoint.ts'
import { id, word } from '../../endpoints/fields.ts'
import { contextOf } from './api.ts'
import { shownTime } from './values.ts'

export const PendingAction = z
  .object({
    action_id: id(),
    operation: word(...PENDING_OPERATIONS),
    targets: z.array(z.string()).readonly().describe('Data subjects, or the id of a debit or of a bank file'),
    reason: z.string().nullable(),
    requested_by: z.string().describe('Id of the operator, who cannot approve it'),
    requested_at: shownTime(),
    expires_at: shownTime(),
    approved_by: z.string().nullable().describe('Id of the operator who did'),
    declined: z
      .object({
        declined_by: z.string().describe('Id of the operator who did'),
        reason: z.string(),
      })
      .nullable()
      .describe('Who declined or withdrew it, and why; null: nobody did'),
  })
  .meta({ id: 'PendingAction' })

/** Keeps what is asked for until a second operator approves it, and answers 202. */
export async function forSecond(
  call: Parameters<typeof contextOf>[0],
  what: {
    readonly operation: PendingOperation
    readonly targets: readonly string[]
    readonly reason: string | null
  },
) {
  return new Answer(202, await requestAction(call.host.app, what, contextOf(call)))
}
