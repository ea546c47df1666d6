import { expect } from 'vitest'
import { serviceTime } from './core.ts'
import { newLink, partner, webhookEvents } from './payments.ts'
import { operate, type SeedableService, type SeededTenant, seedTenant } from './seed.ts'
import { subscriptionInvoice } from './stripe-events.ts'
import type { StripeStandIn } from './stripe-stand-in.ts'

type PaymentsService = SeedableService & { readonly paymentsUrl: string }
/** What tests read of answers. */
export type Json = ReturnType<typeof JSON.parse>

/** Creates a payment link, of 105 dollars and sent by no email unless overridden. @returns what is answered. */
export function createLink(
  service: PaymentsService,
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Json> {
  const terms = { premium_cents: 10_500, fee_cents: 0, payment_context: 'premium_due' }
  return newLink(service, tenant, { ...terms, delivery: { email: false }, ...overrides })
}

/** A tenant whose employer has a customer at the card processor. */
export async function tenantWithCustomer(
  service: PaymentsService,
  options: Parameters<typeof seedTenant>[1] = {},
): Promise<SeededTenant> {
  const tenant = await seedTenant(service, options)
  await createLink(service, tenant)
  return tenant
}

/** A request for a subscription that is accepted. */
export function subscriptionBody(
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_id: tenant.policyId,
    amount_cents: 5_000,
    payment_method_id: 'pm_card_visa',
    ...overrides,
  }
}

/** Starts a subscription. @returns it, as it is answered. */
export async function subscribe(
  service: PaymentsService,
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Json> {
  const body = subscriptionBody(tenant, overrides)
  const answer = await partner(service, tenant.clientHeaders, 'POST', '/subscriptions', body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
}

/** A live subscription at Stripe whose first payment came. @returns it, as it was answered. */
export async function subscribeAtStripe(
  service: PaymentsService,
  stripe: StripeStandIn,
  tenant: SeededTenant,
): Promise<Json> {
  const made = await subscribe(service, tenant, { payment_method_id: stripe.method() })
  await operate(service, 'POST', '/drain')
  const first = subscriptionInvoice(made._id, `in_first_${made._id}`, await serviceTime(service))
  await stripe.notify('invoice.paid', first)
  return made
}

/** A subscription as its partner reads it. */
export async function subscriptionOf(
  service: PaymentsService,
  tenant: SeededTenant,
  id: string,
): Promise<Json> {
  const answer = await partner(service, tenant.clientHeaders, 'GET', `/subscriptions/${id}`)
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
  return answer.body.data
}

/** Moves the virtual clock and waits until all that fell due is done. @returns the time, epoch milliseconds. */
export async function advance(
  service: PaymentsService,
  by: { readonly to: number | string } | { readonly seconds: number },
): Promise<number> {
  const { now } = await operate(
    service,
    'POST',
    '/clock/advance',
    'to' in by ? { to: new Date(by.to).toISOString() } : by,
  )
  await operate(service, 'POST', '/drain')
  return Date.parse(now)
}

/**
 * The webhook events raised about subscriptions of a tenant, type and body: the beginning, the charges by number, the end.
 * They are raised in no order that counts.
 */
export async function told(
  service: PaymentsService,
  tenantId: string,
): Promise<readonly (readonly [string, Json])[]> {
  const events = await webhookEvents(service, tenantId)
  return events
    .filter(([type]) => !type.startsWith('payment.'))
    .sort(([one, of], [other, by]) => placeOf(one, of) - placeOf(other, by))
}

function placeOf(type: string, { installment_number }: Json): number {
  if (type === 'subscription.created') return 0
  if (type === 'subscription.cancelled') return Number.MAX_SAFE_INTEGER
  return 2 * installment_number + (type === 'installment.paid' ? 1 : 0)
}
