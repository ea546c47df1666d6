import { expect } from 'vitest'
import { allEvents, type ShownEvent } from './core.ts'
import { type Answer, operate, type SeedableService, type SeededTenant, seedTenant, send } from './seed.ts'

/** A service with a host for payments. */
export type PaymentsService = SeedableService & { readonly paymentsUrl: string }

type Headers = Readonly<Record<string, string>>
/** What tests read of answers. */
export type Json = ReturnType<typeof JSON.parse>

/** Calls the payments API as a partner. */
export function asPartner(
  service: PaymentsService,
  headers: Headers,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  return send(`${service.paymentsUrl}/api/v1${path}`, {
    method,
    headers: { ...headers },
    ...(body === undefined ? {} : { body }),
  })
}

/** Creates a payment link, of 105 dollars unless overridden. @returns what is answered. */
export async function createLink(
  service: PaymentsService,
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Json> {
  const answer = await asPartner(service, tenant.clientHeaders, 'POST', '/payment-links', {
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_id: tenant.policyId,
    premium_cents: 10_500,
    payment_type: 'ONE_TIME',
    payment_context: 'premium_due',
    customer: { name: 'Rosen Masonry LLC', email: 'billing@rosen-masonry.example' },
    delivery: { email: false },
    ...overrides,
  })
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
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
  const answer = await asPartner(service, tenant.clientHeaders, 'POST', '/subscriptions', body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
}

/** A subscription as its partner reads it. */
export async function subscriptionOf(
  service: PaymentsService,
  tenant: SeededTenant,
  id: string,
): Promise<Json> {
  const answer = await asPartner(service, tenant.clientHeaders, 'GET', `/subscriptions/${id}`)
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
  await operate(service, 'POST', '/drain')
  const events = await allEvents(service, 'WebhookEventRaised')
  return events
    .map(({ data }: ShownEvent) => data as { tenant_id: string; event_type: string; payload: Json })
    .filter(({ tenant_id, event_type }) => tenant_id === tenantId && !event_type.startsWith('payment.'))
    .map(({ event_type, payload }) => [event_type, payload] as const)
    .sort(([one, of], [other, by]) => placeOf(one, of) - placeOf(other, by))
}

function placeOf(type: string, { installment_number }: Json): number {
  if (type === 'subscription.created') return 0
  if (type === 'subscription.cancelled') return Number.MAX_SAFE_INTEGER
  return 2 * installment_number + (type === 'installment.paid' ? 1 : 0)
}
