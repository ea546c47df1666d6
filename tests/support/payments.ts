import { expect } from 'vitest'
import { allEvents, type ShownEvent } from './core.ts'
import { type Answer, operate, type SeedableService, type SeededTenant, send } from './seed.ts'

/** Calls the payments API as a partner. */
export function partner(
  service: { readonly paymentsUrl: string },
  headers: Readonly<Record<string, string>>,
  method: string,
  path: string,
  body?: unknown,
  key?: string,
): Promise<Answer> {
  return send(`${service.paymentsUrl}/api/v1${path}`, {
    method,
    headers: { ...headers, ...(key === undefined ? {} : { 'Idempotency-Key': key }) },
    ...(body === undefined ? {} : { body }),
  })
}

/** A request for a payment link of 105 dollars that is accepted. */
export function linkBody(
  tenant: Pick<SeededTenant, 'employerId' | 'carrierId' | 'policyId'>,
  overrides: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_id: tenant.policyId,
    premium_cents: 10_000,
    fee_cents: 500,
    payment_type: 'ONE_TIME',
    payment_context: 'full_payment',
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
    ...overrides,
  }
}

/** Creates a payment link. @returns what its creation is answered with. */
export async function newLink(
  service: { readonly paymentsUrl: string },
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<ReturnType<typeof JSON.parse>> {
  const answer = await partner(
    service,
    tenant.clientHeaders,
    'POST',
    '/payment-links',
    linkBody(tenant, overrides),
  )
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
}

/** A payment link as its partner reads it. */
export async function linkOf(
  service: { readonly paymentsUrl: string },
  tenant: SeededTenant,
  linkId: string,
): Promise<ReturnType<typeof JSON.parse>> {
  const answer = await partner(service, tenant.clientHeaders, 'GET', `/payment-links/${linkId}`)
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
  return answer.body.data
}

/** The webhook events of a tenant, type and body, in the order in which they were raised. */
export async function webhookEvents(
  service: SeedableService,
  tenantId: string,
): Promise<readonly (readonly [string, ReturnType<typeof JSON.parse>])[]> {
  await operate(service, 'POST', '/drain')
  return (await allEvents(service, 'WebhookEventRaised'))
    .map(({ data }: ShownEvent) => data as { tenant_id: string; event_type: string; payload: unknown })
    .filter(({ tenant_id }) => tenant_id === tenantId)
    .map(({ event_type, payload }) => [event_type, payload] as const)
}

/** The bodies of those of one type. */
export async function raised(
  service: SeedableService,
  tenantId: string,
  type: string,
): Promise<readonly ReturnType<typeof JSON.parse>[]> {
  const events = await webhookEvents(service, tenantId)
  return events.filter(([of]) => of === type).map(([, payload]) => payload)
}
