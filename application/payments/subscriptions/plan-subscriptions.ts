import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { PaymentLink } from '../../../domain/payments/links/payment-link.ts'
import {
  dueAt,
  type Subscription,
  subscription,
} from '../../../domain/payments/subscriptions/subscription.ts'
import { policy } from '../../../domain/policies/policy.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { readable, within } from '../../commands/verbs.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { customerOf } from '../processor/processor-customers.ts'
import { processorOf } from '../processor/processor-of.ts'

const OF_POLICY = statement('subscriptions-of-policy', (db, $: Parameter<{ policyId: string }>) =>
  db
    .selectFrom('subscriptions')
    .select('subscription_id')
    .where('policy_id', '=', $('policyId'))
    .orderBy('seq'),
)

/** The plans of a policy that are charged, as far as the read model has come. */
export async function plansOfPolicy(
  { read, commands }: Pick<Application, 'read' | 'commands'>,
  policyId: string,
): Promise<readonly Subscription[]> {
  const rows = await read.query(OF_POLICY, { policyId })
  const all = await Promise.all(
    rows.map(async ({ subscription_id }) => (await commands.load(subscription, subscription_id)).state!),
  )
  return all.filter(({ source, ended }) => source === 'plan' && !ended)
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** When installments are charged, UTC. */
const CHARGE_HOUR = 17

/** The id of the subscription that charges what remains of a link's plan. */
export function planSubscriptionId(linkId: string): string {
  return derivedId(linkId, 'plan-subscription')
}

/**
 * Starts the monthly charges of a direct-billing plan whose down payment was paid, once for a link: id and key of the call derive from the link, so that whoever
 * repeats it gets the same one.
 * @returns its id; a conflict where the policy is cancelled: nothing is charged for it. @throws ProviderUnavailable, ProviderRefused.
 */
export async function startPlanSubscription(
  app: Application,
  link: PaymentLink,
  context: CommandContext,
): Promise<string | Rejection> {
  const { payment_link_id: link_id, tenant_id, environment, employer_id, carrier_id, policy_id } = link
  const { processor, metadata } = link
  const [plan, payment] = [link.installment_plan!, link.payment!]
  const charges = plan.total_installments - link.down_payment_months!
  const { per_installment_cents: amount_cents } = plan
  const { payment_method_id } = payment
  const subscriptionId = planSubscriptionId(link_id)
  if ((await app.commands.load(subscription, subscriptionId)).state) return subscriptionId
  if ((await app.commands.load(policy, policy_id)).state?.status === 'cancelled') {
    return reject('conflict', 'policy_cancelled', 'The policy of the plan is cancelled')
  }

  const asked = processorOf(app, link)
  const customerId = await customerOf(app, employer_id, processor)
  if (customerId === null) throw new ProviderRefused('The employer has no customer at the card processor')
  const anchor_at = isoTime(anchorOf(Date.parse(payment.paid_at), app.clock.now()))
  const calendar = { source: 'plan' as const, anchor_at, charges }
  const { processorSubscriptionId } = await asked.createSubscription(
    {
      subscriptionId,
      customerId,
      amountCents: amount_cents,
      paymentMethodId: payment_method_id,
      isPayersMethod: true,
      firstChargeAt: dueAt(calendar, 1),
      charges,
      chargeDay: new Date(anchor_at).getUTCDate(),
    },
    // what is asked for under one key is the same
    `subscription-${subscriptionId}-${anchor_at.slice(0, 10)}`,
  )
  const data = {
    ...calendar,
    subscription_id: subscriptionId,
    tenant_id,
    environment,
    link_id,
    employer_id,
    carrier_id,
    policy_id,
    processor,
    customer_id: customerId,
    payment_method_id,
    processor_subscription_id: processorSubscriptionId,
    amount_cents,
    first_charge_paid: false,
    metadata: { ...metadata },
    started_at: isoTime(app.clock.now()),
  }
  const outcome = await app.commands.execute(
    subscription,
    subscriptionId,
    { type: 'Start', data },
    within(context, link),
  )
  // a concurrent repetition was faster
  if (isRejection(outcome)) return subscriptionId
  await readable(app, subscription, outcome)
  return subscriptionId
}

/**
 * From when on the charges of a plan are counted. One whose first charge would be due by now moves as a whole, by days:
 * which of the charges is paid is told by their dates.
 */
function anchorOf(paidAt: number, now: number): number {
  let anchor = Math.floor(paidAt / DAY_MS) * DAY_MS + CHARGE_HOUR * HOUR_MS
  while (dueAt({ source: 'plan', anchor_at: isoTime(anchor) }, 1) < now + HOUR_MS) anchor += DAY_MS
  return anchor
}
