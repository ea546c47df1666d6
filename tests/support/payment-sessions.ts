import { expect } from 'vitest'
import { partner } from './payments.ts'
import { type Answer, operate, type SeedableService, type SeededTenant, send } from './seed.ts'
import type { SharedService } from './service.ts'

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

/** A bank account of a payer who authorizes its debit. */
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

const refusalOf = ({ status, body }: Answer) => [status, body.ok, body.error, body.message]
const unavailable = (word: string) => [409, false, 'Unavailable', expect.stringContaining(word)]

/** What partner, payer and operator do with the sessions of a tenant, which are asked for with each call. */
export function sessionCallsOf(at: () => readonly [SharedService, SeededTenant]) {
  const ask = (method: string, path: string, body?: unknown, key?: string) => {
    const [service, tenant] = at()
    return partner(service, tenant.clientHeaders, method, path, body, key)
  }
  const publicly = (token: string, path: string, body?: unknown) =>
    send(`${at()[0].paymentsUrl}/public/payment-sessions/${token}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      body,
    })
  const page = (token: string, path = '') => publicly(token, path)
  const post = (token: string, path: string, body: unknown = {}) => publicly(token, path, body)
  const checkout = (token: string) => post(token, '/checkout')
  const arrange = (token: string) => post(token, '/bank-debit', BANK_ACCOUNT)
  const operated = (path: string, body: object = {}) => operate(at()[0], 'POST', path, body)
  return {
    ask,
    page,
    post,
    checkout,
    arrange,
    refusalOf,
    unavailable,
    conflict: (word: string) => [409, false, 'Conflict', expect.stringContaining(word)],
    session: (overrides: Readonly<Record<string, unknown>> = {}) => newSession(...at(), overrides),
    shown: async (id: string) => (await ask('GET', `/payment-sessions/${id}`)).body.data,
    listed: async (query: string): Promise<string[]> =>
      (await ask('GET', `/payment-sessions?limit=200&${query}`)).body.data.map(
        ({ id }: { id: string }) => id,
      ),
    reissue: (id: string, body: unknown = {}, key?: string) =>
      ask('POST', `/payment-sessions/${id}/reissue`, body, key),
    cancel: (id: string) => ask('DELETE', `/payment-sessions/${id}`),
    pay: (id: string) => operated(`/card-processor/${id}/succeed`),
    advance: (seconds: number) => operated('/clock/advance', { seconds }),
    fault: (point: string, mode: string) => operated('/faults', { point, mode, times: 1 }),
    /** Nobody can pay it any more; its page still tells how it stands. */
    async expectClosed(token: string, status: string, word: string): Promise<void> {
      expect(refusalOf(await checkout(token))).toEqual(unavailable(word))
      expect(refusalOf(await arrange(token))).toEqual(unavailable(word))
      const { status: answered, body } = await page(token)
      expect([answered, body.data.status, body.data.takes_cards]).toEqual([200, status, false])
    },
  }
}
