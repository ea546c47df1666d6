import { beforeAll, describe, expect, test } from 'vitest'
import { accountBody } from '../../../support/ach-debits.ts'
import { partner } from '../../../support/payments.ts'
import {
  type Answer,
  askOperator,
  operate,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
} from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** What becomes of debits that a gate stops, as partners and operators see it. */

const UNUSUAL = 'amount_anomaly_above_100pct_of_recent_average'
let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

type Json = ReturnType<typeof JSON.parse>
interface Insured {
  readonly employerId: string
  readonly policyId: string
  readonly accountId: string
}
const ops = (path: string, body: unknown = {}): Promise<Json> => operate(service, 'POST', path, body)
const tryOps = (path: string, body: unknown = {}): Promise<Answer> => askOperator(service, 'POST', path, body)
async function asked(method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await partner(service, tenant.clientHeaders, method, path, body)
  expect([answer.status < 300, answer.text]).toEqual([true, expect.any(String)])
  return answer.body.data
}

/** An employer with a policy and an account. */
async function insured(policy: Record<string, unknown> = {}): Promise<Insured> {
  const { employerId } = await seedEmployer(service, { tenantId: tenant.tenantId })
  const { policyId } = await seedPolicy(service, { employerId, carrierId: tenant.carrierId }, policy)
  const { _id: accountId } = await asked('POST', '/bank-accounts/ach', accountBody(employerId))
  return { employerId, policyId, accountId }
}
/** @returns the id of a debit that was accepted. */
async function debit(of: Insured, amount_cents: number, more: Record<string, unknown> = {}): Promise<string> {
  const { transaction_id } = await asked('POST', '/ach/debits', {
    employer_id: of.employerId,
    carrier_id: tenant.carrierId,
    policy_id: of.policyId,
    amount_cents,
    bank_account_id: of.accountId,
    payment_purpose: 'paygo',
    ...more,
  })
  return transaction_id
}
/** As status, group and reason. */
async function stands(id: string): Promise<readonly unknown[]> {
  const { status, status_group, reason } = await asked('GET', `/ach/debits/${id}/status`)
  return [status, status_group, reason]
}
const quarantined = (of: Insured): Promise<Json> =>
  operate(service, 'GET', `/debits?status=quarantined&employer_id=${of.employerId}`)
const alertOf = async (id: string): Promise<Json> => {
  const path = `/alerts?kind=debit_quarantined&tenant_id=${tenant.tenantId}&limit=200`
  const alerts: readonly Json[] = await operate(service, 'GET', path)
  return alerts.find(({ about }) => about.leg_id === id)
}

const SCHEDULED = ['Scheduled', 'in_flight', null]
const QUARANTINED = ['quarantined', 'failed', UNUSUAL]

describe('a run of the batch worker', () => {
  test('goes by the policy as it stands then, and stops what is not billed as payroll goes', async () => {
    const [one, direct, unset, cancelled] = await Promise.all([
      insured(),
      insured({ billing_type: 'DIRECT_BILLING' }),
      insured({ billing_type: null }),
      insured(),
    ])
    const ids = await Promise.all([one, direct, unset, cancelled].map((of) => debit(of, 1_000)))
    const changed = await insured()
    ids.push(await debit(changed, 1_000))
    await operate(service, 'PATCH', `/policies/${changed.policyId}`, { billing_type: 'DIRECT_BILLING' })
    await ops(`/policies/${cancelled.policyId}/cancel`)
    const counts = await ops('/debit-batches')
    expect(counts).toMatchObject({ scheduled: expect.any(Number), failed: expect.any(Number) })
    expect(counts.scheduled).toBeGreaterThanOrEqual(2)
    expect(counts.failed).toBeGreaterThanOrEqual(3)
    const nonPaygo = ['failed', 'failed', 'non_paygo_blocked']
    expect(await Promise.all(ids.map(stands))).toEqual([
      ...[SCHEDULED, nonPaygo, SCHEDULED, ['failed', 'failed', 'policy_inactive_blocked'], nonPaygo],
    ])
    // it stays stopped when what stopped it is over
    await operate(service, 'PATCH', `/policies/${changed.policyId}`, { billing_type: 'PAY_AS_YOU_GO' })
    await ops('/debit-batches')
    expect(await stands(ids[4]!)).toEqual(nonPaygo)
  })

  test('goes by the day that was asked for where a policy expires, and by what was collected before', async () => {
    const one = await insured({ effective_date: '2025-06-01', expiration_date: '2026-06-01' })
    const [before, on] = [
      await debit(one, 1_000, { effective_date: '2026-05-31' }),
      await debit(one, 1_000, { effective_date: '2026-06-01' }),
    ]
    const other = await insured()
    await ops('/legacy-collections', {
      employer_id: other.employerId,
      period_start: '2026-05-01',
      period_end: '2026-05-31',
      premium_cents: 2_500,
      status: 'sb_remit',
    })
    const may = { effective_date: '2026-05-31' }
    const [collected, another] = [await debit(other, 2_500, may), await debit(other, 2_501, may)]
    await ops('/debit-batches')
    expect(await Promise.all([before, on, collected, another].map(stands))).toEqual([
      SCHEDULED,
      ['failed', 'failed', 'policy_inactive_blocked'],
      ['legacy_collected', 'money_landed', 'legacy_collected'],
      SCHEDULED,
    ])
  })

  test('stops what a record of the legacy service has until that is corrected, and the debit released', async () => {
    const one = await insured()
    const of = { employer_id: one.employerId, policy_id: one.policyId, premium_cents: 2_500 }
    const may = { period_start: '2026-05-01', period_end: '2026-05-31' }
    const { transaction_id: recordId } = await ops('/legacy-collections', {
      ...of,
      ...may,
      status: 'pending',
    })
    const id = await debit(one, 2_500, { effective_date: '2026-05-31' })
    const collected = ['legacy_collected', 'money_landed', 'legacy_collected']
    const note = 'The old service has cancelled it'
    const release = async () => {
      const released = await ops(`/debits/${id}/release`, { note })
      expect(released).toMatchObject({ transaction_id: id, status: 'pending', reason: null })
      await ops('/debit-batches')
      return stands(id)
    }
    await ops('/debit-batches')
    expect(await stands(id)).toEqual(collected)
    expect(await release()).toEqual(collected)

    const correct = (body: object) => tryOps(`/legacy-collections/${recordId}/correct`, body)
    expect((await correct({ status: 'canceled' })).status).toBe(400)
    const wrong = await correct({ status: 'settled', reason: note })
    expect([wrong.status, wrong.body.message]).toEqual([
      400,
      expect.stringMatching(/^status must be one of pending, /),
    ])
    for (const _again of [1, 2]) {
      const { status, body } = await correct({ status: 'canceled', reason: note })
      expect([status, body.data]).toMatchObject([200, { status: 'canceled', status_group: 'failed' }])
    }
    expect(await asked('GET', `/ach/transactions/${recordId}/history`)).toMatchObject([
      { from_status: null, to_status: 'pending' },
      { from_status: 'pending', to_status: 'canceled', note: `Corrected by an operator: ${note}` },
    ])
    expect(await release()).toEqual(SCHEDULED)
    const again = await tryOps(`/debits/${id}/release`, { note })
    expect([again.status, again.body.message]).toEqual([409, 'The debit is Scheduled: it cannot be released'])

    await ops(`/legacy-collections/${recordId}/correct`, {
      status: 'sb_remit',
      reason: 'collected after all',
    })
    const later = await debit(one, 2_500, { effective_date: '2026-05-31' })
    await ops('/debit-batches')
    expect(await stands(later)).toEqual(collected)
    expect(
      (await tryOps(`/legacy-collections/${'f'.repeat(24)}/correct`, { status: 'failed', reason: note }))
        .status,
    ).toBe(404)
  })

  test('comes by itself', async () => {
    const id = await debit(await insured(), 1_000)
    await ops('/clock/advance', { seconds: 60 })
    expect(await stands(id)).toEqual(SCHEDULED)
  })
})

describe('a debit in quarantine', () => {
  let one: Insured
  beforeAll(async () => {
    one = await insured()
    await debit(one, 1_000)
    await ops('/debit-batches')
  })

  test('is above twice the mean, stays, is listed, and calls for a person until it is resolved', async () => {
    const [most, released, rejected] = [
      await debit(one, 2_000),
      await debit(one, 2_001),
      await debit(one, 5_000),
    ]
    expect((await ops('/debit-batches')).quarantined).toBeGreaterThanOrEqual(2)
    await ops('/debit-batches')
    expect(await Promise.all([most, released, rejected].map(stands))).toEqual([
      ...[SCHEDULED, QUARANTINED, QUARANTINED],
    ])
    expect(await quarantined(one)).toEqual([
      expect.objectContaining({ transaction_id: rejected, amount_cents: 5_000, reason: UNUSUAL }),
      expect.objectContaining({ transaction_id: released, employer_id: one.employerId, source: 'api' }),
    ])
    expect(await alertOf(released)).toMatchObject({ status: 'open', tenant_id: tenant.tenantId })

    const note = 'Premium of a second site'
    expect(await ops(`/debits/${released}/release`, { note })).toMatchObject({
      transaction_id: released,
      status: 'pending',
      reason: null,
    })
    expect(await ops(`/debits/${rejected}/reject`, { note: null })).toMatchObject({ status: 'failed' })
    await ops('/debit-batches')
    expect(await Promise.all([released, rejected].map(stands))).toEqual([
      SCHEDULED,
      ['failed', 'failed', UNUSUAL],
    ])
    expect(await quarantined(one)).toEqual([])
    for (const id of [released, rejected]) {
      expect(await alertOf(id)).toMatchObject({ status: 'acknowledged', acknowledged_by: 'operator' })
    }
    const history: Json = await asked('GET', `/ach/transactions/${released}/history`)
    expect(history.map(({ to_status }: Json) => to_status)).toEqual([
      ...['pending', 'quarantined', 'pending', 'Scheduled'],
    ])
    expect(history[2].note).toContain(note)
    const { events } = await operate(service, 'GET', `/stories/debit/${released}`)
    expect(events.map(({ sentence }: Json) => sentence)).toContain(
      'The debit was released from quarantine by the operator because: Premium of a second site.',
    )

    for (const verb of ['release', 'reject']) {
      const again = await tryOps(`/debits/${released}/${verb}`)
      expect([again.status, again.body.message]).toEqual([409, expect.stringContaining('Scheduled')])
    }
  })
})
