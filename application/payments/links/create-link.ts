import type { ApiClient } from '../../../domain/access/api-client.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  directBillingPlan,
  type InstallmentPlan,
  MOST_CHARGE_CENTS,
} from '../../../domain/payments/links/direct-billing-plan.ts'
import { type PaymentLink, paymentLink } from '../../../domain/payments/links/payment-link.ts'
import { PaymentLinkCreated } from '../../../domain/payments/links/payment-link-events.ts'
import { checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { describeContext } from '../../../domain/payments/pages/payment-contexts.ts'
import { namedPolicy } from '../../access/named-policy.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { findable } from '../../commands/found-by.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { readable } from '../../commands/verbs.ts'
import { withOwnPairs } from '../pages/metadata.ts'
import { ensureCustomer } from '../processor/processor-customers.ts'
import { unlessRefused } from '../processor/refused-fields.ts'

const DAY_MS = 86_400_000

export interface NewPaymentLink
  extends Pick<PaymentLink, 'employer_id' | 'policy_id' | 'premium_cents' | 'fee_cents' | 'fee_breakdown'>,
    Pick<PaymentLink, 'payment_type' | 'payment_context' | 'delivery' | 'metadata'>,
    Pick<PaymentLink, 'created_by' | 'after_completion_url' | 'invoice_id'> {
  /** Null: the only one of the key. */
  readonly carrier_id: string | null
  readonly customer: { readonly name: string; readonly email: string; readonly phone: string | null }
  /** Both are there for DIRECT_BILLING, and do not count otherwise. */
  readonly total_installments?: number | null | undefined
  readonly down_payment_months?: number | null | undefined
}

/** The plan of a link, null for one that is paid at once. */
export function planOf(
  link: Pick<
    NewPaymentLink,
    'payment_type' | 'premium_cents' | 'fee_cents' | 'total_installments' | 'down_payment_months'
  >,
): InstallmentPlan | null | Rejection {
  if (link.payment_type !== 'DIRECT_BILLING') return null
  const total = link.premium_cents + link.fee_cents
  return directBillingPlan(total, link.total_installments!, link.down_payment_months!)
}

/**
 * Creates a payment link: the employer's customer and the link at the card processor, then one append. All keys derive
 * from the command: a repetition after a crash or an outage gets the same link.
 * @throws ProviderUnavailable, ProviderRefused: then there is no link here; WrongExpectedRevision when it is there.
 */
export async function createLink(
  app: Application,
  client: ApiClient,
  input: NewPaymentLink,
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  const plan = planOf(input)
  if (isRejection(plan)) return plan
  const charges = plan
    ? [plan.down_payment_cents, plan.per_installment_cents]
    : [input.premium_cents + input.fee_cents]
  if (Math.max(...charges) > MOST_CHARGE_CENTS) {
    const why = `premium_cents and fee_cents must not come to a charge of more than ${MOST_CHARGE_CENTS} cents`
    return reject('invalid', 'charge_too_large', why, 'premium_cents')
  }
  const { tenant_id, environment } = client
  // side by side, so that the log is asked once
  const [named, checkout] = await Promise.all([
    namedPolicy(app, client, input),
    app.commands.load(checkoutSettings, tenant_id),
  ])
  if (isRejection(named)) return named
  const { employer, carrier, policy } = named
  if (policy.status === 'cancelled') {
    return reject('conflict', 'policy_cancelled', 'policy_id names a cancelled policy', 'policy_id')
  }
  const { settings } = checkout.state
  const payment_link_id = createdId(context, paymentLink)
  const atProcessor = await unlessRefused(
    () => processorLinkOf(app, client, input, plan, payment_link_id, context),
    { amount: 'premium_cents', email: 'customer.email', return_url: 'after_completion_url' },
  )
  if (isRejection(atProcessor)) return atProcessor

  const now = app.clock.now()
  const { total_installments: _total, ...asked } = input
  const data = await sealFields(
    app.personalData,
    PaymentLinkCreated,
    {
      ...asked,
      payment_link_id,
      tenant_id,
      environment,
      employer_id: employer.employer_id,
      carrier_id: carrier.carrier_id,
      policy_id: policy.policy_id,
      customer: { ...input.customer },
      installment_plan: plan,
      down_payment_months: plan && input.down_payment_months!,
      metadata: withOwnPairs(input.metadata, tenant_id),
      processor: app.processors[environment].kind,
      processor_payment_link_id: atProcessor.processorLinkId,
      processor_url: atProcessor.url,
      created_at: isoTime(now),
      expires_at: isoTime(now + settings.payment_link_ttl_days * DAY_MS),
    },
    () => employerSubject(app.personalData, employer.employer_id),
  )
  const command = { type: 'Create', data: data as unknown as PaymentLink } as const
  const within = findable(app, context, { email: input.customer.email })
  return readable(app, paymentLink, await app.commands.create(paymentLink, payment_link_id, command, within))
}

/** The link at the card processor. Its key holds what is asked for: another body under a key that was left is another link. */
async function processorLinkOf(
  app: Application,
  { tenant_id: tenantId, environment }: ApiClient,
  { employer_id: employerId, customer, after_completion_url: afterCompletionUrl, ...asked }: NewPaymentLink,
  plan: InstallmentPlan | null,
  linkId: string,
  { keyedRequest: _, ...context }: CommandContext,
) {
  const { name, email } = customer
  const payer = { employerId, tenantId, environment, name, email }
  const link = {
    linkId,
    customerId: await ensureCustomer(app, payer, context),
    amountCents: plan?.down_payment_cents ?? asked.premium_cents + asked.fee_cents,
    description: describeContext(asked.payment_context),
    afterCompletionUrl,
    keepsMethod: plan !== null,
  }
  const key = `link-${derivedId(linkId, JSON.stringify(link))}`
  return app.processors[environment].createPaymentLink(link, key)
}
