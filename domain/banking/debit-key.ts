import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/**
 * One key under which a partner asks for a debit, alone or as an entry of a batch collection: of a tenant and environment.
 * Whoever is about to create the debit claims the key for what is debited; from then on the key stands for that alone, and
 * several who ask for the same hold it together. A claim is given back only by who created nothing.
 */
const claim = { key: z.string(), claim_id: z.string() }

export const DebitKeyClaimed = eventType({
  name: 'DebitKeyClaimed',
  schema: z.object({
    ...claim,
    /** Keyed fingerprint of what is debited. */
    content: z.string(),
  }),
})
/** Its request was refused, and nothing stands of it. */
export const DebitKeyReleased = eventType({ name: 'DebitKeyReleased', schema: z.object(claim) })

const events = [DebitKeyClaimed, DebitKeyReleased] as const
export type DebitKeyEvent = EventOf<(typeof events)[number]>
export interface DebitKey {
  /** What it stands for; null: for nothing. */
  readonly content: string | null
  /** Requests that hold it. */
  readonly claims: readonly string[]
}
export type DebitKeyCommand =
  | {
      readonly type: 'Claim'
      readonly key: string
      readonly claimId: string
      readonly content: string
    }
  | { readonly type: 'Release'; readonly key: string; readonly claimId: string }

const FREE: DebitKey = { content: null, claims: [] }

export const debitKey: Decider<DebitKey, DebitKeyCommand, DebitKeyEvent> = {
  category: 'debitKey',
  events,
  initialState: FREE,
  evolve(state, { type, data }) {
    if (type === 'DebitKeyClaimed') {
      return { content: data.content, claims: [...state.claims, data.claim_id] }
    }
    const claims = state.claims.filter((one) => one !== data.claim_id)
    return claims.length === 0 ? FREE : { ...state, claims }
  },
  decide(command, state): readonly DebitKeyEvent[] | Rejection {
    const { key, claimId: claim_id } = command
    const isHeld = state.claims.includes(claim_id)
    if (command.type === 'Release') return isHeld ? [DebitKeyReleased.of({ key, claim_id })] : []
    const { content } = command
    if (state.content !== null && state.content !== content) return debitKeyReused()
    return isHeld ? [] : [DebitKeyClaimed.of({ key, claim_id, content })]
  },
}

/** @param field that carries the key. @param debitId the other debit, where it may be named. */
export function debitKeyReused(field = 'idempotency_key', debitId: string | null = null): Rejection {
  const which = debitId === null ? '' : `: ${debitId}`
  const reused = reject('conflict', 'debit_key_reused', `${field} was used for another debit${which}`, field)
  return debitId === null ? reused : { ...reused, ids: { id: debitId } }
}
