import { type Answer, newFein, operate, type SeedableService, send } from './seed.ts'

let keys = 0
/** A key that no other intake of this run has. */
export const newIntakeKey = () => `intake-${process.pid}-${Date.now()}-${keys++}`

/** The parts of an intake that may be overridden, field by field. */
interface IntakeParts {
  readonly employer?: Readonly<Record<string, unknown>>
  readonly policy?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** A whole intake that is accepted: a new key, a new FEIN, two owners. */
export function intakeBody({ employer, policy, ...rest }: IntakeParts = {}): Record<string, unknown> & {
  employer: Record<string, unknown>
  policy: Record<string, unknown>
} {
  return {
    idempotency_key: newIntakeKey(),
    employer: {
      legal_name: 'Tidewater Joinery LLC',
      fein: newFein(),
      entity_type: 'LLC',
      address: { line1: '12 Quay St', city: 'Astoria', state: 'OR', zip: '97103' },
      contact_name: 'Wilhelmina Oakes',
      contact_email: 'office@tidewater.example',
      phone: '+15035550147',
      email: 'hello@tidewater.example',
      ...employer,
    },
    owners: [
      {
        first_name: 'Wilhelmina',
        last_name: 'Oakes',
        ownership_percentage: 62.5,
        class_code: '2812',
        dob: '1971-03-08',
        title: 'President',
      },
      { first_name: 'Barnaby', last_name: 'Oakes', excluded: true },
    ],
    policy: {
      state: 'OR',
      class_code: '2812',
      effective_date: '2026-02-01',
      annual_premium_cents: 412_300,
      el_limit_tier: '1M/1M/1M',
      ...policy,
    },
    ...rest,
  }
}

/** Sends an intake. */
export function takeIn(
  service: { readonly paymentsUrl: string },
  headers: Readonly<Record<string, string>>,
  body: unknown,
): Promise<Answer> {
  return send(`${service.paymentsUrl}/api/v1/intake/policies`, { method: 'POST', headers, body })
}

/** An API client of a tenant. */
export async function newClient(
  service: SeedableService,
  tenantId: string,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<{ clientId: string; clientSecret: string; headers: Record<string, string> }> {
  const { client_id: clientId, client_secret: clientSecret } = await operate(
    service,
    'POST',
    '/api-clients',
    {
      tenant_id: tenantId,
      name: 'Partner',
      products: ['payments'],
      ...overrides,
    },
  )
  const headers = { 'X-Client-ID': clientId, 'X-Client-Secret': clientSecret }
  return { clientId, clientSecret, headers }
}

/** All items of a list of the operator API. */
export async function listed(
  service: SeedableService,
  path: string,
): Promise<readonly ReturnType<typeof JSON.parse>[]> {
  return operate(service, 'GET', `${path}${path.includes('?') ? '&' : '?'}limit=200`)
}

/** A ONE_TIME link for a policy that was taken in, as sold in full. */
export function payInFull(ids: {
  readonly employer_id: string
  readonly policy_id: string
}): Record<string, unknown> {
  return {
    ...ids,
    premium_cents: 412_300,
    payment_type: 'ONE_TIME',
    payment_context: 'full_payment',
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
  }
}

/** Creates a link for a policy and simulates its completion. @returns the link's id. */
export async function payFor(
  service: { readonly paymentsUrl: string },
  headers: Readonly<Record<string, string>>,
  ids: { readonly employer_id: string; readonly policy_id: string },
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<string> {
  const links = `${service.paymentsUrl}/api/v1/payment-links`
  const created = await send(links, { method: 'POST', headers, body: payInFull(ids) })
  if (created.status !== 201) throw new Error(`POST /payment-links: ${created.status} ${created.text}`)
  const { _id } = created.body.data
  await meanwhile()
  const paid = await send(`${links}/${_id}/simulate-completion`, { method: 'POST', headers, body: {} })
  if (paid.status !== 200) throw new Error(`simulate-completion: ${paid.status} ${paid.text}`)
  return _id
}
