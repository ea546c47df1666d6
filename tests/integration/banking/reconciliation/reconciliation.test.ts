import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  creditsShownBefore,
  matchCredit,
  matchCreditsAgain,
  matchDisplacedCredits,
  receiveCredit,
} from '../../../../application/banking/credits/bank-credits.ts'
import { balancesOf } from '../../../../application/banking/debits/carrier-balances.ts'
import { compareReturnRates, listReturnRates } from '../../../../application/banking/debits/return-rates.ts'
import { reconcile } from '../../../../application/banking/reconciliation/reconcile.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { derivedId } from '../../../../application/commands/event-registry.ts'
import { bankCredit } from '../../../../domain/banking/credits/bank-credit.ts'
import { type BankDebitCommand, bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { returnRate } from '../../../../domain/banking/debits/return-rate.ts'
import { bankFile } from '../../../../domain/banking/files/bank-file.ts'
import { LIMITS } from '../../../../domain/banking/files/nacha/draft.ts'
import type { Reconciliation } from '../../../../domain/banking/reconciliation/reconciliation.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { streamOf } from '../../../../domain/kernel/decider.ts'
import { carrier } from '../../../../domain/parties/carrier.ts'
import { EncryptedBankArchive } from '../../../../infrastructure/providers/bank/nacha/archive.ts'
import { NachaFolders } from '../../../../infrastructure/providers/bank/nacha/folders.ts'
import { SimulatedBankRail } from '../../../../infrastructure/providers/bank/simulated.ts'
import { bankDebits } from '../../../../projections/banking/debits/bank-debits.ts'
import { carrierBalances } from '../../../../projections/banking/debits/carrier-balances.ts'
import { returnRates } from '../../../../projections/banking/debits/return-rates.ts'
import { bankFiles } from '../../../../projections/banking/files/bank-files.ts'
import { reconciliations } from '../../../../projections/banking/reconciliation/reconciliations.ts'
import { operatorAlerts } from '../../../../projections/operations/operator-alerts.ts'
import type { Projections } from '../../../../projections/runtime/projections.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import { recordBankFile } from '../../../support/bank-files.ts'
import { ORIGINATOR } from '../../../support/nacha-files.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  withReadModels,
} from '../../../support/registrations.ts'
import { newId } from '../../../support/webhooks.ts'

/** Balances and rates over real read models, and what a comparison finds when one of them says something else. */

let process: RegistrationProcess
let projections: Projections
let app: Application
const tenant_id = newId()
const carrier_id = newId()
const context = () => ({ ...operatorContext(), tenantId: tenant_id, environment: 'live' as const })

beforeAll(async () => {
  process = await openRegistrationProcess()
  const readModels = [bankDebits, bankFiles, carrierBalances, returnRates, reconciliations, operatorAlerts]
  const started = await withReadModels(process, readModels)
  const rail = new SimulatedBankRail({ faults: process.app.faults })
  projections = started.projections
  app = { ...started.app, bankFiles: null, bankRails: { live: rail, sandbox: rail } }
  const data = { carrier_id, tenant_id, name: 'C', settlement_type: 'fbo' as const }
  accepted(await app.commands.create(carrier, carrier_id, { type: 'Register', data }, context()))
})
afterAll(async () => {
  await projections?.stop()
  await process?.bench.close()
})

const at = () => app.clock.now()
const now = () => isoTime(at())
async function carryOut(debitId: string, ...commands: readonly BankDebitCommand[]): Promise<void> {
  for (const command of commands) accepted(await app.commands.execute(bankDebit, debitId, command, context()))
}
/** A debit of the carrier that the bank has. */
async function submitted(amount_cents: number): Promise<string> {
  const debitId = await debited(amount_cents)
  await carryOut(debitId, { type: 'Acknowledge', at: at() })
  return debitId
}
/** A debit of the carrier in a batch. */
async function debited(amount_cents: number): Promise<string> {
  const data = debitData(at(), { tenant_id, carrier_id, amount_cents, settlement_type: 'fbo' })
  await carryOut(data.leg_id, { type: 'Create', data }, { type: 'Schedule', at: at() })
  return data.leg_id
}
/** A credit that is taken for a debit's money; the debit is told unless the service died. */
async function credited(
  debitId: string,
  amount_cents: number,
  isReported = true,
  confidence: 'high' | 'medium' = 'high',
): Promise<string> {
  const credit_id = newId()
  const data = {
    credit_id,
    tenant_id,
    carrier_id,
    bank_transaction_id: credit_id,
    bank_date: '2026-11-25',
    amount_cents,
    reference: debitId,
    received_at: now(),
  }
  const match = { debitId: debitId, confidence }
  const commands = [
    { type: 'Receive' as const, data },
    { type: 'Decide' as const, match, named: debitId, refusedBy: null, at: at() },
  ]
  accepted(await app.commands.execute(bankCredit, credit_id, commands, context()))
  const matched = { matchId: credit_id, bankTransactionId: credit_id, bankDate: '2026-11-25' }
  if (isReported) await carryOut(debitId, { type: 'Match', ...matched, confidence, at: at() })
  return credit_id
}
const balances = async () => {
  const found = accepted(await balancesOf(app, carrier_id))
  return found.find(({ environment }) => environment === 'live')!.balances
}
const compared = async (): Promise<Reconciliation> =>
  accepted(await reconcile(app, 'operator', operatorContext()))
const whatDiffers = async () =>
  (await compared()).differences.map(({ what, leg_id, carrier_id: of }) => [what, leg_id, of])
const sql = (text: string, values: readonly unknown[]) =>
  process.bench.database.pool.query(text, values as unknown[])

test('money is in one account at a time; a credit that lost its debit is found until it is decided anew', async () => {
  const [one, other] = [await submitted(1_000), await submitted(2_000)]
  expect(await balances()).toMatchObject({ due: 0, at_bank: 3_000, received: 0, unmatched: 0 })
  const displaced = await credited(one, 1_000, true, 'medium')
  await credited(one, 1_000)
  expect(await whatDiffers()).toEqual([['credit_not_received', one, carrier_id]])
  await matchCredit(app, displaced, operatorContext())
  await carryOut(other, { type: 'Return', return_code: 'R01', at: at() })
  expect(await balances()).toMatchObject({ at_bank: 0, received: 1_000, returned: 2_000, unmatched: 1_000 })
  const { compared: counts, differences } = await compared()
  expect(counts).toMatchObject({ debits: 1, ledger: 2, credits: 2, files: 0 })
  expect(differences).toEqual([])
  // what has not changed is not looked at one by one again
  expect((await compared()).compared).toMatchObject({ debits: 0, ledger: 2 })
})

test('a row that says something else than the events is found, and so is one that is not there', async () => {
  const [one, other] = [await submitted(1_100), await submitted(1_200)]
  expect(await whatDiffers()).toEqual([])
  await sql(`UPDATE read_model.bank_debits SET status = 'failed' WHERE leg_id = $1`, [one])
  await sql('DELETE FROM read_model.bank_debits WHERE leg_id = $1', [other])
  const found = await whatDiffers()
  expect(found).toHaveLength(2)
  expect(found).toEqual(
    expect.arrayContaining([
      ['debit_differs', one, carrier_id],
      ['debit_not_in_ledger', other, carrier_id],
    ]),
  )
  await sql(`UPDATE read_model.bank_debits SET status = 'submitted' WHERE leg_id = $1`, [one])
})

test('a balance that is not the sum of its debits is found', async () => {
  const before = await whatDiffers()
  const change = (by: number) =>
    sql(
      `UPDATE read_model.carrier_balances SET carriers = jsonb_set(carriers, ARRAY[$1, 'at_bank'],
       to_jsonb((carriers -> $1 ->> 'at_bank')::bigint + $2::bigint)) WHERE tenant_id = $3`,
      [carrier_id, by, tenant_id],
    )
  await change(1)
  expect(await whatDiffers()).toEqual([...before, ['balance_differs', null, carrier_id]])
  await change(-1)
  expect(await whatDiffers()).toEqual(before)
})

test('a credit whose debit was never told is found', async () => {
  const before = await whatDiffers()
  const debitId = await submitted(1_300)
  const credit = await credited(debitId, 1_300, false)
  expect(await whatDiffers()).toEqual([...before, ['credit_not_received', debitId, carrier_id]])
  const matched = { matchId: credit, bankTransactionId: credit, bankDate: '2026-11-25' }
  await carryOut(debitId, { type: 'Match', ...matched, confidence: 'high', at: at() })
  expect(await whatDiffers()).toEqual(before)
})

test('credits shown before their debit was submitted are looked at again: a repeat tells the debit, nothing is received twice', async () => {
  const before = { balances: await balances(), differs: await whatDiffers() }
  const debitId = await debited(1_375)
  const { entry_date } = (await app.commands.load(bankDebit, debitId)).state!
  const shown = { carrier_id, bank_date: entry_date!, amount_cents: 1_375 }
  const receive = async (bankTransactionId: string, reference: string | null) =>
    accepted(
      await receiveCredit(
        app,
        { ...shown, bank_transaction_id: bankTransactionId, reference },
        operatorContext(),
      ),
    ).credit
  const [unnamed, named] = [await receive('early-1', null), await receive('early-2', debitId)]
  expect([unnamed.match, named.match]).toEqual([null, null])
  expect(await creditsShownBefore(app, debitId)).toEqual([])
  await carryOut(debitId, { type: 'Acknowledge', at: at() })
  const found = await creditsShownBefore(app, debitId)
  expect(found).toEqual([named.credit_id, unnamed.credit_id])
  // it is decided on, and who did that died before the debit was told
  const match = { debitId: debitId, confidence: 'high' } as const
  const decide = { type: 'Decide', match, named: debitId, refusedBy: null, at: at() } as const
  accepted(await app.commands.execute(bankCredit, named.credit_id, decide, context()))
  expect(await creditsShownBefore(app, debitId)).toEqual([unnamed.credit_id])
  expect(await whatDiffers()).toEqual([...before.differs, ['credit_not_received', debitId, carrier_id]])
  const again = { ...operatorContext(), mayRepeat: true }
  await Promise.all([1, 2].map(() => matchCreditsAgain(app, debitId, found, again)))
  await matchCreditsAgain(app, debitId, found, again)
  const debit = (await app.commands.load(bankDebit, debitId)).state!
  expect(debit.matched_with).toEqual(['early-2'])
  expect(await creditsShownBefore(app, debitId)).toEqual([])
  expect(await whatDiffers()).toEqual(before.differs)
  const { received, unmatched } = before.balances
  expect(await balances()).toMatchObject({ received: received + 1_375, unmatched: unmatched + 1_375 })
})

test('a debit that has ended, although the bank took its entry, is found', async () => {
  const before = await whatDiffers()
  const [debitId, file_id] = [await debited(1_350), newId()]
  const { batch_closes_at } = (await app.commands.load(bankDebit, debitId)).state!
  const file = { file_id, batch_closes_at: batch_closes_at! }
  await recordBankFile(app, file, [])
  const entry = { traceNumber: '021000020000001', entryDate: '2026-12-02' }
  await carryOut(
    debitId,
    { type: 'Fail', note: 'The policy is cancelled', at: at() },
    { type: 'PutInFile', ofBatch: file.batch_closes_at, fileId: file_id, ...entry, at: at() },
  )
  expect(await whatDiffers()).toEqual(before)
  const answer = { type: 'Answer', batchNumber: null, outcome: 'accepted', reason: null } as const
  const commands = [
    { type: 'RecordExposed' as const, at: at() },
    { ...answer, reportId: null, at: at() },
  ]
  accepted(await app.commands.execute(bankFile, file_id, commands, operatorContext()))
  expect(await whatDiffers()).toEqual([...before, ['file_differs', debitId, carrier_id]])
})

test('a debit that has ended, although the bank took its batch and would not take another, is found', async () => {
  const before = await whatDiffers()
  const [taken, refused, file_id] = [await debited(500), await debited(500), newId()]
  const { batch_closes_at: closes } = (await app.commands.load(bankDebit, taken)).state!
  await recordBankFile(app, { file_id, batch_closes_at: closes! }, [taken], { others: [refused] })
  for (const [index, debitId] of [taken, refused].entries()) {
    const entry = { traceNumber: `02100002000000${index + 1}`, entryDate: '2026-12-02' }
    await carryOut(
      debitId,
      { type: 'Fail', note: 'The policy is cancelled', at: at() },
      { type: 'PutInFile', ofBatch: closes!, fileId: file_id, ...entry, at: at() },
    )
  }
  const answer = { type: 'Answer', reason: null, reportId: null } as const
  const commands = [
    { type: 'RecordExposed' as const, at: at() },
    { type: 'RecordFetched' as const, at: at() },
    { ...answer, batchNumber: 1, outcome: 'accepted' as const, at: at() },
    { ...answer, batchNumber: 2, outcome: 'rejected' as const, at: at() },
  ]
  accepted(await app.commands.execute(bankFile, file_id, commands, operatorContext()))
  expect(await whatDiffers()).toEqual([...before, ['file_differs', taken, carrier_id]])
})

test('a debit that has yet to be told that the bank took its entry is found once the time for that is up', async () => {
  const before = await whatDiffers()
  const [debitId, refused, file_id] = [await debited(500), await debited(500), newId()]
  const { batch_closes_at: closes } = (await app.commands.load(bankDebit, debitId)).state!
  await recordBankFile(app, { file_id, batch_closes_at: closes! }, [debitId], { others: [refused] })
  for (const [index, id] of [debitId, refused].entries()) {
    const entry = { traceNumber: `02100002000000${index + 1}`, entryDate: '2026-12-02' }
    await carryOut(id, { type: 'PutInFile', ofBatch: closes!, fileId: file_id, ...entry, at: at() })
  }
  const later = { ...app, clock: { ...app.clock, now: () => at() + 3_600_000 } }
  const differsLater = async () =>
    accepted(await reconcile(later, 'operator', operatorContext())).differences.map(({ leg_id }) => leg_id)
  const answer = { type: 'Answer', reason: null, reportId: null, outcome: 'accepted' } as const
  const answered = async (batchNumber: number) => {
    const commands = [
      { type: 'RecordExposed' as const, at: at() },
      { ...answer, batchNumber, at: at() },
    ]
    accepted(await app.commands.execute(bankFile, file_id, commands, operatorContext()))
  }
  // in part, and as a whole
  await answered(1)
  expect(await whatDiffers()).toEqual(before)
  expect(await differsLater()).toHaveLength(before.length + 1)
  await answered(2)
  expect(await whatDiffers()).toEqual(before)
  expect(await differsLater()).toEqual(expect.arrayContaining([debitId, refused]))
  for (const id of [debitId, refused]) await carryOut(id, { type: 'Acknowledge', ofBatch: closes!, at: at() })
  expect(await differsLater()).toHaveLength(before.length)
})

test('a file that could not be written yet holds up no comparison', async () => {
  const before = await whatDiffers()
  const [file_id, batch_closes_at] = [newId(), now()]
  const dated = { part: 0, file_date: '2026-12-01', file_time: '1701', modifier: 'B' }
  const data = { file_id, batch_closes_at, ...dated, first_sequence: 1, count: 1, at: now() }
  accepted(await app.commands.execute(bankFile, file_id, { type: 'Begin', data }, operatorContext()))
  const folders = new NachaFolders({ outboxDir: '/nowhere', inboxDir: '/nowhere' })
  const archive = new EncryptedBankArchive(process.bench.database.pool, app.vault)
  const bankFiles = { folders, archive, originator: ORIGINATOR, limits: LIMITS }
  const { differences } = accepted(await reconcile({ ...app, bankFiles }, 'operator', operatorContext()))
  expect(differences).toHaveLength(before.length)
})

test('a tenant whose debits come back too often raises one alert for each limit', async () => {
  const rates = async () => {
    const scope = { tenant_id, environment: null }
    const { items, total } = await listReturnRates(app, scope, { page: 1, limit: 10 })
    expect(total).toBe(1)
    return items[0]!
  }
  const before = await rates()
  expect(before).toMatchObject({ returned: { unauthorized: 0, overall: 1 } })
  for (const _ of [1, 2]) {
    await carryOut(await submitted(1_400), { type: 'Return', return_code: 'R10', at: at() })
  }
  expect(await rates()).toMatchObject({
    entries: before.entries + 2,
    returned: { unauthorized: 2, administrative: 0, overall: 3 },
  })
  const said = async () => {
    const stored = await app.log.readStream(streamOf(returnRate, derivedId(tenant_id, 'return-rate/live')))
    return stored.map(({ type, data }) => [type, JSON.parse(data).rate])
  }
  for (const _ of [1, 2]) await compareReturnRates(app, tenant_id, operatorContext())
  const exceeded = [
    ['ReturnRateExceeded', 'unauthorized'],
    ['ReturnRateExceeded', 'overall'],
  ]
  expect(await said()).toEqual(exceeded)

  // it debits nothing any more, until none of that counts
  expect(await projections.reached(['operator-alerts'], await app.log.head())).toBe(true)
  const clock = { ...app.clock, now: () => at() + 60 * 86_400_000 }
  for (const _ of [1, 2]) await compareReturnRates({ ...app, clock }, null, operatorContext())
  expect(await said()).toEqual([
    ...exceeded,
    ['ReturnRateRecovered', 'unauthorized'],
    ['ReturnRateRecovered', 'overall'],
  ])
})

test('a debit that is presented again does not have the credit back that it lost', async () => {
  const before = await whatDiffers()
  const debitId = await submitted(1_360)
  const { entry_date } = (await app.commands.load(bankDebit, debitId)).state!
  const shown = { carrier_id, bank_date: entry_date!, amount_cents: 1_360 }
  const receive = async (bankTransactionId: string, reference: string | null) =>
    accepted(
      await receiveCredit(
        app,
        { ...shown, bank_transaction_id: bankTransactionId, reference },
        operatorContext(),
      ),
    ).credit
  const lost = await receive('lost-1', null)
  expect(lost.match).toEqual({ debitId: debitId, confidence: 'medium' })
  expect((await receive('lost-2', debitId)).match).toEqual({ debitId: debitId, confidence: 'high' })
  await matchDisplacedCredits(app, debitId, operatorContext())
  await carryOut(
    debitId,
    { type: 'Return', return_code: 'R01', at: at() },
    { type: 'Represent', note: null, at: at() },
    { type: 'Acknowledge', at: at() },
  )
  for (const creditIds of [await creditsShownBefore(app, debitId), [lost.credit_id]]) {
    await matchCreditsAgain(app, debitId, creditIds, { ...operatorContext(), mayRepeat: true })
  }
  expect((await app.commands.load(bankCredit, lost.credit_id)).state!.match).toBeNull()
  expect((await app.commands.load(bankDebit, debitId)).state!.match).toBeNull()
  expect(await whatDiffers()).toEqual(before)
})
