import { isoTime } from '../../domain/kernel/calendar.ts'
import { isRejection, orThrow, type Rejection } from '../../domain/kernel/rejection.ts'
import {
  PENDING_ACTIONS_ID,
  type PendingAction,
  type PendingOperation,
  pendingActions,
} from '../../domain/operations/pending-actions.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'

const LASTS_MS = 24 * 60 * 60 * 1000

type Parts = Pick<Application, 'commands' | 'clock'>

/** Keeps what an operator asks for until another one approves it, for 24 hours. */
export async function requestAction(
  { commands, clock }: Parts,
  what: {
    readonly operation: PendingOperation
    readonly targets: readonly string[]
    readonly reason: string | null
  },
  context: CommandContext,
): Promise<PendingAction> {
  const action_id = createdId(context, pendingActions)
  const { operation, targets, reason } = what
  const now = clock.now()
  const data = {
    action_id,
    operation,
    targets: [...targets],
    reason,
    requested_by: context.actor.id,
    requested_at: isoTime(now),
    expires_at: isoTime(now + LASTS_MS),
  }
  const outcome = await commands.execute(
    pendingActions,
    PENDING_ACTIONS_ID,
    { type: 'Request', data },
    context,
  )
  return orThrow(outcome).state[action_id]!
}

/** Approves an action, which its author cannot; the caller carries it out then. */
export async function approveAction(
  { commands, clock }: Parts,
  actionId: string,
  context: CommandContext,
): Promise<PendingAction | Rejection> {
  const command = { type: 'Approve', actionId, by: context.actor.id, at: isoTime(clock.now()) } as const
  const outcome = await commands.execute(pendingActions, PENDING_ACTIONS_ID, command, context)
  return isRejection(outcome) ? outcome : outcome.state[actionId]!
}

/** Ends an action that waits: another operator declines it, or its author withdraws it. The same again changes nothing. */
export async function declineAction(
  { commands, clock }: Parts,
  actionId: string,
  reason: string,
  context: CommandContext,
): Promise<PendingAction | Rejection> {
  const at = isoTime(clock.now())
  const command = { type: 'Decline', actionId, by: context.actor.id, reason, at } as const
  const outcome = await commands.execute(pendingActions, PENDING_ACTIONS_ID, command, context)
  return isRejection(outcome) ? outcome : outcome.state[actionId]!
}

/** Actions that wait for another operator, in the order of their requests. */
export async function waitingActions({ commands, clock }: Parts): Promise<readonly PendingAction[]> {
  const { state } = await commands.load(pendingActions, PENDING_ACTIONS_ID)
  const now = isoTime(clock.now())
  return Object.values(state).filter(
    ({ approved_by, declined, expires_at }) => approved_by === null && declined === null && expires_at > now,
  )
}
