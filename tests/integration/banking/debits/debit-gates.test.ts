import { afterAll, beforeAll, expect, test } from 'vitest'
import { bankDebits as reactions } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { type BatchRun, gateBatch, runBatch } from '../../../../application/banking/debits/batch-worker.ts'
import { resolveQuarantine } from '../../../../application/banking/debits/operator-debits.ts'
import { fileIdOf } from '../../../../application/banking/files/file-references.ts'
import type { Application } from '../../../../application/commands/application.ts'
import type { BankRail } from '../../../../application/ports/bank-rail.ts'
import { bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import type { BankDebitData } from '../../../../domain/banking/debits/bank-debit-events.ts'
import { slotFor } from '../../../../domain/banking/debits/banking-days.ts'
import { legacyCollection } from '../../../../domain/banking/legacy/legacy-collection.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { newYorkDate } from '../../../../domain/kernel/new-york.ts'
import { policy } from '../../../../domain/policies/policy.ts'
import { PostgresReadDatabase } from '../../../../infrastructure/read-models/read-database.ts'
import { bankDebits } from '../../../../projections/banking/debits/bank-debits.ts'
import { legacyCollections } from '../../../../projections/banking/legacy/legacy-collections.ts'
import type { Projections } from '../../../../projections/runtime/projections.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import { recordBankFile } from '../../../support/bank-files.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { policyTerms } from '../../../support/payroll.ts'
import { workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  moveClock,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  withReadModels,
} from '../../../support/registrations.ts'
import { newId } from '../../../support/webhooks.ts'

/** Runs of the batch worker over real read models; all but the last test leave no debit that waits. */

const DAY = 86_400_000
const CUTOFF = Date.parse('2026-04-27T00:00:00Z')
const UNUSUAL = 'amount_anomaly_above_100pct_of_recent_average'
const opened: RegistrationProcess[] = []
let database: TestDatabase
let projections: Projections
let app: Application
/** Another process on the same log. */
let other: Application

beforeAll(async () => {
  database = await createTestDatabase()
  const one = await openRegistrationProcess(database.url)
  const two = await openRegistrationProcess(database.url, { clock: one.bench.clock })
  opened.push(one, two)
  const started = await withReadModels(one, [bankDebits, legacyCollections])
  projections = started.projections
  app = { ...started.app, forwardCutoff: CUTOFF }
  other = {
    ...app,
    ...two.app,
    readModels: projections,
    read: new PostgresReadDatabase(two.bench.database.pool),
  }
})
afterAll(async () => {
  await projections?.stop()
  for (const { bench } of opened) await bench.close()
  await database?.drop()
})

interface Insured {
  readonly employer_id: string
  readonly policy_id: string
}
/** An employer with a policy. */
async function insured(billing_type: 'PAY_AS_YOU_GO' | 'DIRECT_BILLING' | null = null): Promise<Insured> {
  const data = policyTerms({ billing_type, effective_date: '2020-01-01', expiration_date: '2099-01-01' })
  const { employer_id, policy_id } = data
  accepted(await app.commands.execute(policy, policy_id, { type: 'Issue', data }, operatorContext()))
  return { employer_id, policy_id }
}
const cancelPolicy = async ({ policy_id }: Insured) =>
  accepted(await app.commands.execute(policy, policy_id, { type: 'Cancel', reason: null }, operatorContext()))

async function debited(
  of: Insured,
  amount_cents: number,
  given: Partial<BankDebitData<'BankDebitCreated'>> = {},
): Promise<string> {
  const account = { account_ref: 'x', account_last4: '6789', account_type: 'checking' } as const
  const data = debitData(app.clock.now(), {
    ...of,
    amount_cents,
    account: { ...account, fingerprint: 'f'.repeat(24) },
    ...given,
  })
  const create = { type: 'Create', data } as const
  accepted(await app.commands.create(bankDebit, data.leg_id, create, operatorContext()))
  return data.leg_id
}
const run = (counts: Partial<BatchRun>) => ({
  scheduled: 0,
  failed: 0,
  legacy_collected: 0,
  cancelled: 0,
  quarantined: 0,
  unreadable: 0,
  ...counts,
})
const state = async (debitId: string) => (await app.commands.load(bankDebit, debitId)).state!
/** As status and reason. */
const stands = async (debitId: string) => {
  const { status, reason } = await state(debitId)
  return reason === null ? status : `${status}: ${reason}`
}
const collected = async ({ employer_id }: Insured, premium_cents: number, day: string) => {
  const transaction_id = newId()
  const data = {
    transaction_id,
    tenant_id: newId(),
    environment: 'live' as const,
    employer_id,
    carrier_id: null,
    policy_id: null,
    period_start: day,
    period_end: day,
    premium_cents,
    status: 'sb_remit' as const,
    import: null,
    recorded_at: isoTime(app.clock.now()),
  }
  const record = { type: 'Record' as const, data }
  accepted(await app.commands.execute(legacyCollection, transaction_id, record, operatorContext()))
}
const today = () => newYorkDate(app.clock.now())

test('a run puts what passes into its batch, and tells what stopped the others', async () => {
  const one = await insured('PAY_AS_YOU_GO')
  const cancelled = await insured()
  await cancelPolicy(cancelled)
  await collected(one, 4_321, today())
  const early = { ingested_at: isoTime(CUTOFF - 1) }
  const passes = await debited(one, 1_000)
  const direct = await debited(await insured('DIRECT_BILLING'), 1_000)
  const inactive = await debited(cancelled, 1_000)
  const before = await debited(one, 4_321)
  const tooEarly = await debited(one, 1_000, early)
  const ofSession = await debited(cancelled, 1_000, { source: 'session', ...early })
  expect(await runBatch(app, operatorContext())).toEqual(
    run({ scheduled: 2, failed: 2, legacy_collected: 1, cancelled: 1 }),
  )
  expect(await Promise.all([passes, ofSession].map(stands))).toEqual(['Scheduled', 'Scheduled'])
  expect(await Promise.all([direct, inactive, before, tooEarly].map(stands))).toEqual([
    ...['failed: non_paygo_blocked', 'failed: policy_inactive_blocked'],
    ...['legacy_collected: legacy_collected', 'cancelled: before_forward_cutoff'],
  ])
  expect(await runBatch(app, operatorContext())).toEqual(run({}))
})

test('what an attempt at a run has scheduled is not held against what the next attempt finds', async () => {
  const one = await insured()
  await debited(one, 500)
  const context = operatorContext()
  expect(await runBatch(app, context)).toEqual(run({ scheduled: 1 }))
  await debited(one, 5_000)
  expect(await runBatch(app, context)).toEqual(run({ scheduled: 1 }))
  const unusual = await debited(one, 9_000)
  expect(await runBatch(app, operatorContext())).toEqual(run({ quarantined: 1 }))
  expect((await state(unusual)).status).toBe('quarantined')
})

test('an amount is held against what did not fail in 90 days, of the employer and of earlier runs', async () => {
  const one = await insured()
  const now = app.clock.now()
  const created = (when: number) => ({ created_at: isoTime(when), ingested_at: isoTime(when) })
  // nothing counts of before, nor what came back, nor another employer's
  await debited(one, 100_000, created(now - 90 * DAY - 1))
  await debited(await insured(), 100_000)
  const returned = await debited(one, 100_000)
  expect(await runBatch(app, operatorContext())).toEqual(run({ scheduled: 3 }))
  const comeBack = { type: 'Return', return_code: 'R01', at: now } as const
  accepted(await app.commands.execute(bankDebit, returned, comeBack, operatorContext()))

  // without a history all of a run pass, whatever the others are
  await debited(one, 500)
  await debited(one, 1_500, { source: 'session', ...created(now - 90 * DAY) })
  expect(await runBatch(app, operatorContext())).toEqual(run({ scheduled: 2 }))
  const [most, more, much] = [await debited(one, 2_000), await debited(one, 2_001), await debited(one, 9_000)]
  expect(await runBatch(app, operatorContext())).toEqual(run({ scheduled: 1, quarantined: 2 }))
  expect(await Promise.all([most, more, much].map(stands))).toEqual([
    ...['Scheduled', `quarantined: ${UNUSUAL}`, `quarantined: ${UNUSUAL}`],
  ])
  // those in quarantine raise no mean, which is 1,333.33 now
  const [below, above] = [await debited(one, 2_666), await debited(one, 2_667)]
  expect(await runBatch(app, operatorContext())).toEqual(run({ scheduled: 1, quarantined: 1 }))
  expect((await Promise.all([below, above].map(state))).map(({ status }) => status)).toEqual([
    ...['Scheduled', 'quarantined'],
  ])
})

test('what an operator releases passes the last gate alone, and what is rejected has failed', async () => {
  const [one, cancelled] = [await insured(), await insured()]
  for (const of of [one, cancelled]) await debited(of, 1_000)
  await runBatch(app, operatorContext())
  const [released, rejected, left] = [
    await debited(one, 5_000),
    await debited(one, 5_000),
    await debited(one, 5_000),
  ]
  const stopped = await debited(cancelled, 5_000)
  expect(await runBatch(app, operatorContext())).toEqual(run({ quarantined: 4 }))
  const resolve = async (debitId: string, verdict: 'Release' | 'Reject') =>
    accepted(await resolveQuarantine(app, debitId, { verdict, note: null }, operatorContext()))
  await resolve(released, 'Release')
  await resolve(stopped, 'Release')
  await resolve(rejected, 'Reject')
  await cancelPolicy(cancelled)
  expect(await runBatch(app, operatorContext())).toEqual(run({ scheduled: 1, failed: 1 }))
  expect(await Promise.all([released, stopped, rejected, left].map(stands))).toEqual([
    ...['Scheduled', 'failed: policy_inactive_blocked', `failed: ${UNUSUAL}`, `quarantined: ${UNUSUAL}`],
  ])
})

test('a run that breaks off is repeated, and two at once are one', async () => {
  const [one, usual] = [await insured(), 1_000]
  const debitIds = await Promise.all(Array.from({ length: 20 }, () => debited(one, usual)))
  const scheduledOnce = async () => {
    for (const debitId of debitIds) {
      const types = (await app.log.readStream(`bankDebit-${debitId}`)).map(({ type }) => type)
      expect(types).toEqual(['BankDebitCreated', 'BankDebitScheduled'])
    }
  }
  const context = { ...operatorContext(), mayRepeat: true }
  await expect(runBatch(crashingAt(app, { category: 'bankDebit', at: 'before' }), context)).rejects.toThrow(
    Crashed,
  )
  await expect(runBatch(crashingAt(app, { category: 'bankDebit', at: 'after' }), context)).rejects.toThrow(
    Crashed,
  )
  await runBatch(app, context)
  await scheduledOnce()
  debitIds.splice(
    0,
    debitIds.length,
    ...(await Promise.all(Array.from({ length: 20 }, () => debited(one, usual)))),
  )
  const both = await Promise.all([app, other].map((process) => runBatch(process, operatorContext())))
  expect(both[0]!.scheduled + both[1]!.scheduled).toBe(20)
  await scheduledOnce()
})

test('a batch passes the gates once more after its close, before the bank is handed any of it', async () => {
  const [one, cancelled] = [await insured(), await insured()]
  const wanted = newYorkDate(app.clock.now() + 40 * DAY)
  const later = { effective_date: wanted }
  await debited(one, 1_000)
  await runBatch(app, operatorContext())
  const stays = await debited(one, 1_800, later)
  const before = await debited(one, 1_700, later)
  const inactive = await debited(cancelled, 1_000, later)
  const ofSession = await debited(cancelled, 1_000, { source: 'session', ...later })
  expect(await runBatch(app, operatorContext())).toEqual(run({ scheduled: 4 }))
  const { closesAt } = slotFor(wanted, app.clock.now())
  await cancelPolicy(cancelled)
  await collected(one, 1_700, wanted)
  // nothing is looked at again until then
  expect(await runBatch(app, operatorContext())).toEqual(run({}))
  // which would make the amount of the first unusual
  await debited(one, 1)
  await runBatch(app, operatorContext())
  moveClock(app, closesAt)

  const handedOver: string[] = []
  const rail: BankRail = {
    kind: 'simulated',
    sendMicroDeposits: async () => undefined,
    async submit({ entries }) {
      for await (const page of entries) handedOver.push(...page.map(({ debitId }) => debitId))
    },
  }
  const item = workItem({ key: isoTime(closesAt), payload: {}, dueAt: closesAt, isLastTry: false })
  const submit = reactions({ ...app, bankRails: { live: rail, sandbox: rail } }, 60_000).work['submit-batch']
  expect(await submit.run(item)).toEqual({ outcome: 'again', afterMs: 0, payload: { is_gated: true } })
  expect(handedOver).toEqual([])
  const after = [
    ...['Scheduled', 'legacy_collected: legacy_collected'],
    ...['failed: policy_inactive_blocked', 'Scheduled'],
  ]
  expect(await Promise.all([stays, before, inactive, ofSession].map(stands))).toEqual(after)
  // again it changes nothing
  await gateBatch(app, closesAt, operatorContext())
  expect(await Promise.all([stays, before, inactive, ofSession].map(stands))).toEqual(after)

  // once it stands in a file no gate stops it, also where the work was armed anew
  await cancelPolicy(one)
  await recordBankFile(app, { file_id: fileIdOf(closesAt, 0), batch_closes_at: isoTime(closesAt) }, [])
  expect(await submit.run(item)).toEqual({ outcome: 'done' })
  expect(await Promise.all([stays, before, inactive, ofSession].map(stands))).toEqual(after)
  expect(handedOver).toEqual([stays, ofSession])
})

test('what cannot be read is left as it is, and the others go', async () => {
  const [lost, one] = [await insured(), await insured()]
  const ofLost = await debited(lost, 1_000)
  const unreadable = await debited(one, 1_000)
  const goes = await debited(one, 1_000)
  const metadata = JSON.stringify({ schema_version: 1 })
  const broken = (type: string) => [{ type, data: '{"nothing":true}', metadata }]
  await app.log.append(`policy-${lost.policy_id}`, 0, broken('PolicyCancelled'))
  await app.log.append(`bankDebit-${unreadable}`, 0, broken('BankDebitScheduled'))
  // another process, which has neither in its memory
  expect(await runBatch(other, operatorContext())).toEqual(run({ scheduled: 1, unreadable: 2 }))
  expect(await stands(goes)).toBe('Scheduled')
  expect(await stands(ofLost)).toBe('pending')
  // the next run looks again
  expect(await runBatch(other, operatorContext())).toEqual(run({ unreadable: 2 }))
})
