import { beforeAll, describe, expect, test } from 'vitest'
import { nextBankingDay, slotFor } from '../../../../domain/banking/debits/banking-days.ts'
import { accountBody } from '../../../support/ach-debits.ts'
import { bankDebitsOf } from '../../../support/bank-debits.ts'
import { cli } from '../../../support/cli.ts'
import { allEvents, employeeRecord, report, status } from '../../../support/core.ts'
import { webhookEvents } from '../../../support/payments.ts'
import {
  askOperator,
  operate,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
} from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Debits that payroll files raise, from the report to what partners hear of their end. */

type Json = ReturnType<typeof JSON.parse>

const PERIOD = { start_date: '2026-11-01', end_date: '2026-11-15' }
let service: SharedService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  bank = bankDebitsOf(service, tenant)
})

/** An employer of the tenant with a policy; with an active primary account unless told otherwise. */
async function insured(
  policy: Record<string, unknown> = {},
  given: {
    account?: 'active' | 'unverified' | 'none'
    of?: SeededTenant
    environment?: 'live' | 'sandbox'
  } = {},
) {
  const { account = 'active', of = tenant, environment = 'live' } = given
  const { tenantId, payrollCompanyId, carrierId } = of
  const employer = await seedEmployer(service, { tenantId, payrollCompanyId, environment })
  const owner = { employerId: employer.employerId, carrierId }
  const one = { ...of, ...employer, ...(await seedPolicy(service, owner, policy)) }
  if (account === 'none') return { ...one, accountId: null }
  const created = await bankDebitsOf(service, of).ask(
    ...(['POST', '/bank-accounts/ach'] as const),
    accountBody(one.employerId, { is_primary: true, routing_number: '021000021' }),
  )
  expect([created.status, created.text]).toEqual([201, expect.any(String)])
  const accountId: string = created.body.data._id
  if (account === 'active') await bank.ops(`/ach-accounts/${accountId}/attest`, { note: 'Voided cheque' })
  return { ...one, accountId }
}
type Insured = Awaited<ReturnType<typeof insured>>

/** A date some days from now, in UTC. */
const inDays = async (days: number) =>
  new Date((await bank.now()) + days * 86_400_000).toISOString().slice(0, 10)
/** Reports a payroll of 25.01 dollars of premium. @returns the id of its file. */
async function reported(
  of: Insured,
  employees: readonly Json[] = [employeeRecord()],
  pay_period: typeof PERIOD | null = PERIOD,
): Promise<string> {
  const { status, body } = await report(service, of, { employees, pay_period: pay_period ?? undefined })
  expect([200, 202]).toContain(status)
  return body.file_id ?? body.report_id
}
/** The debit that a file raised, as the log has it; undefined: none. */
async function debitOf(fileId: string): Promise<Json> {
  await bank.drain()
  return (await allEvents(service, 'BankDebitCreated')).find(({ data }) => data.file_id === fileId)?.data
}
/** What partners heard of a debit, by the events that a debit can raise. */
async function told(debitId: string): Promise<readonly string[]> {
  const types = ['debit_minted', 'debit_cancelled', 'failed', 'completed', 'debit_settled', 'debit_cleared']
  const all = await webhookEvents(service, tenant.tenantId)
  const told = all.filter(([, payload]) => payload.leg_id === debitId).map(([type]) => type)
  return types.flatMap((type) => told.filter((one) => one === `payment.${type}`).map(() => type))
}
const statusOf = async (debitId: string) => {
  const { status, reason } = await bank.transaction(debitId)
  return [status, reason]
}

describe('the premium of a payroll file', () => {
  test('is debited once it is known, and partners are told until when that can be cancelled', async () => {
    const of = await insured()
    const check_date = await inDays(20)
    const file = await reported(of, [employeeRecord({ check_date })])
    const debit = await debitOf(file)
    const { closesAt, entryDate } = slotFor(check_date, await bank.now())
    const { employerId: employer_id, policyId: policy_id, carrierId: carrier_id } = of
    expect(debit).toMatchObject({
      source: 'payroll_file',
      payment_purpose: 'paygo',
      amount_cents: 2_501,
      employer_id,
      policy_id,
      carrier_id,
      bank_account_id: of.accountId,
      check_date,
      effective_date: entryDate,
      period: { start: PERIOD.start_date, end: PERIOD.end_date },
      environment: 'live',
    })
    const { leg_id } = debit
    const shared = {
      leg_id,
      amount_cents: 2_501,
      currency: 'usd',
      employer_id,
      policy_id,
      carrier_id,
      description: 'Payroll premium 2026-11-01 to 2026-11-15',
    }
    expect(await bank.webhooksOfDebit('payment.debit_minted', leg_id)).toEqual([
      { ...shared, cancellation_deadline: new Date(closesAt).toISOString() },
    ])
    // the file answers what it always did
    const { body } = await status(service, of, file)
    expect(body).toMatchObject({ status: 'NORMALIZED', phase_3: { total_premium_cents: 2_501 } })

    const at = new Date(await bank.now()).toISOString()
    for (const code of [200, 200]) {
      expect((await bank.ask('POST', `/ach/debits/${leg_id}/cancel`, {})).status).toBe(code)
    }
    expect(await bank.webhooksOfDebit('payment.debit_cancelled', leg_id)).toEqual([
      { ...shared, cancelled_at: at },
    ])
    expect(await told(leg_id)).toEqual(['debit_minted', 'debit_cancelled'])
  })

  test('stands in one story, from the policy to the debit, as of any time', async () => {
    const of = await insured()
    const { employerId, policyId } = of
    const { now: issued } = await operate(service, 'GET', '/clock')
    await operate(service, 'POST', '/clock/advance', { seconds: 60 })
    await operate(service, 'PATCH', `/policies/${policyId}`, { payroll_frequency: 'MONTHLY' })
    await operate(service, 'PATCH', `/employers/${employerId}`, { contact_email: 'other@bakery.example' })
    const file = await reported(of)
    const { leg_id } = await debitOf(file)
    await bank.ask('POST', `/ach/debits/${leg_id}/cancel`, {})
    await bank.drain()
    const story = async (path: string) => {
      const { status, body } = await askOperator(service, 'GET', `/stories/${path}`)
      expect([path, status]).toEqual([path, 200])
      return { ...body.data, next: body.pagination.next }
    }
    const told = ({ events }: Json) => events.map(({ type, sentence }: Json) => `${type}: ${sentence}`)

    const ofFile = await story(`file/${file}?graph=true`)
    expect(ofFile).toMatchObject({
      kind: 'file',
      id: file,
      next: null,
      changes: null,
      state: { received: { file_id: file } },
    })
    const created = 'BankDebitCreated: A bank debit of $25.01 was created from a payroll file.'
    expect(told(ofFile)).toEqual([
      expect.stringMatching(
        /^PayrollFileReceived: A payroll file of 1 row for policy .+ came by report by the partner's key/,
      ),
      expect.stringMatching(
        /^PayrollFileProcessed: By revision 1 of the policy, 1 of 1 row are valid: .+ premium \$25\.01\.$/,
      ),
      created,
      expect.stringMatching(/^BankDebitCancelled: The debit was cancelled by the partner's key /),
    ])
    const [received, processed, minted] = ofFile.events
    expect(minted).toMatchObject({ caused_by: processed.event_id, about: { kind: 'debit', id: leg_id } })
    expect([received.caused_by, received.causes, processed.causes]).toEqual([null, [], [minted.event_id]])
    expect(ofFile.graph).toMatch(/^flowchart TD\n {2}e0\["[^"]+"\]\n[\s\S]+\n {2}e1 --> e2/)
    expect(JSON.stringify(ofFile)).not.toMatch(/sld1\.|vault/)
    expect(told(await story(`debit/${leg_id}`))).toEqual(told(ofFile).slice(2))

    const whole = await story(`policy/${policyId}`)
    expect(told(whole)).toEqual([
      expect.stringMatching(/^PolicyIssued: Policy .+ was issued by the operator as active, from /),
      'PolicyTermsChanged: Terms were changed by the operator: payroll frequency.',
      told(ofFile)[0],
      created,
    ])
    expect(whole.events[2].about).toEqual({ kind: 'file', id: file })
    const walked: Json[] = []
    for (let from: string | null = '0'; from !== null; ) {
      const page = await story(`policy/${policyId}?limit=1&from=${from}`)
      walked.push(...page.events)
      from = page.next
    }
    expect(walked.map(({ event_id }) => event_id)).toEqual(whole.events.map(({ event_id }: Json) => event_id))

    const then = await story(`policy/${policyId}?as_of=${issued}`)
    expect([told(then), then.state.payroll_frequency]).toEqual([told(whole).slice(0, 1), 'WEEKLY'])
    const { position } = whole.events[1]
    expect(await story(`policy/${policyId}?position=${position}`)).toMatchObject({
      revision: 1,
      events: whole.events.slice(0, 2).map(({ event_id }: Json) => ({ event_id })),
    })
    const since = await story(`policy/${policyId}?since=${issued}`)
    expect([told(since), since.changes]).toEqual([
      told(whole).slice(1),
      [{ path: 'payroll_frequency', before: 'WEEKLY', after: 'MONTHLY' }],
    ])

    const ofEmployer = await story(`employer/${employerId}?since=${issued}`)
    expect(ofEmployer.changes).toEqual([{ path: 'contact_email', before: '•••', after: '•••' }])
    expect(ofEmployer.state).toMatchObject({ employer_id: employerId, fein: '•••', contact_email: '•••' })
    expect(told(await story(`employer/${employerId}`))).toEqual(
      expect.arrayContaining([
        'EmployerRegistered: The employer was registered by the operator.',
        told(whole)[0],
        created,
      ]),
    )
    const revealed = await story(`employer/${employerId}?reveal=true&limit=1`)
    expect(revealed.events[0].data.fein).toBe(of.fein)
    const { data } = (await allEvents(service, 'OperatorActed')).at(-1) as Json
    expect(data).toMatchObject({ action: 'reveal', target: `employer/${employerId}` })

    const args = ['--url', service.opsUrl, '--token', service.operatorToken]
    const shown = await cli(['stories', 'file', file, ...args])
    expect([shown.code, shown.stdout]).toEqual([
      0,
      expect.stringContaining('was created from a payroll file'),
    ])
    const drawn = await cli(['stories', 'file', file, '--graph', ...args])
    expect(drawn.stdout.trim()).toBe(ofFile.graph)
  })

  test('is debited as soon as it can be where its check date is over, in the sandbox as well', async () => {
    const sandbox = await seedTenant(service, { environment: 'sandbox' })
    const of = await insured({}, { of: sandbox, environment: 'sandbox' })
    const { leg_id, effective_date, environment } = await debitOf(
      await reported(of, [employeeRecord({ check_date: await inDays(-1) })]),
    )
    expect([effective_date, environment]).toEqual([slotFor(null, await bank.now()).entryDate, 'sandbox'])
    expect(await bankDebitsOf(service, sandbox).webhooksOfDebit('payment.debit_minted', leg_id)).toHaveLength(
      1,
    )
  })

  test('of many chunks is debited as a whole, on the check date of most of its rows', async () => {
    const of = await insured()
    const check_date = nextBankingDay(await inDays(20))
    const rows = Array.from({ length: 501 }, (_, n) =>
      employeeRecord({ employee_id: `E-${n}`, check_date: n === 7 ? '2062-11-20' : check_date }),
    )
    const debit = await debitOf(await reported(of, rows))
    expect(debit).toMatchObject({ amount_cents: 501 * 2_501, check_date, effective_date: check_date })
  })

  test.each(['none', 'unverified'] as const)(
    'is not where the primary account is %s, and the file says so',
    async (account) => {
      const file = await reported(await insured({}, { account }))
      expect(await debitOf(file)).toBeUndefined()
      const processed = (await allEvents(service, 'PayrollFileProcessed')).find(
        ({ data }) => data.file_id === file,
      )
      expect(processed!.data).toMatchObject({ debit_account_id: null })
    },
  )

  test('is not where there is none', async () => {
    const file = await reported(await insured({ rates: [] }))
    expect(await debitOf(file)).toBeUndefined()
  })

  test.each([
    ['billed otherwise', { billing_type: 'DIRECT_BILLING' }, 'non_paygo_blocked'],
    ['over by the check date', { expiration_date: 'check_date' }, 'policy_inactive_blocked'],
  ])('of a policy that is %s is stopped at once, and nobody is told', async (_what, terms, reason) => {
    const check_date = await inDays(20)
    const policy = Object.fromEntries(
      Object.entries(terms).map(([name, value]) => [name, value === 'check_date' ? check_date : value]),
    )
    const { leg_id } = await debitOf(await reported(await insured(policy), [employeeRecord({ check_date })]))
    expect(await statusOf(leg_id)).toEqual(['failed', reason])
    await bank.ops('/debit-batches')
    expect(await told(leg_id)).toEqual([])
  })

  test('that is ingested again keeps the day on which it was accepted first', async () => {
    const of = await insured()
    const first = await debitOf(await reported(of))
    await bank.ops('/clock/advance', { seconds: 3_600 })
    const again = await debitOf(await reported(of))
    const other = await debitOf(
      await reported(of, [employeeRecord(), employeeRecord({ employee_id: 'E-2' })]),
    )
    expect(new Set([first, again, other].map(({ leg_id }) => leg_id)).size).toBe(3)
    expect(again.ingested_at).toBe(first.ingested_at)
    // rows say it as well
    const inRows = async (pay_period_end: string) => {
      const row = employeeRecord({ pay_period_start: PERIOD.start_date, pay_period_end })
      return debitOf(await reported(of, [row], null))
    }
    expect((await inRows(PERIOD.end_date)).ingested_at).toBe(first.ingested_at)
    const ofOthers = await inRows(PERIOD.start_date)
    expect(ofOthers.ingested_at).toBe(ofOthers.created_at)
    await bank.ops('/clock/advance', { seconds: 3_600 })
    expect((await inRows(PERIOD.start_date)).ingested_at).toBe(ofOthers.ingested_at)
    expect(other.ingested_at).toBe(other.created_at)
  })

  // the one before it is ingested again
  test('that is ingested again is found among many with the same wages, week by week', {
    tags: 'long',
  }, async () => {
    const of = await insured()
    const inRows = (week: number) => {
      const days = {
        pay_period_start: '2026-01-01',
        pay_period_end: `2026-02-${String(week).padStart(2, '0')}`,
      }
      return reported(of, [employeeRecord(days)], null)
    }
    for (let week = 1; week <= 24; week += 1) await inRows(week)
    const last = await debitOf(await inRows(25))
    await bank.ops('/clock/advance', { seconds: 3_600 })
    const again = await debitOf(await inRows(25))
    expect(again.leg_id).not.toBe(last.leg_id)
    expect(again.ingested_at).toBe(last.ingested_at)
  })
})

describe('a debit of a payroll file', () => {
  test('that a gate stops later is announced as cancelled', async () => {
    const of = await insured()
    const { leg_id } = await debitOf(await reported(of))
    await bank.ops(`/policies/${of.policyId}/cancel`, { reason: 'Sold' })
    await bank.ops('/debit-batches')
    expect(await statusOf(leg_id)).toEqual(['failed', 'policy_inactive_blocked'])
    expect(await told(leg_id)).toEqual(['debit_minted', 'debit_cancelled'])
  })

  test('that comes back is announced as failed, without a session, also after it was processed', async () => {
    const { leg_id } = await debitOf(await reported(await insured()))
    await bank.ops('/debit-batches')
    await bank.report(leg_id, 'acknowledge')
    await bank.ops('/clock/advance', { seconds: 21 * 86_400 })
    expect(await statusOf(leg_id)).toEqual(['processed', null])
    await bank.report(leg_id, 'return', { return_code: 'R10' })
    const [failed, ...others] = await bank.webhooksOfDebit('payment.failed', leg_id)
    expect(failed).toMatchObject({ leg_id, return_code: 'R10', amount_cents: 2_501 })
    expect(failed).not.toHaveProperty('payment_session_id')
    expect(others).toEqual([])
    expect((await bank.ask('POST', `/ach/debits/${leg_id}/cancel`, {})).status).toBe(409)
    expect(await told(leg_id)).toEqual(['debit_minted', 'failed'])
  })
})

test('of debits and collections made by calls nothing is told, whatever becomes of them', async () => {
  const of = await insured()
  const { employerId: employer_id, policyId: policy_id, carrierId: carrier_id, accountId } = of
  const one = async (n: number) => {
    const { status, body } = await bank.ask('POST', '/ach/debits', {
      employer_id,
      policy_id,
      carrier_id,
      bank_account_id: accountId,
      amount_cents: 1_000 + n,
      payment_purpose: 'paygo',
    })
    expect(status).toBe(201)
    return body.data.transaction_id as string
  }
  const entry = { policyId: policy_id, totalInDollars: 10.01, description: 'Premium' }
  const collected = await bank.ask('POST', '/ach/collections', {
    employerId: employer_id,
    bankAccountId: accountId,
    policyCollections: [{ ...entry, idempotencyKey: `payroll-debits-${policy_id}` }],
  })
  expect(collected.status).toBe(202)
  const debitIds = [await one(0), await one(1), collected.body.data.transactions[0].transaction_id as string]
  expect((await bank.ask('POST', `/ach/debits/${debitIds[0]}/cancel`, {})).status).toBe(200)
  await bank.ops('/debit-batches')
  for (const debitId of debitIds.slice(1)) {
    await bank.report(debitId, 'acknowledge')
    await bank.report(debitId, 'return', { return_code: 'R01' })
  }
  await bank.drain()
  for (const debitId of debitIds) expect(await told(debitId)).toEqual([])
})

describe('the money of a carrier', () => {
  const operated = async (path: string): Promise<Json> => operate(service, 'GET', path)
  const balances = async (carrierId: string, environment = 'live') =>
    (await operated(`/carriers/${carrierId}/balances`)).find((one: Json) => one.environment === environment)
  const nothing = { due_cents: 0, in_file_cents: 0, at_bank_cents: 0, received_cents: 0, returned_cents: 0 }

  test('is in one account after the other, and what comes back is counted', async () => {
    const own = await seedTenant(service)
    const { carrierId, tenantId } = own
    const of = await insured({}, { of: own, environment: 'live' })
    const { leg_id } = await debitOf(await reported(of))
    const expectIn = async (account: string) =>
      expect(await balances(carrierId)).toEqual({
        environment: 'live',
        unmatched_cents: 0,
        ...nothing,
        [account]: 2_501,
      })
    await expectIn('due_cents')
    expect(await balances(carrierId, 'sandbox')).toMatchObject(nothing)
    await bank.ops('/debit-batches')
    await bank.report(leg_id, 'acknowledge')
    await expectIn('at_bank_cents')
    await bank.report(leg_id, 'settle')
    await expectIn('received_cents')
    await bank.report(leg_id, 'return', { return_code: 'R10' })
    await expectIn('returned_cents')
    // a single return says nothing of a rate
    await bank.drain()
    const alerted = () => operated(`/alerts?kind=return_rate_exceeded&tenant_id=${tenantId}`)
    expect(await alerted()).toEqual([])
    const second = await debitOf(await reported(await insured({}, { of: own, environment: 'live' })))
    await bank.ops('/debit-batches')
    await bank.report(second.leg_id, 'acknowledge')
    await bank.report(second.leg_id, 'return', { return_code: 'R10' })
    await bank.drain()
    const [rates] = await operated(`/return-rates?tenant_id=${tenantId}`)
    const returned = { returned: 2, rate: 1, exceeded: true }
    expect(rates).toMatchObject({
      environment: 'live',
      entries: 2,
      unauthorized: { ...returned, limit: 0.005 },
      overall: { ...returned, limit: 0.15 },
      administrative: { returned: 0, exceeded: false },
    })
    expect((await alerted()).map(({ about }: Json) => about.rate).sort()).toEqual(['overall', 'unauthorized'])
  })

  test('is compared in the night, and when an operator says so; all that was done here agrees', async () => {
    await bank.ops('/clock/advance', { seconds: 86_400 })
    await bank.drain()
    const made = await bank.ops('/reconciliations')
    expect(made).toMatchObject({ trigger: 'operator', differences: [], difference_count: 0 })
    const [newest, before] = await operated('/reconciliations?limit=2')
    expect(newest).toEqual(made)
    expect(before).toMatchObject({ trigger: 'night', differences: [] })
    expect(await operated(`/reconciliations/${made.reconciliation_id}`)).toEqual(made)
  })
})
