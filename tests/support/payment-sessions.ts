import { expect } from 'vitest'
import { partner } from './payments.ts'
import { operate, type SeedableService, type SeededTenant } from './seed.ts'

/** Checkout settings with which sessions can be sold. */
export const CHECKOUT = {
  enabled: true,
  display_name: 'Harbor Premium Pay',
  support_email: 'help@harbor.example',
  sender_name: 'Harbor',
  sender_email: 'billing@harbor.example',
  link_format: '/pay/{token}',
  link_ttl_minutes: 1_440,
}

/** A bank account of a payer who authorises its debit. */
export const BANK_ACCOUNT = {
  account_holder_name: 'Tidewater Joinery LLC',
  routing_number: '021000021',
  account_number: '000123456789',
  account_type: 'checking',
  authorized: true,
}

/** Lets a tenant sell by sessions. */
export function enableCheckout(
  service: SeedableService,
  { tenantId }: Pick<SeededTenant, 'tenantId'>,
  settings: Readonly<Record<string, unknown>> = {},
) {
  return operate(service, 'PUT', `/tenants/${tenantId}/checkout`, { ...CHECKOUT, ...settings })
}

/** A request for a session of 105 dollars that is accepted. */
export function sessionBody(
  tenant: Pick<SeededTenant, 'employerId' | 'carrierId' | 'policyId'>,
  overrides: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_id: tenant.policyId,
    amount_cents: 10_500,
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
    ...overrides,
  }
}

/** Creates a session. @returns what its creation is answered with. */
export async function newSession(
  service: { readonly paymentsUrl: string },
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<ReturnType<typeof JSON.parse>> {
  const body = sessionBody(tenant, overrides)
  const answer = await partner(service, tenant.clientHeaders, 'POST', '/payment-sessions', body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
}

/** The token in the address of a session's page. */
export function tokenOf({ url }: { readonly url: string }): string {
  return url.split('/').at(-1)!
}
