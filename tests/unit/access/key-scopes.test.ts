import { describe, expect, test } from 'vitest'
import { employerInScope, reportablePolicy } from '../../../application/access/agent-scope.ts'
import { namedPolicy } from '../../../application/access/named-policy.ts'
import { prepareCollection } from '../../../application/banking/debits/collections.ts'
import { transactionOf } from '../../../application/banking/debits/transactions.ts'
import type { Application } from '../../../application/commands/application.ts'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import { applyNotice } from '../../../application/payments/processor-notices.ts'
import { findReportSubject } from '../../../application/payroll/report-payroll.ts'
import type { DebitCollection } from '../../../domain/banking/debits/debit-collection.ts'

const [TENANT, EMPLOYER, OTHER, ONE, TWO, POLICY] = [...'abcdef'].map((digit) => digit.repeat(24)) as [
  ...[string, string, string, string, string, string],
]
const place = { tenant_id: TENANT, environment: 'live' } as const
const all = { ...place, carrier_ids: 'all', employer_ids: 'all' } as const

/** An application in which nothing but these stands. @param states by category and id. */
function holding(states: Readonly<Record<string, unknown>>): Application {
  const commands = {
    load: async ({ category }: { category: string }, id: string) => ({
      state: states[`${category} ${id}`] ?? null,
    }),
    reading: (run: (reader: unknown) => unknown) => run(commands),
  }
  return {
    commands,
    personalData: { fingerprint: () => ONE },
    clock: { now: () => 0 },
    faults: { take: async () => null },
  } as unknown as Application
}

describe('a request to the payments API', () => {
  const policy = { ...place, employer_id: EMPLOYER, carrier_id: ONE }
  const app = (of: Partial<{ employer_id: string; carrier_id: string; environment: string }> = {}) =>
    holding({
      [`employer ${EMPLOYER}`]: place,
      [`carrier ${ONE}`]: place,
      [`carrier ${TWO}`]: place,
      [`policy ${POLICY}`]: { ...policy, ...of },
    })
  const ids = { employer_id: EMPLOYER, carrier_id: ONE, policy_id: POLICY }
  const toOne = { ...all, carrier_ids: [ONE] }

  type Row = readonly [string, Parameters<typeof app>[0], Parameters<typeof namedPolicy>[1], string]
  test.each<Row>([
    ['of another carrier', { carrier_id: TWO }, all, 'policy_mismatch'],
    ['of another carrier, which the key does not reach', { carrier_id: TWO }, toOne, 'carrier_out_of_scope'],
    ['of another employer', { employer_id: OTHER }, all, 'policy_mismatch'],
    [
      'of another employer, which the key does not reach',
      { employer_id: OTHER },
      { ...all, employer_ids: [EMPLOYER] },
      'policy_out_of_scope',
    ],
    ['of another environment', { environment: 'sandbox' }, all, 'policy_not_found'],
  ])('bills no policy %s', async (_, of, key, code) => {
    expect(await namedPolicy(app(), key, ids)).toMatchObject({ policy })
    expect(await namedPolicy(app(of), key, ids)).toMatchObject({ rejected: true, code })
  })
})

test('a collection that reaches carriers outside the key is none of its business, also when it is known', async () => {
  const entry = { transaction_id: ONE, policy_id: POLICY, amount_cents: 1, description: '' }
  const known: DebitCollection = {
    collection_id: ONE,
    ...place,
    employer_id: EMPLOYER,
    bank_account_id: ONE,
    entries: [ONE, TWO].map((carrier_id) => ({ ...entry, carrier_id })),
    accepted_at: '2026-01-01T00:00:00.000Z',
  }
  const app = holding({ [`debitCollection ${ONE}`]: known })
  const asked = { employerId: EMPLOYER, bankAccountId: ONE, entries: [] }
  const key = { ...all, client_id: 'client' }
  const actor = { type: 'api_client', id: 'client' } as const
  const context = { actor, tenantId: ONE, environment: 'live', correlationId: ONE, commandId: ONE } as const
  expect(await prepareCollection(app, key, asked, context)).toEqual({ collection: known, fresh: null })
  expect(await prepareCollection(app, { ...key, carrier_ids: [ONE] }, asked, context)).toMatchObject({
    kind: 'forbidden',
    field: 'policyCollections[1].policyId',
  })
})

test('what the legacy service collected for nobody knows which carrier is for keys of all carriers', async () => {
  const record = { ...place, employer_id: EMPLOYER, carrier_id: null }
  const app = holding({ [`legacyCollection ${ONE}`]: record })
  expect(await transactionOf(app, all, ONE)).toEqual({ kind: 'legacy', record })
  expect(await transactionOf(app, { ...all, carrier_ids: [ONE] }, ONE)).toMatchObject({ kind: 'forbidden' })
})

test('payroll is reported against policies of the carriers of the key', async () => {
  const policy = { employer_id: EMPLOYER, carrier_id: ONE, status: 'active', expiration_date: '2099-01-01' }
  const app = holding({
    [`reservation fein_live_${ONE}`]: { owner_id: EMPLOYER },
    [`reservation policy_number_${TENANT}_live_${ONE}`]: { owner_id: POLICY },
    [`employer ${EMPLOYER}`]: { ...place, employer_id: EMPLOYER },
    [`policy ${POLICY}`]: policy,
  })
  const report = { fein: '12-3456789', policyNumber: 'WC-1', employees: [], period: null }
  const reported = (scope: { carrier_ids: 'all' | string[]; employer_ids: 'all' | string[] }) =>
    findReportSubject(app, { tenantId: TENANT, environment: 'live', scope } as never, report)
  expect(await reported({ carrier_ids: [ONE], employer_ids: [EMPLOYER] })).toMatchObject({
    policy: { state: policy },
  })
  for (const [scope, code] of [
    [{ carrier_ids: [TWO], employer_ids: 'all' }, 'policy_not_found'],
    [{ carrier_ids: 'all', employer_ids: [OTHER] }, 'employer_not_found'],
  ] as const) {
    expect(await reported(scope as never)).toMatchObject({ rejected: true, code })
  }
})

test('an agent acts for employers of its payroll company, against their own policies', async () => {
  const linked = { payroll_company_ids: [ONE] }
  const policy = { employer_id: EMPLOYER, status: 'active', expiration_date: '2099-01-01' }
  const app = holding({ [`employer ${EMPLOYER}`]: linked, [`policy ${POLICY}`]: policy })
  const agentOf = (entity_id: string) => ({ entity_type: 'payroll_company', entity_id }) as const
  expect(await employerInScope(app, agentOf(ONE), EMPLOYER)).toBe(linked)
  expect(await employerInScope(app, agentOf(TWO), EMPLOYER)).toBeNull()
  expect(await reportablePolicy(app, EMPLOYER, POLICY)).toMatchObject({ state: policy })
  expect(await reportablePolicy(app, OTHER, POLICY)).toBeNull()
})

test('a notice of a card processor tells of nothing in the other environment', async () => {
  const app = holding({ [`paymentLink ${ONE}`]: { ...place, processor: 'stripe' } })
  const told = (environment: 'live' | 'sandbox') =>
    applyNotice(
      app,
      { environment, processor: 'stripe' },
      { about: 'link_expired', linkId: ONE, noticeId: 'evt_1', at: 0 },
      {} as CommandContext,
    )
  await told('sandbox')
  // it gets as far as the command
  await expect(told('live')).rejects.toThrow('execute')
})
