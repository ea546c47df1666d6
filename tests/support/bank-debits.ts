import { expect } from 'vitest'
import { digits } from './ach-debits.ts'
import { BANK_ACCOUNT, newSession, tokenOf } from './payment-sessions.ts'
import { partner, raised } from './payments.ts'
import { type Answer, askOperator, operate, type SeededTenant, seedPolicy, send } from './seed.ts'
import type { ServiceAddresses } from './service.ts'

/** An account of a payer with numbers that a return may disable, which others have not. */
export const ownAccount = () => ({ ...BANK_ACCOUNT, account_number: digits(12) })

/** A carrier with a policy. */
export interface SettlingCarrier {
  readonly carrierId: string
  readonly policyId: string
}

/** A session whose payer chose the bank option. */
export interface ArrangedSession {
  readonly id: string
  readonly token: string
  /** Of its page. */
  readonly url: string
  /** The debit; undefined where nothing is paid at signing. */
  readonly debitId: string
}

type Json = ReturnType<typeof JSON.parse>

/** Simulates partner, payer, operator and bank for the bank debits of a tenant. */
export function bankDebitsOf(service: ServiceAddresses, tenant: SeededTenant) {
  const ask = (method: string, path: string, body?: unknown) =>
    partner(service, tenant.clientHeaders, method, path, body)
  const ops = (path: string, body: unknown = {}): Promise<Json> => operate(service, 'POST', path, body)
  /** As {@link ops}, whatever the answer is. */
  const tryOps = (path: string, body: unknown = {}): Promise<Answer> =>
    askOperator(service, 'POST', path, body)
  const drain = () => ops('/drain')
  const toldOf = async (type: string, of: Record<string, string>): Promise<readonly Json[]> =>
    (await raised(service, tenant.tenantId, type)).filter((payload) =>
      Object.entries(of).every(([name, value]) => payload[name] === value),
    )
  /** The transactions of a tenant; with the words of a filter. */
  async function transactions(filter = ''): Promise<readonly Json[]> {
    await drain()
    const { status, body } = await ask('GET', `/ach/transactions?limit=200${filter}`)
    expect(status).toBe(200)
    return body.data
  }

  /** A carrier that settles in its own way, with a policy. */
  async function carrierOf(settlement_type: 'fbo' | 'direct' | null): Promise<SettlingCarrier> {
    const { carrier_id } = await ops('/carriers', { tenant_id: tenant.tenantId, name: 'C', settlement_type })
    const { policyId } = await seedPolicy(service, { employerId: tenant.employerId, carrierId: carrier_id })
    return { carrierId: carrier_id, policyId }
  }
  const authorize = (token: string, account: unknown = BANK_ACCOUNT) =>
    send(`${service.paymentsUrl}/public/payment-sessions/${token}/bank-debit`, {
      method: 'POST',
      body: account,
    })
  /** A session of a carrier, the bank option chosen. */
  async function arranged(
    of: SettlingCarrier,
    overrides: Record<string, unknown> = {},
    account: unknown = BANK_ACCOUNT,
  ): Promise<ArrangedSession> {
    const created = await newSession(service, tenant, {
      carrier_id: of.carrierId,
      policy_id: of.policyId,
      ...overrides,
    })
    const token = tokenOf(created)
    const answer = await authorize(token, account)
    expect([answer.status, answer.body.data.status]).toEqual([200, 'scheduled'])
    return { id: created.id, token, url: created.url, debitId: answer.body.data.leg_id }
  }
  const report = (debitId: string, verb: 'acknowledge' | 'settle' | 'return', body: unknown = {}) =>
    ops(`/bank-rail/${debitId}/${verb}`, body)
  /** A session whose debit the bank has. */
  async function submitted(
    of: SettlingCarrier,
    overrides: Record<string, unknown> = {},
    account: unknown = BANK_ACCOUNT,
  ): Promise<ArrangedSession> {
    const session = await arranged(of, overrides, account)
    await ops('/debit-batches')
    await report(session.debitId, 'acknowledge')
    return session
  }

  return {
    ask,
    ops,
    tryOps,
    drain,
    transactions,
    carrierOf,
    authorize,
    arranged,
    report,
    submitted,
    webhooksOfDebit: (type: string, leg_id: string) => toldOf(type, { leg_id }),
    webhooksOfSession: (type: string, payment_session_id: string) => toldOf(type, { payment_session_id }),
    session: async (id: string): Promise<Json> => (await ask('GET', `/payment-sessions/${id}`)).body.data,
    transaction: async (debitId: string): Promise<Json> =>
      (await transactions()).find(({ transaction_id }) => transaction_id === debitId),
    credit: (of: SettlingCarrier, credit: Record<string, unknown>): Promise<Json> =>
      ops('/bank-credits', { carrier_id: of.carrierId, amount_cents: 10_500, ...credit }),
    now: async (): Promise<number> => Date.parse((await operate(service, 'GET', '/clock')).now),
    advanceTo: (at: number) => ops('/clock/advance', { to: new Date(at).toISOString() }),
  }
}
