import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/**
 * One key under which a partner asks for a debit, alone or as an entry of a batch collection: of a tenant and environment.
 * Whoever is about to create the debit claims the key for what is debited. It stands for what it was claimed for first, for
 * good: all who ask for the same go on under that one claim.
 */
const claim = {
  key: z.string(),
  /** Of the request, where each held a claim of its own. */
  claim_id: z.string().optional(),
}

export const DebitKeyClaimed = eventType({
  name: 'DebitKeyClaimed',
  schema: z.object({
    ...claim,
    /** Keyed fingerprint of what is debited. */
    content: z.string(),
  }),
})
/** A request that was refused gave its claim back; others may have held one, so that the key stands as before. None does any more. */
export const DebitKeyReleased = eventType({ name: 'DebitKeyReleased', schema: z.object(claim) })

const events = [DebitKeyClaimed, DebitKeyReleased] as const
export type DebitKeyEvent = EventOf<(typeof events)[number]>
export interface DebitKey {
  /** What it stands for; null: for nothing. */
  readonly content: string | null
}
export interface ClaimDebitKey {
  readonly type: 'Claim'
  readonly key: string
  readonly content: string
}

export const debitKey: Decider<DebitKey, ClaimDebitKey, DebitKeyEvent> = {
  category: 'debitKey',
  events,
  initialState: { content: null },
  evolve: (state, { type, data }) => (type === 'DebitKeyClaimed' ? { content: data.content } : state),
  decide({ key, content }, state): readonly DebitKeyEvent[] | Rejection {
    if (state.content === null) return [DebitKeyClaimed.of({ key, content })]
    return state.content === content ? [] : debitKeyReused()
  },
}

/** @param field that carries the key. @param debitId the other debit, where it may be named. */
export function debitKeyReused(field = 'idempotency_key', debitId: string | null = null): Rejection {
  const which = debitId === null ? '' : `: ${debitId}`
  const reused = reject('conflict', 'debit_key_reused', `${field} was used for another debit${which}`, field)
  return debitId === null ? reused : { ...reused, ids: { id: debitId } }
}
