// @module-tag long: pipeline-kill has the same work, integration/followers/process-manager-runner its timers
// @module-tag each-log
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nextClose } from '../../domain/banking/debits/banking-days.ts'
import { type ArrangedSession, bankDebitsOf, type SettlingCarrier } from '../support/bank-debits.ts'
import { allEvents } from '../support/core.ts'
import { enableCheckout } from '../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Services that are killed while installments fall due, batches run and credits come in. */

/** More than are worked on at once. */
const PLANS = 240
const BUYERS = 8
const PLAN = { amount_cents: 30_000, total_installments: 2, down_payment_cents: 10_000 }
/** Debits whose money comes in. */
const CREDITED = 40
const TIMEOUT_MS = 600_000
const DRAIN = { timeout_seconds: 120 }

type Json = ReturnType<typeof JSON.parse>
const dataDir = temporaryDirectory()
let service: RunningService
let tenant: SeededTenant
let bank: ReturnType<typeof bankDebitsOf>
let of: SettlingCarrier
const sessions: ArrangedSession[] = []

beforeAll(async () => {
  service = await startService({ dataDir })
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
  bank = bankDebitsOf(service, tenant)
  of = await bank.carrierOf('fbo')
  const buy = async (first: number) => {
    for (let n = first; n < PLANS; n += BUYERS) {
      sessions.push(await bank.arranged(of, n % 2 === 0 ? PLAN : { ...PLAN, down_payment_cents: 0 }))
    }
  }
  await Promise.all(Array.from({ length: BUYERS }, (_, first) => buy(first)))
}, TIMEOUT_MS)
afterAll(() => service?.stop())

async function restart(): Promise<void> {
  service = await startService({ dataDir })
  bank = bankDebitsOf(service, tenant)
}

const eventsOf = async (type: string): Promise<readonly Json[]> =>
  (await allEvents(service, type)).map(({ data }) => data)
const countOf = async (type: string) => (await allEvents(service, type)).length

/**
 * Moves the clock, and kills the service each time when a further part of what follows is stored.
 * @param type of the events that follow, one for each piece.
 * @returns how many kills came before everything was stored.
 */
async function moveAndKill(to: number, type: string, pieces: number): Promise<number> {
  const before = await countOf(type)
  // the answer dies with the service
  void bank.advanceTo(to).catch(() => undefined)
  let inTime = 0
  for (const part of [0.01, 0.5]) {
    let stored = 0
    while (stored < pieces * part) stored = (await countOf(type)) - before
    await service.kill()
    await restart()
    if (stored < pieces) inTime += 1
  }
  await bank.ops('/drain', DRAIN)
  // a move that died before it was stored is asked for again
  await bank.advanceTo(Math.max(to, await bank.now()))
  await bank.ops('/drain', DRAIN)
  expect((await countOf(type)) - before).toBe(pieces)
  return inTime
}

/** When the installments of all plans are due: they were created on one day. */
async function dueTimes(): Promise<readonly number[]> {
  const url = `${service.paymentsUrl}/public/payment-sessions/${sessions[0]!.token}/plan`
  return (await send(url)).body.data.installments.map(({ due_at }: Json) => Date.parse(due_at))
}

test('each installment is created once, and each debit is in one batch', {
  timeout: TIMEOUT_MS,
}, async () => {
  let kills = 0
  const due = await dueTimes()
  for (const [index, at] of due.entries()) {
    kills += await moveAndKill(at, 'BankDebitCreated', PLANS)
    const debits = (await eventsOf('BankDebitCreated')).filter(
      ({ installment_number }) => installment_number === index + 1,
    )
    expect(new Set(debits.map(({ payment_session_id }) => payment_session_id)).size).toBe(PLANS)
    expect(debits).toHaveLength(PLANS)
    for (const { created_at } of debits) expect(Date.parse(created_at)).toBeGreaterThanOrEqual(at)
    kills += await moveAndKill(at + 60_000, 'BankDebitScheduled', PLANS)
    await bank.advanceTo(nextClose(at + 60_000))
  }
  expect(kills, 'every kill came too late').toBeGreaterThan(0)
  const debits = await eventsOf('BankDebitCreated')
  const scheduled = await eventsOf('BankDebitScheduled')
  const debitIds = debits.map(({ leg_id }) => leg_id).sort()
  expect(new Set(debitIds).size).toBe(debitIds.length)
  expect(scheduled.map(({ leg_id }) => leg_id).sort()).toEqual(debitIds)
  const paidOf = (session: ArrangedSession) =>
    debits
      .filter(({ payment_session_id }) => payment_session_id === session.id)
      .reduce((sum, { amount_cents }) => sum + amount_cents, 0)
  expect(sessions.map(paidOf)).toEqual(sessions.map(() => PLAN.amount_cents))
  const told = (await eventsOf('WebhookEventRaised')).filter(
    ({ event_type }) => event_type === 'payment.debit_minted',
  )
  const installments = debits.filter(({ installment_number }) => installment_number !== null)
  expect(told.map(({ payload }) => payload.leg_id).sort()).toEqual(
    installments.map(({ leg_id }) => leg_id).sort(),
  )
})

test("each credit is one debit's money, and each debit has one", { timeout: TIMEOUT_MS }, async () => {
  const amount_cents = PLAN.down_payment_cents
  const debits = (await eventsOf('BankDebitCreated')).filter(
    (debit) => debit.installment_number === 2 && debit.amount_cents === amount_cents,
  )
  const debitIds: string[] = debits.slice(0, CREDITED).map(({ leg_id }) => leg_id)
  let bank_date = ''
  for (const debitId of debitIds) bank_date = (await bank.report(debitId, 'acknowledge')).effective_date
  const credits = Array.from({ length: debitIds.length + 5 }, (_, n) => ({
    carrier_id: of.carrierId,
    bank_transaction_id: `bt_${n}`,
    bank_date,
    amount_cents,
  }))
  let kills = 0
  for (const part of [0.2, 0.6]) {
    // what is not answered is sent again, as whoever reads the account does
    const sent = credits.map((credit) => bank.tryOps('/bank-credits', credit).catch(() => null))
    let received = 0
    while (received < credits.length * part) received = await countOf('BankCreditReceived')
    await service.kill()
    await restart()
    if ((await Promise.all(sent)).includes(null)) kills += 1
  }
  expect(kills, 'every kill came too late').toBeGreaterThan(0)
  await bank.ops('/drain', DRAIN)
  const answers = await Promise.all(credits.map((credit) => bank.tryOps('/bank-credits', credit)))
  const matched = answers.map(({ body }) => body.data.leg_id).filter((debitId) => debitId !== null)
  expect(matched.sort()).toEqual([...debitIds].sort())
  const matches = await eventsOf('BankDebitMatched')
  expect(matches.map(({ leg_id }) => leg_id).sort()).toEqual([...debitIds].sort())
  expect(new Set(matches.map(({ bank_transaction_id }) => bank_transaction_id)).size).toBe(debitIds.length)
  const { failed } = await operate(service, 'GET', '/work')
  expect(failed).toEqual([])
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
})
