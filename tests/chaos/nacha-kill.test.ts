// @module-tag long: integration/nacha-files dies at every step
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nextClose } from '../../domain/banking/banking-days.ts'
import { type ArrangedSession, bankDebitsOf, type SettlingCarrier } from '../support/bank-debits.ts'
import { allEvents } from '../support/core.ts'
import { type BanksEntry, type NachaBank, openNachaBank } from '../support/nacha-bank.ts'
import { answersFile, reportFile } from '../support/nacha-files.ts'
import { enableCheckout } from '../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

/** A service that is killed while it writes files for a bank, and while it reads what the bank reports. */

const DEBITS = 120
const BUYERS = 8
const TIMEOUT_MS = 600_000
const DRAIN = { timeout_seconds: 120 }

let dataDir: string
let theirs: NachaBank
let service: RunningService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>
let of: SettlingCarrier
const sessions: ArrangedSession[] = []

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-nacha-'))
  theirs = await openNachaBank()
  service = await startService({ dataDir, env: theirs.env })
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  bank = bankDebitsOf(service, tenant)
  of = await bank.carrierOf('direct')
  const buy = async (first: number) => {
    for (let n = first; n < DEBITS; n += BUYERS) sessions.push(await bank.arranged(of))
  }
  await Promise.all(Array.from({ length: BUYERS }, (_, first) => buy(first)))
}, TIMEOUT_MS)
afterAll(async () => {
  await service?.stop()
  await theirs?.close()
  await rm(dataDir, { recursive: true, force: true })
})

async function killAndRestart(): Promise<void> {
  await service.kill()
  service = await startService({ dataDir, env: theirs.env })
  bank = bankDebitsOf(service, tenant)
}
interface Told {
  readonly leg_id: string
  readonly trace_number: string
}
const countOf = async (type: string) => (await allEvents(service, type)).length

/** Kills the service each time when so many events of a type are stored. */
async function killAt(type: string, ...counts: readonly number[]): Promise<void> {
  for (const count of counts) {
    while ((await countOf(type)) < count);
    await killAndRestart()
  }
}

test('files, answers and returns come out even, whenever the service is killed', {
  timeout: TIMEOUT_MS,
}, async () => {
  await bank.ops('/debit-batches')
  const close = nextClose(await bank.now())
  // the answers die with the service
  void bank.advanceTo(close + 90_000).catch(() => undefined)
  await killAt('BankFileBegun', 1)
  // a move that died before it was stored is asked for again
  void bank
    .now()
    .then((now) => bank.advanceTo(Math.max(close + 90_000, now)))
    .catch(() => undefined)
  await killAt('BankDebitInFile', 1, DEBITS / 2)
  await bank.ops('/drain', DRAIN)

  const entries = await theirs.fetch()
  const byTrace = new Map<string, BanksEntry>(entries.map((entry) => [entry.trace, entry]))
  const legs = sessions.map(({ leg }) => leg).sort()
  const beginnings = entries.map(({ identification }) => identification).sort()
  expect(beginnings).toEqual(legs.map((leg) => leg.slice(0, 15)))
  const told = (await allEvents(service, 'BankDebitInFile')).map(({ data }) => data as unknown as Told)
  expect(told.map(({ leg_id }) => leg_id).sort()).toEqual(legs)
  for (const { leg_id, trace_number } of told) {
    expect(leg_id.startsWith(byTrace.get(trace_number)!.identification)).toBe(true)
  }

  const files = new Set(entries.map(({ file }) => file))
  const answers = [...files].map((file) => ({ file, outcome: 'accepted' }))
  await theirs.bring('answers.jsonl', answersFile(answers))
  void bank.ops('/bank-files/look').catch(() => undefined)
  await killAt('BankDebitSubmitted', 1, DEBITS / 2)
  await bank.ops('/bank-files/look')
  await bank.ops('/drain', DRAIN)

  const back = entries.slice(0, DEBITS / 2)
  const returns = back.map(({ trace, amountCents }) => ({ code: 'R01', originalTrace: trace, amountCents }))
  await theirs.bring('returns.txt', reportFile(returns))
  void bank.ops('/bank-files/look').catch(() => undefined)
  await killAt('BankDebitReturned', 1, back.length / 2)
  await bank.ops('/bank-files/look')
  await bank.ops('/drain', DRAIN)

  const statuses = (await bank.transactions()).map(({ status }) => status)
  expect(statuses.filter((status) => status === 'returned')).toHaveLength(back.length)
  expect(statuses.filter((status) => status === 'submitted')).toHaveLength(DEBITS - back.length)
  expect(await countOf('BankDebitReturned')).toBe(back.length)
  expect(await operate(service, 'GET', '/bank-reports?limit=1')).toMatchObject([
    { items: back.length, applied: back.length, repeated: 0, parked: 0 },
  ])
  const failures = await Promise.all(
    back.map(({ trace }) => told.find((one) => one.trace_number === trace)!.leg_id),
  )
  expect(await bank.toldOfLeg('payment.failed', failures[0]!)).toHaveLength(1)
  expect((await operate(service, 'GET', '/work')).failed).toEqual([])
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
})
