import { randomInt, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { partner } from './payments.ts'
import { type Answer, operate, type SeededTenant, seedEmployer, seedPolicy } from './seed.ts'
import type { ServiceAddresses } from './service.ts'

type Json = ReturnType<typeof JSON.parse>
type Headers = Readonly<Record<string, string>>

export const digits = (count: number): string => Array.from({ length: count }, () => randomInt(10)).join('')

/** A request for an account of an employer, with numbers that nobody else has unless overridden. */
export const accountBody = (owner_id: string, overrides: Json = {}): Json => ({
  owner_type: 'employer',
  owner_id,
  routing_number: digits(9),
  account_number: digits(12),
  bank_name: 'First Bank',
  account_type: 'checking',
  ...overrides,
})

/** A request for the account of an employer that an item was linked with. @param made what the exchange answered. */
export const linkedAccountBody = (owner_id: string, made: Json, index = 0): Json => ({
  owner_type: 'employer',
  owner_id,
  bankconnect_item_id: made.bankconnect_item_id,
  bankconnect_account_id: made.accounts[index].bankconnect_account_id,
  access_token: made.access_token,
})

/** Simulates a partner who debits the accounts of its employers, and the operator. */
export function achDebitsOf(service: ServiceAddresses, tenant: SeededTenant) {
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    key?: string,
    as: Headers = tenant.clientHeaders,
  ) => partner(service, as, method, path, body, key)
  /** What is answered with a status, else the test fails. */
  async function made(status: number, answer: Promise<Answer>): Promise<Json> {
    const { status: actual, text, body } = await answer
    expect([actual, text]).toEqual([status, expect.any(String)])
    return body.data
  }
  const shown = (path: string): Promise<Json> => made(200, ask('GET', path))

  /** An ACH account of an employer. @returns its id. */
  async function account(owner_id = tenant.employerId, as: Headers = tenant.clientHeaders): Promise<string> {
    return (await made(201, ask('POST', '/bank-accounts/ach', accountBody(owner_id), undefined, as)))._id
  }
  const debit = (bank_account_id: string, overrides: Json = {}): Json => ({
    employer_id: tenant.employerId,
    carrier_id: tenant.carrierId,
    policy_id: tenant.policyId,
    bank_account_id,
    amount_cents: 12_550,
    payment_purpose: 'paygo',
    ...overrides,
  })
  const entry = (overrides: Json = {}): Json => ({
    policyId: tenant.policyId,
    totalInDollars: 125.5,
    description: 'May premium',
    idempotencyKey: randomUUID(),
    ...overrides,
  })
  const collection = (bankAccountId: string, ...policyCollections: readonly Json[]): Json => ({
    employerId: tenant.employerId,
    bankAccountId,
    policyCollections,
  })
  return {
    ask,
    made,
    shown,
    account,
    debit,
    entry,
    collection,
    ops: (path: string, body: unknown = {}): Promise<Json> => operate(service, 'POST', path, body),
    drain: () => operate(service, 'POST', '/drain'),
    /** Creates a debit. @returns its id. */
    created: async (bank_account_id: string, overrides: Json = {}): Promise<string> =>
      (await made(201, ask('POST', '/ach/debits', debit(bank_account_id, overrides)))).transaction_id,
    list: (query = ''): Promise<Json> => shown(`/ach/transactions?limit=200${query}`),
    total: async (query = ''): Promise<number> =>
      (await ask('GET', `/ach/transactions?limit=1${query}`)).body.pagination.total,
    policy: async (overrides: Json = {}): Promise<string> =>
      (await seedPolicy(service, { employerId: tenant.employerId, carrierId: tenant.carrierId }, overrides))
        .policyId,
    /** An employer of its own with a policy of its own. */
    async insured(): Promise<{ readonly employerId: string; readonly policyId: string }> {
      const { employerId } = await seedEmployer(service, { tenantId: tenant.tenantId })
      const { policyId } = await seedPolicy(service, { employerId, carrierId: tenant.carrierId })
      return { employerId, policyId }
    },
  }
}
