import { streamOf } from '../../domain/kernel/decider.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { type Policy, type PolicyNotActivated, policy } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { changed } from '../commands/verbs.ts'
import { activate, activePosition } from './policies.ts'

type Reason = (typeof PolicyNotActivated)['schema']['shape']['reason']['options'][number]
const REASONS: readonly string[] = ['policy_cancelled', 'policy_number_taken'] satisfies Reason[]

/**
 * Makes a policy active that is in progress, and waits until it can be read as such. One that is active stays so.
 * @param paidAt where in the log it was paid for: one that was active then needs no activation, though it was cancelled
 *   since.
 * @returns why it cannot be: it is cancelled, or its number is taken. The operator is alerted of that.
 */
export async function activatePolicy(
  app: Application,
  policyId: string,
  context: CommandContext,
  paidAt: () => Promise<bigint | null> = async () => null,
): Promise<Policy | Rejection> {
  const repeatable = { ...context, mayRepeat: true }
  const outcome = await activate(app, policyId, repeatable)
  if (!isRejection(outcome) || !REASONS.includes(outcome.code)) return outcome
  const position = await paidAt()
  if (position !== null && (await wasActiveAt(app, policyId, position))) return outcome
  const recorded = await changed(
    app,
    policy,
    policyId,
    {
      type: 'RecordNotActivated',
      reason: outcome.code as Reason,
      holderPolicyId: outcome.ids?.id ?? null,
    },
    repeatable,
  )
  return isRejection(recorded) ? recorded : outcome
}

/** Whether a policy was active at a position of the log. */
async function wasActiveAt(
  { log, commands }: Pick<Application, 'log' | 'commands'>,
  policyId: string,
  position: bigint,
): Promise<boolean> {
  const events = await log.readStream(streamOf(policy, policyId), { direction: 'backwards' })
  const last = events.find((event) => event.position <= position)
  return (
    last !== undefined && (await commands.loadAt(policy, policyId, last.revision)).state?.status === 'active'
  )
}

/**
 * Waits until a policy that is active can be read as such; for one that has been so for long, not at all. One that did
 * not become active reads as it stands.
 * @returns false when that takes too long.
 */
export async function readsActive(
  app: Pick<Application, 'log' | 'readModels'>,
  policyId: string,
): Promise<boolean> {
  const position = await activePosition(app, policyId)
  return position === null || app.readModels.awaitProjections(policy, position)
}
