import type { z } from 'zod'
import { streamOf } from '../../domain/kernel/decider.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import { employer } from '../../domain/parties/employer.ts'
import {
  hasLostNumber,
  type Policy,
  PolicyActivated,
  PolicyIssued,
  type PolicyTerms,
  policy,
  statusOn,
} from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { isTaken, policyNumberReservation, release, reserve, reserveFor } from '../commands/reservations.ts'
import { changed, readable, within } from '../commands/verbs.ts'

/** What a policy is to be issued with; it reads expired from the day after its expiration date, which lies after the effective one. */
export type NewPolicy = Omit<z.output<typeof PolicyIssued.schema>, 'policy_id' | 'tenant_id' | 'environment'>

/** A policy that nothing stands in the way of. */
type Issuing = Exclude<Awaited<ReturnType<typeof prepareIssue>>, Rejection>

/**
 * Issues a policy in the tenant and environment of its employer. The number of a policy in force is
 * reserved first; one that is cancelled, past its term or not active yet holds no number.
 */
export async function issue(
  app: Application,
  { input, insured, number, holder }: Issuing,
  context: CommandContext,
): Promise<Policy | Rejection> {
  const scoped = within(context, insured)
  const policyId = number ? await reserve(app, number, holder, scoped) : holder.id
  if (policyId === null) return policyNumberTaken()
  const outcome = await app.commands.execute(
    policy,
    policyId,
    { type: 'Issue', data: { ...input, policy_id: policyId, ...insured } },
    scoped,
  )
  if (isRejection(outcome) && outcome.code === 'policy_exists') return policyNumberTaken()
  return readable(app, policy, outcome)
}

/** Finds whose policy is to be issued, and the number that it is to hold, if any; nothing is stored. */
export async function prepareIssue(app: Application, input: NewPolicy, context: CommandContext) {
  const [{ state: insured }, { state: insurer }] = await Promise.all([
    app.commands.load(employer, input.employer_id),
    app.commands.load(carrier, input.carrier_id),
  ])
  if (!insured)
    return reject('not_found', 'employer_not_found', 'employer_id: no such employer', 'employer_id')
  const { tenant_id, environment } = insured
  if (insurer?.tenant_id !== tenant_id) {
    return reject(
      'not_found',
      'carrier_not_found',
      "carrier_id: the employer's tenant has no such carrier",
      'carrier_id',
    )
  }
  if (input.expiration_date <= input.effective_date) {
    return reject(
      'invalid',
      'term_ends_before_start',
      'expiration_date must lie after effective_date',
      'expiration_date',
    )
  }
  const now = app.clock.now()
  const isInForce = statusOn(input, now) === 'active'
  const number = isInForce
    ? policyNumberReservation(app.personalData, tenant_id, environment, input.policy_number)
    : null
  const holder = {
    decider: policy,
    creates: 'Issue',
    id: createdId(context, policy),
    hasLost: (holder: Policy) => hasLostNumber(holder, app.clock.now()),
  }
  if (number && (await isTaken(app, number, holder, within(context, insured)))) return policyNumberTaken()
  return { input, insured: { tenant_id, environment }, number, holder }
}

function policyNumberTaken(): Rejection {
  return reject(
    'conflict',
    'policy_number_taken',
    'An active policy with this policy_number exists already',
    'policy_number',
  )
}

/**
 * Makes a policy active that is in progress, and waits until it can be read as such; an active one stays so. Its number
 * is reserved first, unless its term is over: then it reads expired at once.
 * @returns a conflict when it is cancelled, or when its number is taken: `ids.id` is the policy that has it.
 */
export async function activate(
  app: Application,
  policyId: string,
  context: CommandContext,
): Promise<Policy | Rejection> {
  const { state } = await app.commands.load(policy, policyId)
  if (!state) return reject('not_found', 'policy_not_found', 'No such policy', 'policy_id')
  const scoped = within(context, state)
  const hasLost = (holder: Policy) => hasLostNumber(holder, app.clock.now())
  const { tenant_id, environment, policy_number } = state
  const number = policyNumberReservation(app.personalData, tenant_id, environment, policy_number)
  if (state.status === 'in_progress' && !hasLost(state)) {
    const holder = await reserveFor(app, number, { decider: policy, id: policyId, hasLost }, scoped)
    if (holder !== policyId) return { ...policyNumberTaken(), ids: { id: holder } }
  }
  const outcome = await app.commands.execute(policy, policyId, { type: 'Activate' }, scoped)
  if (isRejection(outcome)) {
    // it was cancelled meanwhile, and that request may have looked for the number before
    await release(app, number, policyId, scoped)
    return outcome
  }
  // another command made it active, perhaps a moment ago
  const position = outcome.position ?? (await activePosition(app, policyId))
  return readable(app, policy, { ...outcome, position })
}

/** Where in the log a policy got the status that it has unless it was cancelled; null where that is long past. */
export async function activePosition(
  { log }: Pick<Application, 'log'>,
  policyId: string,
): Promise<bigint | null> {
  const events = await log.readStream(streamOf(policy, policyId), { direction: 'backwards' })
  const types: readonly string[] = [PolicyIssued.name, PolicyActivated.name]
  return events.find(({ type }) => types.includes(type))?.position ?? null
}

/** Changes terms of a policy; values equal to the present ones are no change. */
export function change(
  app: Application,
  policyId: string,
  terms: Partial<PolicyTerms>,
  context: CommandContext,
): Promise<Policy | Rejection> {
  return changed(app, policy, policyId, { type: 'ChangeTerms', terms }, context)
}

/** Cancels a policy and frees its number. Cancelling it again changes nothing. */
export async function cancel(
  app: Application,
  policyId: string,
  reason: string | null,
  context: CommandContext,
): Promise<Policy | Rejection> {
  const cancelled = await changed(app, policy, policyId, { type: 'Cancel', reason }, context)
  if (isRejection(cancelled)) return cancelled
  const { tenant_id, environment, policy_number } = cancelled
  const number = policyNumberReservation(app.personalData, tenant_id, environment, policy_number)
  await release(app, number, policyId, within(context, cancelled))
  return cancelled
}
