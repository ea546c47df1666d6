import { z } from 'zod'
import type { Decider } from './decider.ts'
import { type EventOf, eventType } from './event-type.ts'
import { id } from './ids.ts'
import { type Rejection, reject } from './rejection.ts'

/**
 * One idempotency key of one caller on one operation. The claim fixes the command id, from which the ids of all
 * commands and of what they create derive: a repetition after a crash finds what is done already.
 */
export const IdempotencyKeyClaimed = eventType('IdempotencyKeyClaimed', {
  fingerprint: z.string(),
  request_hash: z.string(),
  command_id: z.string(),
  /** What it creates, where that tells the answer: no other one is kept then. */
  created_id: id().optional(),
})
export const IdempotencyKeyAnswered = eventType('IdempotencyKeyAnswered', {
  fingerprint: z.string(),
  /** HTTP status of the first answer. */
  status: z.number().int(),
  /** Body of the first answer; null where it held a secret. */
  body: z.unknown(),
  /** What was created; null where that is not one thing. */
  created_id: z.string().nullable(),
})
/** The request was refused, and nothing stands of it: the key is as if it had never been claimed. */
export const IdempotencyKeyReleased = eventType('IdempotencyKeyReleased', {
  fingerprint: z.string(),
  command_id: z.string(),
})

const events = [IdempotencyKeyClaimed, IdempotencyKeyAnswered, IdempotencyKeyReleased] as const
export type IdempotencyKeyEvent = EventOf<(typeof events)[number]>
export interface IdempotencyKey {
  readonly claimed: z.output<typeof IdempotencyKeyClaimed.schema> | null
  readonly answered: z.output<typeof IdempotencyKeyAnswered.schema> | null
}
export type IdempotencyKeyCommand =
  | { readonly type: 'Claim'; readonly data: z.output<typeof IdempotencyKeyClaimed.schema> }
  | { readonly type: 'Answer'; readonly data: z.output<typeof IdempotencyKeyAnswered.schema> }
  | { readonly type: 'Release'; readonly data: z.output<typeof IdempotencyKeyReleased.schema> }

const UNUSED: IdempotencyKey = { claimed: null, answered: null }

export const idempotencyKey: Decider<IdempotencyKey, IdempotencyKeyCommand, IdempotencyKeyEvent> = {
  category: 'idempotencyKey',
  events,
  initialState: UNUSED,
  evolve(state, event) {
    switch (event.type) {
      case 'IdempotencyKeyClaimed':
        return { ...state, claimed: event.data }
      case 'IdempotencyKeyAnswered':
        return { ...state, answered: event.data }
      case 'IdempotencyKeyReleased':
        return UNUSED
    }
  },
  decide(command, state): readonly IdempotencyKeyEvent[] | Rejection {
    if (command.type === 'Answer') return state.answered ? [] : [IdempotencyKeyAnswered.of(command.data)]
    if (command.type === 'Release') {
      const isHeld = !state.answered && state.claimed?.command_id === command.data.command_id
      return isHeld ? [IdempotencyKeyReleased.of(command.data)] : []
    }
    if (!state.claimed) return [IdempotencyKeyClaimed.of(command.data)]
    if (state.claimed.request_hash === command.data.request_hash) return []
    return reject(
      'conflict',
      'idempotency_key_reused',
      'The idempotency key was used for another request body',
    )
  },
}
