import { z } from 'zod'
import { type Decider, fold } from '../../kernel/decider.ts'
import { type EventOf, eventType } from '../../kernel/event-type.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'

/**
 * One key under which a partner asks for a debit, alone or as an entry of a batch collection: of a tenant and environment.
 * A request that is about to create the debit claims the key. The key stands for what it was claimed for first, for
 * good: all requests for the same go on under that one claim. A collection that is refused releases its claims.
 */
const claim = {
  key: z.string(),
  /** Id of the collection; absent: it is for good. Of earlier versions that of a request. */
  claim_id: z.string().optional(),
}

export const DebitKeyClaimed = eventType('DebitKeyClaimed', {
  ...claim,
  /** Keyed fingerprint of what is debited. */
  content: z.string(),
})
/** What was refused gave its claim back; others may hold one, so that the key stands as before. */
export const DebitKeyReleased = eventType('DebitKeyReleased', claim)

const events = [DebitKeyClaimed, DebitKeyReleased] as const
export type DebitKeyEvent = EventOf<(typeof events)[number]>
export interface DebitKey {
  /** What it stands for; null: for nothing. */
  readonly content: string | null
  /** By their ids; null: one for good. */
  readonly claims: readonly (string | null)[]
}
export interface DebitKeyCommand {
  readonly type: 'Claim'
  readonly key: string
  readonly content: string
  readonly claimId?: string
  /** Claims of collections that were refused: they go with it. */
  readonly givenBack?: readonly string[]
}

export const debitKey: Decider<DebitKey, DebitKeyCommand, DebitKeyEvent> = {
  category: 'debitKey',
  events,
  initialState: { content: null, claims: [] },
  evolve({ content, claims }, { type, data }) {
    const { claim_id: id = null } = data
    if (type === 'DebitKeyClaimed') return { content: data.content, claims: [...claims, id] }
    const left = claims.filter((one) => one !== id)
    return { content: left.length === 0 ? null : content, claims: left }
  },
  decide({ key, content, claimId: claim_id, givenBack = [] }, state): readonly DebitKeyEvent[] | Rejection {
    const released = givenBack
      .filter((id) => state.claims.includes(id))
      .map((id) => DebitKeyReleased.of({ key, claim_id: id }))
    const left = fold(debitKey, released, state)
    if (left.content !== null && left.content !== content) return debitKeyReused()
    // one for good holds for all
    if (left.claims.includes(null) || left.claims.includes(claim_id ?? null)) return []
    return [...released, DebitKeyClaimed.of({ key, content, ...(claim_id !== undefined && { claim_id }) })]
  },
}

/** @param field that carries the key. @param debitId the other debit, where it may be named. */
export function debitKeyReused(field = 'idempotency_key', debitId: string | null = null): Rejection {
  const which = debitId === null ? '' : `: ${debitId}`
  const reused = reject('conflict', 'debit_key_reused', `${field} was used for another debit${which}`, field)
  return debitId === null ? reused : { ...reused, ids: { id: debitId } }
}
