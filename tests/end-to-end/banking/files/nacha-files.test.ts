import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { nextClose } from '../../../../domain/banking/debits/banking-days.ts'
import { startOf } from '../../../../domain/kernel/new-york.ts'
import { accountBody, achDebitsOf, linkedAccountBody } from '../../../support/ach-debits.ts'
import { bankDebitsOf, ownAccount, type SettlingCarrier } from '../../../support/bank-debits.ts'
import { ConsoleVisitor } from '../../../support/console.ts'
import { allEvents } from '../../../support/core.ts'
import { type BanksEntry, type NachaBank, openNachaBank } from '../../../support/nacha-bank.ts'
import { answersFile, reportFile } from '../../../support/nacha-files.ts'
import { enableCheckout, newSession } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import {
  operate,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
  send,
} from '../../../support/seed.ts'
import { type RunningService, startService } from '../../../support/service.ts'

/** A service whose live debits go through files, on a clock of its own. The bank is simulated on its folders. */

type Json = ReturnType<typeof JSON.parse>
const HALF_A_MINUTE = 30_000
/** What some systems begin files with; its bytes say how the text is encoded. */
const MARK = '\ufeff'
let theirs: NachaBank
let service: RunningService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>
let of: SettlingCarrier

beforeAll(async () => {
  theirs = await openNachaBank()
  service = await startService({ env: theirs.env })
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  bank = bankDebitsOf(service, tenant)
  of = await bank.carrierOf('direct')
  return async () => {
    await service.stop()
    await theirs.close()
  }
})

const ops = (method: string, path: string, body?: unknown): Promise<Json> =>
  operate(service, method, path, body)

/** Lets the next batch close and go. */
async function closeUnfetched(): Promise<void> {
  await bank.ops('/debit-batches')
  await bank.advanceTo(nextClose(await bank.now()) + 2 * 60_000 + HALF_A_MINUTE)
  await bank.drain()
}
/** The same; the bank fetches it. */
async function closeBatch(): Promise<readonly BanksEntry[]> {
  await closeUnfetched()
  return theirs.fetch()
}
const entryOf = (entries: readonly BanksEntry[], debitId: string): BanksEntry =>
  entries.find(({ identification }) => debitId.startsWith(identification))!

/** Brings a file, and has it read. @returns the report. */
async function brought(name: string, content: string | Uint8Array): Promise<Json> {
  await theirs.bring(name, content)
  expect((await bank.ops('/bank-files/look')).taken).toBe(1)
  await bank.drain()
  const [{ report_id }] = await ops('GET', '/bank-reports?limit=1')
  return ops('GET', `/bank-reports/${report_id}`)
}
const statusOf = async (debitId: string) => (await bank.transaction(debitId)).status
const alertsOf = (kind: string) => ops('GET', `/alerts?kind=${kind}&status=open`)

test('a page where a bank debit moves money calls itself no test, though its cards are simulated', async () => {
  const { status, text } = await send((await newSession(service, tenant)).url)
  expect(status).toBe(200)
  for (const words of ['Test mode', 'no money moves']) expect(text).not.toContain(words)
})

test('a live debit goes through a file to its return, and once more when an operator presents it again', async () => {
  const account = ownAccount()
  const [{ debitId }, other] = [await bank.arranged(of, {}, account), await bank.arranged(of)]
  const entries = await closeBatch()
  const sent = entryOf(entries, debitId)
  expect(sent).toMatchObject({ code: '27', account: account.account_number, description: 'PREMIUM' })
  const [inFile] = (await allEvents(service, 'BankDebitInFile')).filter(({ data }) => data.leg_id === debitId)
  expect(inFile!.data).toMatchObject({ trace_number: sent.trace })
  const [row] = await ops('GET', '/bank-files')
  expect(row).toMatchObject({ name: sent.file, status: 'exposed', answer: 'none', debit_cents: 21_000 })
  const found = async (q: string) =>
    (await ops('GET', `/search?q=${q}`)).map(({ kind, id }: Json) => `${kind} ${id}`)
  expect(await found(sent.file)).toEqual([`bank_file ${row.file_id}`])
  expect(await found(sent.trace)).toEqual([`bank_file ${row.file_id}`, `debit ${debitId}`])

  const visitor = new ConsoleVisitor(service)
  await visitor.signIn()
  const lines = await visitor.get(`/console/bank-files/${row.file_id}/lines`)
  for (const { trace } of entries) expect(lines.text).toContain(`<td>${trace}</td>`)
  expect(lines.text).toContain(`href="/console/debits/${debitId}"`)
  expect((await visitor.get(`/console/bank-files/${debitId}/lines`)).status).toBe(404)

  // what a real bank has is nobody's to play
  const played = await bank.tryOps(`/bank-rail/${debitId}/acknowledge`)
  expect([played.status, played.body.message]).toEqual([409, expect.stringContaining('files of the bank')])

  const answers = answersFile([{ file: sent.file, outcome: 'accepted' }])
  const accepted = await brought('answer.jsonl', MARK + answers)
  expect(accepted).toMatchObject({ status: 'read', format: 'answers', items: 1, applied: 1, parked: [] })
  expect(await ops('GET', `/bank-files/${row.file_id}`)).toMatchObject({
    status: 'fetched',
    answer: 'accepted',
  })
  expect([await statusOf(debitId), await statusOf(other.debitId)]).toEqual(['submitted', 'submitted'])

  const back = { code: 'R01', originalTrace: sent.trace, amountCents: 10_500 }
  const changed = { code: 'C01', originalTrace: sent.trace, correctedData: '1918171614' }
  const unknown = { ...back, originalTrace: '021000029999999' }
  const wrong = { ...back, originalTrace: entryOf(entries, other.debitId).trace, amountCents: 10_501 }
  const noReturns = ['R00', 'R86', 'R99'].map((code) => ({ ...wrong, code, amountCents: 10_500 }))
  const report = await brought(
    'returns.txt',
    MARK + reportFile([back, changed, unknown, wrong, ...noReturns]),
  )
  expect(report).toMatchObject({ status: 'read', format: 'nacha', items: 7, applied: 2, repeated: 0 })
  expect(report.parked.map(({ reason, code }: Json) => [code, reason])).toEqual([
    ['R01', 'No entry was sent with this trace number'],
    ['R01', 'The entry with this trace number was sent with another amount'],
    ...noReturns.map(({ code }) => [code, `${code} is no code of a return, R01 to R85: ask the bank`]),
  ])
  expect(await alertsOf('bank_report_items_parked')).toMatchObject([
    { about: { report_id: report.report_id } },
  ])
  expect([await statusOf(debitId), await statusOf(other.debitId)]).toEqual(['returned', 'submitted'])
  expect(await bank.webhooksOfDebit('payment.failed', debitId)).toMatchObject([{ return_code: 'R01' }])

  // the same return in another file counts once
  for (const encoding of ['latin1', 'utf16le'] as const) {
    const mark = encoding === 'latin1' ? '' : MARK
    const bytes = Buffer.from(mark + reportFile([back]), encoding)
    const again = await brought(`returns-2-${encoding}.txt`, bytes)
    expect(again).toMatchObject({ items: 1, applied: 0, repeated: 1, parked: [] })
  }
  const { line } = report.parked[0]
  const resolved = await bank.ops(`/bank-reports/${report.report_id}/items/${line}/resolve`, {
    note: 'theirs',
  })
  expect([resolved.parked.length, resolved.resolved]).toMatchObject([4, [{ line, note: 'theirs' }]])
  expect(await bank.ops(`/bank-reports/${report.report_id}/read-again`)).toMatchObject({ status: 'received' })
  await bank.drain()
  expect(await ops('GET', `/bank-reports/${report.report_id}`)).toMatchObject({
    status: 'read',
    applied: 1,
    repeated: 1,
    parked: [wrong, ...noReturns].map(({ code, originalTrace }) => ({ code, original_trace: originalTrace })),
  })
  // the alert ends with the last of them
  const open = async () => (await alertsOf('bank_report_items_parked')).length
  for (const item of report.parked.slice(1)) {
    expect(await open()).toBe(1)
    await bank.ops(`/bank-reports/${report.report_id}/items/${item.line}/resolve`)
  }
  expect(await open()).toBe(0)

  expect(await bank.ops(`/debits/${debitId}/represent`)).toMatchObject({
    status: 'Scheduled',
    return_code: null,
  })
  const retried = entryOf(await closeBatch(), debitId)
  expect(retried).toMatchObject({ description: 'RETRY PYMT', account: '1918171614', amountCents: 10_500 })
  // the first entry came back before
  const late = await brought('returns-3.txt', reportFile([{ ...back, code: 'R09' }]))
  expect(late.parked).toMatchObject([{ reason: expect.stringContaining('presented again since') }])
  await brought('returns-4.txt', reportFile([{ ...back, originalTrace: retried.trace, code: 'R02' }]))
  expect(await statusOf(debitId)).toBe('returned')
  expect(await bank.webhooksOfDebit('payment.failed', debitId)).toMatchObject([{}, { return_code: 'R02' }])
  expect((await bank.tryOps(`/debits/${debitId}/represent`)).status).toBe(409)
  expect((await bank.tryOps(`/debits/${other.debitId}/represent`)).status).toBe(409)
})

test('an answer that comes once debits were presented again is not about their new entries', async () => {
  const debitIds = [(await bank.arranged(of)).debitId, (await bank.arranged(of)).debitId]
  const sent = await closeBatch()
  const back = debitIds.map((debitId) => ({
    code: 'R01',
    originalTrace: entryOf(sent, debitId).trace,
    amountCents: 10_500,
  }))
  await brought('unanswered-returns.txt', reportFile(back))
  for (const debitId of debitIds) await bank.ops(`/debits/${debitId}/represent`)
  const [{ file }] = sent as [BanksEntry]
  await brought('late-answer.jsonl', answersFile([{ file, outcome: 'accepted' }]))
  expect(await Promise.all(debitIds.map(statusOf))).toEqual(['Scheduled', 'Scheduled'])
  const retried = await closeBatch()
  expect(retried.map(({ identification }) => identification).sort()).toEqual(
    debitIds.map((debitId) => debitId.slice(0, 15)).sort(),
  )
})

test('a file that the bank rejects fails its debits, and one that is not whole counts for nothing', async () => {
  const { id, debitId, url } = await bank.arranged(of)
  const plan = await bank.arranged(of, { total_installments: 3, down_payment_percent: 20 })
  const sent = entryOf(await closeBatch(), debitId)
  const rejection = { file: sent.file, batch: 1, outcome: 'rejected', reason: 'unknown company' }
  const text = answersFile([rejection])
  const cut = await brought('cut.jsonl', text.slice(0, text.lastIndexOf('{')))
  expect(cut).toMatchObject({ status: 'refused', refusal: expect.stringContaining('cut short') })
  expect(await alertsOf('bank_report_refused')).toMatchObject([{ about: { report_id: cut.report_id } }])
  const foreign = await brought('foreign.txt', reportFile([], { destination: '091000019' }))
  expect(foreign).toMatchObject({ status: 'refused', refusal: expect.stringContaining('for somebody else') })
  expect(await statusOf(debitId)).toBe('Scheduled')

  await brought('whole.jsonl', text)
  expect(await statusOf(debitId)).toBe('failed')
  expect(await alertsOf('bank_file_rejected')).toHaveLength(1)
  // nothing else tells of it: a payer's choice is announced by nothing
  const [told, ...more] = await bank.webhooksOfDebit('payment.failed', debitId)
  expect(told).toMatchObject({ payment_session_id: id, amount_cents: 10_500 })
  expect([told.return_code, told.failure_message]).toEqual([
    ...[undefined, expect.stringContaining('unknown company')],
  ])
  expect([more, await bank.webhooksOfDebit('payment.debit_cancelled', debitId)]).toEqual([[], []])
  expect((await bank.session(id)).status).toBe('scheduled')
  expect((await send(url)).text).toContain('Payment not collected')
  expect(await statusOf(plan.debitId)).toBe('failed')
  expect(await bank.webhooksOfDebit('payment.failed', plan.debitId)).toHaveLength(1)
  expect(await alertsOf('down_payment_failed')).toMatchObject([{ about: { payment_session_id: plan.id } }])
  const opposed = await brought('opposed.jsonl', answersFile([{ file: sent.file, outcome: 'accepted' }]))
  expect(opposed.parked).toMatchObject([
    { kind: 'answer', reason: 'Batch 1 of the file was rejected before' },
  ])
})

test('a file calls for a person while nobody fetches it, or answers, by the close of its entry date', async () => {
  const { debitId } = await bank.arranged(of)
  await closeBatch()
  const [{ file_id }] = await ops('GET', '/bank-files?limit=1')
  const raised = async () =>
    (await alertsOf('bank_file_overdue')).filter(({ about }: Json) => about.file_id === file_id).length
  expect(await raised()).toBe(0)
  // nobody has looked into the folder, so that it is not known that it was fetched
  expect((await bank.tryOps(`/bank-files/${file_id}/reject`)).body.message).toContain('look into the folders')
  await bank.advanceTo(nextClose(await bank.now()))
  await bank.drain()
  expect(await raised()).toBe(1)
  await bank.ops(`/bank-files/${file_id}/acknowledge`)
  await bank.drain()
  expect([await statusOf(debitId), await raised()]).toEqual(['submitted', 0])
  expect(await ops('GET', '/bank-files?limit=1')).toMatchObject([{ file_id, status: 'sent' }])
  // whoever answers has it: that it goes unnoticed makes it uncertain no more
  for (const name of await readdir(theirs.outbox)) await rm(join(theirs.outbox, name))
  await bank.ops('/bank-files/look')
  expect(await ops('GET', `/bank-files/${file_id}`)).toMatchObject({ status: 'sent', answer: 'accepted' })
})

// unit/banking/files/nacha-reports reads several of one account
test('two changes of one account in one report are both applied, before its return', {
  tags: 'long',
}, async () => {
  const account = accountBody(tenant.employerId, {
    routing_number: '021000021',
    account_number: '70700070701',
  })
  const created = await partner(service, tenant.clientHeaders, 'POST', '/bank-accounts/ach', account)
  const { _id } = created.body.data
  const played = achDebitsOf(service, tenant)
  const debitIds = [await played.created(_id), await played.created(_id)]
  const sent = await closeBatch()
  const changes = [
    { code: 'C01', correctedData: '70700070799' },
    { code: 'C02', correctedData: '011000015' },
  ].map((change, index) => ({ ...change, originalTrace: entryOf(sent, debitIds[index]!).trace }))
  // what comes back says nothing of the numbers that stand there then, even where it stands first
  const back = ({ trace, amountCents }: BanksEntry) => ({ code: 'R02', originalTrace: trace, amountCents })
  const report = reportFile([back(entryOf(sent, debitIds[0]!)), ...changes])
  expect(await brought('changes.txt', report)).toMatchObject({ applied: 3, parked: [] })
  const later = await played.created(_id)
  const corrected = entryOf(await closeBatch(), later)
  expect(corrected).toMatchObject({ routing: '011000015', account: '70700070799' })

  const statusOfAccount = async (id: string) =>
    (await partner(service, tenant.clientHeaders, 'GET', `/bank-accounts/ach/${id}`)).body.data.status
  expect([await statusOf(debitIds[0]!), await statusOfAccount(_id)]).toEqual(['returned', 'unverified'])
  const same = await partner(service, tenant.clientHeaders, 'POST', '/bank-accounts/ach', account)
  expect(await statusOfAccount(same.body.data._id)).toBe('disabled')
  await brought('return-of-corrected.txt', reportFile([back(corrected)]))
  expect(await statusOfAccount(_id)).toBe('disabled')
})

test("a late return for a payer's numbers from before a change disables nothing that has others since", async () => {
  const account = ownAccount()
  const plan = await bank.arranged(of, { total_installments: 3, down_payment_percent: 20 }, account)
  const sent = entryOf(await closeBatch(), plan.debitId)
  const change = { code: 'C01', originalTrace: sent.trace, correctedData: '50400030201' }
  await brought('payers-change.txt', reportFile([change]))
  const other = await bank.arranged(of, {}, account)
  const back = { code: 'R02', originalTrace: sent.trace, amountCents: sent.amountCents }
  expect(await brought('payers-late-return.txt', reportFile([back]))).toMatchObject({ applied: 1 })
  expect(entryOf(await closeBatch(), other.debitId)).toMatchObject({ account: '50400030201' })
  // there is no plan without its down payment, and its numbers are not why
  const stopped = (await allEvents(service, 'PaymentSessionPlanStopped')).filter(
    ({ data }) => data.payment_session_id === plan.id,
  )
  expect(stopped.map(({ data }) => [data.reason, data.disabled_by])).toEqual([
    ['down_payment_returned', undefined],
  ])
})

// integration/operations/readiness has a folder that is away
test('a file that is not written yet, since its folder is away, keeps nobody from comparing', {
  tags: 'long',
}, async () => {
  const { debitId } = await bank.arranged(of)
  const away = `${theirs.outbox}.away`
  await rename(theirs.outbox, away)
  try {
    expect(await closeBatch().catch(({ code }) => code)).toBe('ENOENT')
    expect(await ops('GET', '/bank-files?limit=1')).toMatchObject([{ status: 'begun' }])
    expect(await bank.ops('/reconciliations')).toMatchObject({ difference_count: 0 })
  } finally {
    await rename(away, theirs.outbox)
  }
  await bank.advanceTo((await bank.now()) + 30 * 60_000)
  await bank.drain()
  expect(entryOf(await theirs.fetch(), debitId)).toBeDefined()
})

test('a look says that a folder is away, also where nothing is looked for in it', async () => {
  await bank.ops('/bank-files/look')
  for (const folder of [theirs.outbox, theirs.inbox]) {
    await rename(folder, `${folder}.away`)
    const { status } = await bank.tryOps('/bank-files/look')
    await rename(`${folder}.away`, folder)
    expect(status).toBe(502)
  }
  expect(await bank.ops('/bank-files/look')).toEqual({ taken: 0, fetched: 0, uncertain: 0 })
})

test('a file that is lost is not sent on the day of its entries: it is rejected, and its debits fail', async () => {
  const { debitId } = await bank.arranged(of)
  await closeUnfetched()
  const [{ file_id, name }] = await ops('GET', '/bank-files?limit=1')
  const away = join(theirs.outbox, `${name}.part`)
  await rename(join(theirs.outbox, name), away)
  expect(await bank.ops('/bank-files/look')).toMatchObject({ uncertain: 1 })
  await rename(away, join(theirs.outbox, name))
  await bank.ops('/bank-files/look')
  // nobody but the look ended it, whoever asked for that
  expect(await ops('GET', '/alerts?kind=bank_file_uncertain&limit=1')).toMatchObject([
    { about: { file_id }, status: 'acknowledged', acknowledged_by: 'bank-folders', note: null },
  ])
  await rm(join(theirs.outbox, name))
  expect(await bank.ops('/bank-files/look')).toMatchObject({ uncertain: 1 })
  const shown = await ops('GET', `/bank-files/${file_id}`)
  const [{ entry_date }] = shown.batches
  await bank.advanceTo(startOf(entry_date))
  const refused = await bank.tryOps(`/bank-files/${file_id}/expose-again`)
  expect([refused.status, refused.body.message]).toEqual([
    ...[409, expect.stringContaining(`were to take effect on ${entry_date}`)],
  ])
  expect(refused.body.message).toContain('reject it')
  expect(await ops('GET', `/bank-files/${file_id}`)).toEqual(shown)
  expect(await alertsOf('bank_file_uncertain')).toHaveLength(1)
  await bank.ops(`/bank-files/${file_id}/reject`, { reason: 'not received' })
  await bank.drain()
  expect([await statusOf(debitId), await alertsOf('bank_file_uncertain')]).toEqual(['failed', []])
})

// integration/banking/files/micro-deposits writes them into files
test('micro-deposits of a live account go with the next file, those of a sandbox account with none', {
  tags: 'long',
}, async () => {
  const sandbox = await seedTenant(service, { environment: 'sandbox' })
  const entered = async (of: SeededTenant) => {
    const numbers = { routing_number: '021000021', account_number: '55512340001' }
    const account = accountBody(of.employerId, { account_type: 'savings', ...numbers })
    return (await partner(service, of.clientHeaders, 'POST', '/bank-accounts/ach', account)).body.data._id
  }
  const started = async (of: SeededTenant) => {
    const _id = await entered(of)
    const verify = `/bank-accounts/ach/${_id}/micro-deposits`
    expect((await partner(service, of.clientHeaders, 'POST', verify, {})).status).toBeLessThan(300)
    return _id
  }
  const [live, simulated] = [await started(tenant), await started(sandbox)]
  await bank.drain()
  const entries = await closeBatch()
  expect(entries.map(({ code, description, account }) => [code, description, account])).toEqual([
    ['32', 'ACCTVERIFY', '55512340001'],
    ['32', 'ACCTVERIFY', '55512340001'],
  ])
  expect(entries.every(({ amountCents }) => amountCents > 0 && amountCents < 100)).toBe(true)
  const { amounts_cents } = await ops('GET', `/bank-rail/micro-deposits/${simulated}`)
  expect(amounts_cents).toHaveLength(2)
  await expect(ops('GET', `/bank-rail/micro-deposits/${live}`)).rejects.toThrow('409')
  // what comes back says that there is no such account
  const [{ trace, amountCents }] = entries as [BanksEntry]
  const back = { code: 'R03', originalTrace: trace, amountCents, transactionCode: 31 }
  expect(await brought('deposits.txt', reportFile([back]))).toMatchObject({ applied: 1, parked: [] })
  const statusOfAccount = async (id: string) =>
    (await partner(service, tenant.clientHeaders, 'GET', `/bank-accounts/ach/${id}`)).body.data.status
  expect(await statusOfAccount(live)).toBe('disabled')
  const other = await entered(tenant)
  expect(await statusOfAccount(other)).toBe('disabled')

  // it may be debited again once somebody has shown that it is there
  const enable = (id: string, body: object) => bank.tryOps(`/ach-accounts/${id}/enable`, body)
  const reason = 'opened after all, says the bank'
  expect((await enable(live, {})).body).toMatchObject({ message: 'reason is required' })
  const refused = await enable(live, { reason })
  expect([refused.status, refused.body]).toMatchObject([
    409,
    { message: expect.stringContaining('R03: it says that there is no such account') },
  ])
  expect(await bank.ops(`/ach-accounts/${live}/attest`)).toMatchObject({ status: 'disabled', verified: true })
  expect((await enable(other, { reason })).status).toBe(409)
  for (const _again of [1, 2]) {
    const { status, body } = await enable(live, { reason })
    expect([status, body.data]).toMatchObject([200, { _id: live, status: 'active' }])
  }
  expect([await statusOfAccount(other), await statusOfAccount(await entered(tenant))]).toEqual([
    'unverified',
    'unverified',
  ])
  expect((await enable('f'.repeat(24), { reason })).status).toBe(404)
  const [enabled] = (await allEvents(service, 'BankNumbersEnabled')) as [Json]
  expect(enabled).toMatchObject({ data: { reason }, metadata: { actor: { type: 'operator' } } })
})

test('a return is read among other addenda, and one that cannot be read is applied by an operator', async () => {
  const [{ debitId }, other, third] = [
    await bank.arranged(of, {}, ownAccount()),
    await bank.arranged(of, {}, ownAccount()),
    await bank.arranged(of, { amount_cents: 20_000 }, ownAccount()),
  ]
  const entries = await closeBatch()
  const back = (of: string, code: string) => {
    const { trace, amountCents } = entryOf(entries, of)
    return { code, originalTrace: trace, amountCents }
  }
  // the entry of the first has remittance before what says that it comes back, the second no code that can be read
  const remittance = `705INVOICE 17${' '.repeat(70)}00010000001\n`
  const text = reportFile([
    back(debitId, 'R29'),
    back(other.debitId, 'R02'),
    { ...back(other.debitId, 'R01'), originalTrace: '0'.repeat(15) },
  ])
    .replace('799R29', `${remittance}799R29`)
    .replace('8200000002', '8200000003')
    .replace(/^(9.{12})00000006/m, '$100000007')
    .replace('799R02', '799R0O')
  const report = await brought('addenda.txt', text)
  expect(report).toMatchObject({ status: 'read', items: 3, applied: 1, applied_items: [] })
  const [item, unknown] = report.parked
  expect([item, unknown]).toMatchObject([
    { kind: 'return', code: null, reason: expect.stringContaining('the code of the addenda record is none') },
    { kind: 'return', code: 'R01', reason: 'No entry was sent with this trace number' },
  ])
  expect([await statusOf(debitId), await statusOf(other.debitId)]).toEqual(['returned', 'Scheduled'])

  const apply = ({ line }: Json, changes: object = {}) =>
    bank.tryOps(`/bank-reports/${report.report_id}/items/${line}/apply`, {
      ...{ transaction_id: other.debitId, return_code: 'R02', reason: 'its letter of today' },
      ...changes,
    })
  const refusals = [
    [{ transaction_id: undefined }, 400, 'transaction_id is required'],
    [{ return_code: 'R86' }, 400, 'return_code must be a return code'],
    [{ return_code: 'R73' }, 400, 'return_code must be a return code, R01 to R85, and none of R61 to R77'],
    [{ reason: undefined }, 400, 'reason is required'],
    [{ transaction_id: 'f'.repeat(24) }, 404, 'transaction_id names no bank debit'],
    [{ transaction_id: third.debitId }, 409, 'transaction_id names a debit of another amount'],
    [{ transaction_id: debitId }, 409, 'The debit is returned'],
  ] as const
  for (const [changes, status, message] of refusals) {
    const refused = await apply(item, changes)
    expect([refused.status, refused.body.message]).toEqual([status, expect.stringContaining(message)])
  }
  expect((await apply({ line: 1 })).body).toMatchObject({ message: 'No item is parked under this line' })
  expect(await statusOf(other.debitId)).toBe('Scheduled')
  for (const _again of [1, 2]) {
    const { status, body } = await apply(item)
    const applied = {
      line: item.line,
      transaction_id: other.debitId,
      return_code: 'R02',
      reason: 'its letter of today',
    }
    expect([status, body.data]).toMatchObject([
      200,
      { applied: 2, parked: [unknown], applied_items: [applied] },
    ])
  }
  expect(await statusOf(other.debitId)).toBe('returned')
  const [told] = (await allEvents(service, 'BankReportItemApplied')) as [Json]
  expect(told.metadata.actor.type).toBe('operator')
  expect((await apply(item, { return_code: 'R03' })).body.message).toBe('The item was applied to a debit')
  // what was applied by hand is left alone when the report is read again
  await bank.ops(`/bank-reports/${report.report_id}/read-again`)
  await bank.drain()
  expect(await ops('GET', `/bank-reports?limit=1`)).toMatchObject([
    { items: 3, applied: 2, repeated: 0, parked: 1 },
  ])
  await bank.ops(`/bank-reports/${report.report_id}/items/${unknown.line}/resolve`)
  await bank.drain()
  expect(await bank.webhooksOfDebit('payment.failed', other.debitId)).toMatchObject([{ return_code: 'R02' }])
})

test('what is simulated stays apart: no live credit pays a sandbox debit, no live debit takes an invented account', async () => {
  const { carrierId } = await bank.carrierOf('fbo')
  const sandbox = { tenantId: tenant.tenantId, environment: 'sandbox' } as const
  const { employerId } = await seedEmployer(service, sandbox)
  const { policyId } = await seedPolicy(service, { employerId, carrierId })
  const key = { tenant_id: tenant.tenantId, name: 'Sandbox', environment: 'sandbox', products: ['all'] }
  const { client_id, client_secret } = await bank.ops('/api-clients', key)
  const clientHeaders = { 'X-Client-ID': client_id, 'X-Client-Secret': client_secret }
  const played = achDebitsOf(service, { ...tenant, clientHeaders, employerId, policyId, carrierId })
  const debitId = await played.created(await played.account(employerId), { amount_cents: 31_007 })
  await bank.ops('/debit-batches')
  await bank.ops(`/bank-rail/${debitId}/acknowledge`)
  await bank.drain()
  const [{ effective_date: bank_date }] = await played.list()
  const credit = { bank_transaction_id: 'bt_live', bank_date, amount_cents: 31_007 }
  expect(await bank.credit({ carrierId, policyId }, credit)).toMatchObject({ matched: false })
  const named = { ...credit, bank_transaction_id: 'bt_named', reference: debitId }
  expect(await bank.credit({ carrierId, policyId }, named)).toMatchObject({ matched: false })

  const link = (path: string, body: unknown) => partner(service, tenant.clientHeaders, 'POST', path, body)
  const owner = { user_id: 'user-7', employer_id: tenant.employerId }
  const { body } = await link('/bankconnect/exchange', { ...owner, public_token: 'public-sandbox-x' })
  const account = linkedAccountBody(tenant.employerId, body.data)
  const refused = await link('/bank-accounts/ach/from-bankconnect', account)
  expect([refused.status, refused.body.message]).toEqual([409, expect.stringContaining('simulated')])
})

test('operators list and show what there is, and are refused what does not fit', async () => {
  const [file] = await ops('GET', '/bank-files?status=fetched&limit=1')
  expect((await bank.tryOps(`/bank-files/${file.file_id}/treat-as-sent`)).status).toBe(409)
  expect(await ops('GET', '/bank-reports?status=refused')).toHaveLength(2)
  expect((await ops('GET', '/bank-reports?parked=true')).length).toBeGreaterThan(0)
})

test('events, files, ledger and archive say the same of all this', async () => {
  await bank.ops('/reconciliations')
  const made = await ops('GET', '/reconciliations')
  expect(made.flatMap(({ differences }: Json) => differences)).toEqual([])
  const files = made.reduce((sum: number, { compared }: Json) => sum + compared.files, 0)
  expect(files).toBe((await ops('GET', '/bank-files?limit=200')).length)
})
