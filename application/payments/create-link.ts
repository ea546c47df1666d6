import type { ApiClient } from '../../domain/access/api-client.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { checkoutSettings } from '../../domain/payments/checkout-settings.ts'
import {
  directBillingPlan,
  type InstallmentPlan,
  MOST_CHARGE_CENTS,
} from '../../domain/payments/direct-billing-plan.ts'
import { describeContext, type PaymentContext } from '../../domain/payments/payment-contexts.ts'
import { type PaymentLink, paymentLink } from '../../domain/payments/payment-link.ts'
import { PaymentLinkCreated } from '../../domain/payments/payment-link-events.ts'
import { namedPolicy } from '../access/named-policy.ts'
import type { Application } from '../application.ts'
import { type CommandContext, createdId } from '../command-handling/command-context.ts'
import { readable } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import { employerSubject, sealFields } from '../sealing.ts'
import { withOwnPairs } from './metadata.ts'
import { ensureCustomer } from './processor-customers.ts'
import { unlessRefused } from './refused-fields.ts'

const DAY_MS = 86_400_000

export interface NewPaymentLink {
  readonly employerId: string
  /** Null: the only one of the key. */
  readonly carrierId: string | null
  readonly policyId: string
  readonly premiumCents: number
  readonly feeCents: number
  readonly feeBreakdown: readonly { readonly label: string; readonly amount_cents: number }[]
  readonly paymentType: PaymentLink['payment_type']
  readonly paymentContext: PaymentContext
  readonly customer: { readonly name: string; readonly email: string; readonly phone: string | null }
  readonly delivery: PaymentLink['delivery']
  /** Both are there for DIRECT_BILLING, and do not count otherwise. */
  readonly totalInstallments: number | null
  readonly downPaymentMonths: number | null
  readonly createdBy: string | null
  readonly afterCompletionUrl: string | null
  readonly invoiceId: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** The plan of a link, null for one that is paid at once. */
export function planOf(
  link: Pick<
    NewPaymentLink,
    'paymentType' | 'premiumCents' | 'feeCents' | 'totalInstallments' | 'downPaymentMonths'
  >,
): InstallmentPlan | null | Rejection {
  if (link.paymentType !== 'DIRECT_BILLING') return null
  return directBillingPlan(
    link.premiumCents + link.feeCents,
    link.totalInstallments!,
    link.downPaymentMonths!,
  )
}

/**
 * Creates a payment link: the employer's customer and the link at the card processor, then one append. All keys derive
 * from the command: who asks again after a crash or an outage gets the same link.
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
    : [input.premiumCents + input.feeCents]
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
  const isPlan = plan !== null
  const data = await sealFields(
    app.personalData,
    PaymentLinkCreated,
    {
      payment_link_id,
      tenant_id,
      environment,
      employer_id: employer.employer_id,
      carrier_id: carrier.carrier_id,
      policy_id: policy.policy_id,
      premium_cents: input.premiumCents,
      fee_cents: input.feeCents,
      fee_breakdown: [...input.feeBreakdown],
      payment_type: input.paymentType,
      payment_context: input.paymentContext,
      customer: { ...input.customer },
      delivery: input.delivery,
      installment_plan: plan,
      down_payment_months: isPlan ? input.downPaymentMonths : null,
      created_by: input.createdBy,
      after_completion_url: input.afterCompletionUrl,
      invoice_id: input.invoiceId,
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
  return readable(app, paymentLink, await app.commands.create(paymentLink, payment_link_id, command, context))
}

/** The link at the card processor. Its key holds what is asked for: another body under a key that was left is another link. */
async function processorLinkOf(
  app: Application,
  { tenant_id: tenantId, environment }: ApiClient,
  { employerId, customer, premiumCents, feeCents, paymentContext, afterCompletionUrl }: NewPaymentLink,
  plan: InstallmentPlan | null,
  linkId: string,
  { keyedRequest: _, ...context }: CommandContext,
) {
  const { name, email } = customer
  const payer = { employerId, tenantId, environment, name, email }
  const link = {
    linkId,
    customerId: await ensureCustomer(app, payer, context),
    amountCents: plan?.down_payment_cents ?? premiumCents + feeCents,
    description: describeContext(paymentContext),
    afterCompletionUrl,
    keepsMethod: plan !== null,
  }
  const key = `link-${derivedId(linkId, JSON.stringify(link))}`
  return app.processors[environment].createPaymentLink(link, key)
}
