import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType, time } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'

/** What waits for a second operator where the setting wants one. */
export const PENDING_OPERATIONS = ['erase', 'releaseDebit', 'exposeBankFileAgain'] as const
export type PendingOperation = (typeof PENDING_OPERATIONS)[number]

export const ActionRequested = eventType('ActionRequested', {
  action_id: id(),
  operation: z.enum(PENDING_OPERATIONS),
  /** What it is done to: data subjects, or the id of a debit or of a bank file. */
  targets: z.array(z.string().regex(/^(?:person\/|employer\/)?[0-9a-f]{24}$/)),
  reason: z.string().nullable(),
  /** Id of the operator. */
  requested_by: z.string().regex(/^(?:operator|[0-9a-f]{24})$/),
  requested_at: time(),
  expires_at: time(),
})
export const ActionApproved = eventType('ActionApproved', {
  action_id: id(),
  approved_by: z.string().regex(/^(?:operator|[0-9a-f]{24})$/),
})
/** Another operator does not want it, or who asked for it does not any more. */
export const ActionDeclined = eventType('ActionDeclined', {
  action_id: id(),
  declined_by: z.string().regex(/^(?:operator|[0-9a-f]{24})$/),
  reason: z.string(),
})

const events = [ActionRequested, ActionApproved, ActionDeclined] as const
export type PendingActionsEvent = EventOf<(typeof events)[number]>

export interface PendingAction extends z.output<typeof ActionRequested.schema> {
  readonly approved_by: string | null
  readonly declined: Pick<z.output<typeof ActionDeclined.schema>, 'declined_by' | 'reason'> | null
}
/** By id; what has expired goes with the next request. */
export type PendingActions = Readonly<Record<string, PendingAction>>

export type PendingActionsCommand =
  | { readonly type: 'Request'; readonly data: z.output<typeof ActionRequested.schema> }
  /** `at`: ISO 8601, like all times of events. */
  | { readonly type: 'Approve'; readonly actionId: string; readonly by: string; readonly at: string }
  | {
      readonly type: 'Decline'
      readonly actionId: string
      readonly by: string
      readonly reason: string
      readonly at: string
    }

/** Stream id of the one list of actions. */
export const PENDING_ACTIONS_ID = 'service'

/** Actions that one operator asks for and another approves: one stream, which keeps those that have not expired. */
export const pendingActions: Decider<PendingActions, PendingActionsCommand, PendingActionsEvent> = {
  category: 'pendingActions',
  events,
  initialState: {},
  evolve(state, event) {
    const { action_id } = event.data
    if (event.type === 'ActionApproved') {
      return { ...state, [action_id]: { ...state[action_id]!, approved_by: event.data.approved_by } }
    }
    if (event.type === 'ActionDeclined') {
      const { declined_by, reason } = event.data
      return { ...state, [action_id]: { ...state[action_id]!, declined: { declined_by, reason } } }
    }
    const { requested_at } = event.data
    const left = Object.entries(state).filter(([, { expires_at }]) => expires_at > requested_at)
    return { ...Object.fromEntries(left), [action_id]: { ...event.data, approved_by: null, declined: null } }
  },
  decide(command, state): readonly PendingActionsEvent[] | Rejection {
    if (command.type === 'Request') return [ActionRequested.of(command.data)]
    const { actionId, by, at } = command
    const action = state[actionId]
    if (!action || action.expires_at <= at) {
      return reject('not_found', 'pending_action_not_found', 'There is no such pending action')
    }
    if (command.type === 'Decline') {
      if (action.approved_by !== null) return alreadyApproved()
      if (action.declined) return action.declined.declined_by === by ? [] : alreadyDeclined()
      return [ActionDeclined.of({ action_id: actionId, declined_by: by, reason: command.reason })]
    }
    if (action.declined) return alreadyDeclined()
    if (action.requested_by === by) {
      return reject('conflict', 'second_operator_required', 'Another operator must approve it')
    }
    // who approved it may go on with what broke off
    if (action.approved_by === by) return []
    if (action.approved_by !== null) return alreadyApproved()
    return [ActionApproved.of({ action_id: actionId, approved_by: by })]
  },
}

function alreadyApproved(): Rejection {
  return reject('conflict', 'action_approved', 'The action was approved already')
}

function alreadyDeclined(): Rejection {
  return reject('conflict', 'action_declined', 'The action was declined already')
}
