import { randomUUID } from 'node:crypto'
import { enableCheckout } from './payment-sessions.ts'
import { partner } from './payments.ts'
import { type Answer, operate, type SeedableService, type SeededTenant } from './seed.ts'

/** A request for a financing session of 1,050 dollars that is accepted, under a key of its own. */
export function financingBody(
  tenant: Pick<SeededTenant, 'employerId' | 'carrierId' | 'policyId'>,
  overrides: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    billing_method: 'PREMIUM_FINANCE',
    idempotency_key: randomUUID(),
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_id: tenant.policyId,
    premium_cents: 100_000,
    fee_cents: 5_000,
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
    ...overrides,
  }
}

/** The same with what quotes are asked for by. */
export function checkoutBody(
  tenant: Pick<SeededTenant, 'employerId' | 'carrierId' | 'policyId' | 'employerName'>,
  overrides: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const insured = {
    business_name: tenant.employerName,
    address: '1 Main St',
    city: 'Reno',
    state: 'NV',
    zip_code: '89501',
  }
  return financingBody(tenant, { insured, ...overrides })
}

/** A request for quotes for a policy, whose account sells from now on. */
export async function sellableCheckout(
  service: SeedableService,
  policyId: string,
): Promise<Record<string, unknown>> {
  const policy = await operate(service, 'GET', `/policies/${policyId}`)
  const { employer_id: employerId, carrier_id: carrierId, tenant_id: tenantId } = policy
  const { legal_name: employerName } = await operate(service, 'GET', `/employers/${employerId}`)
  await enableCheckout(service, { tenantId })
  return checkoutBody({ policyId, employerId, carrierId, employerName })
}

/** Asks for quotes, or how that stands. */
export function checkout(
  service: { readonly paymentsUrl: string },
  { clientHeaders }: Pick<SeededTenant, 'clientHeaders'>,
  body: unknown,
): Promise<Answer> {
  return partner(service, clientHeaders, 'POST', '/payment-sessions/financing-checkout', body)
}

/** A checkout that has quotes, and the request for it. */
export async function quotedCheckout(
  service: SeedableService & { readonly paymentsUrl: string },
  tenant: SeededTenant,
  overrides: Readonly<Record<string, unknown>> = {},
) {
  const body = checkoutBody(tenant, overrides)
  const { data } = (await checkout(service, tenant, body)).body
  const { quotes } = await simulate(service, data.session_id, 'quotes')
  return { body, id: data.session_id as string, quotes, token: data.finance_access_token as string }
}

/** Simulates the provider. @returns the session as the operator sees it. */
export function simulate(
  service: SeedableService,
  sessionId: string,
  verb: 'quotes' | 'hold' | 'expire' | 'down-payment-notice',
  body: unknown = {},
): Promise<ReturnType<typeof JSON.parse>> {
  return operate(service, 'POST', `/financing/${sessionId}/${verb}`, body)
}
