// @module-tag long: end-to-end tests of debits, their gates and files have each step of it
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type NachaBank, openNachaBank } from '../support/nacha-bank.ts'
import { answersFile, reportFile } from '../support/nacha-files.ts'
import { askOperator, operate } from '../support/seed.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { atNewYork, bankingDayAfter, dayAfter, isBankingDay, newYorkDay } from './bank-calendar.ts'
import { BankWord } from './bank-word.ts'
import { type BookCarrier, type Debit, DebitBook } from './debit-book.ts'
import { DebitOrders, type Order } from './debit-orders.ts'
import { type DebitParties, seedParties } from './debit-parties.ts'
import { MortalService } from './mortal-service.ts'
import { ACCOUNT_CHECK, isDebit, type ReadFile, ReadingBank } from './reading-bank.ts'
import { expectBalances, expectSettled, expectStatuses } from './settled-accounts.ts'

/**
 * A quarter of 65 banking days, with five holidays and the end of daylight saving time. Partners debit and call off, a bank
 * takes, refuses, returns and corrects, operators release, reject and present again, and the whole tree is killed on the
 * way. A book of the test's own says what must come of it; a bank of its own reads the files.
 */
const FIRST = '2050-10-03'
const LAST = '2051-01-06'
/** On the evenings of these days a file disappears that the bank does not have, or has. */
const LOST = '2050-10-19'
const UNMARKED = '2050-12-14'
/** CHAOS_SEED plays another quarter. */
const SEED = Number(process.env.CHAOS_SEED ?? 65)
/** How often the tree is killed, and at which steps, after at the most so many events of them. */
const KILLS = 12
const STEPS = { close: 24, night: 16, reports: 8, orders: 14 } as const
type Step = keyof typeof STEPS
const AT_ONCE = 6
const TIMEOUT_MS = 1_200_000

type Json = ReturnType<typeof JSON.parse>
const random = seededRandom(SEED)
const { between, pick } = random
const chance = (percent: number) => between(1, 100) <= percent

const dataDir = temporaryDirectory()
const elsewhere = temporaryDirectory()
let theirs: NachaBank
let mortal: MortalService
let bank: ReadingBank
let orders: DebitOrders
let parties: DebitParties
let now: number
const book = new DebitBook()
const word = new BankWord(random.branch())
const kills = new Map<string, { readonly step: Step; readonly events: number }>()
const days: string[] = []

const ops = (method: string, path: string, body?: unknown): Promise<Json> =>
  operate(mortal.service, method, path, body)
const drain = () => ops('POST', '/drain')

beforeAll(async () => {
  theirs = await openNachaBank()
  bank = new ReadingBank(theirs.outbox)
  const kept = /^BankDebit|^BankFileRecorded$|^ReconciliationMade$/
  mortal = await MortalService.start({ dataDir, env: theirs.env }, (type) => kept.test(type))
  orders = new DebitOrders(mortal, book, random.branch())
  await ops('POST', '/clock/advance', {
    to: new Date(atNewYork(dayAfter(FIRST, -1), '12:00')).toISOString(),
  })
  parties = await seedParties(mortal.service, orders, random)
  for (let day = FIRST; day <= LAST; day = dayAfter(day)) days.push(day)
  const killing = random.branch()
  while (kills.size < KILLS) {
    const step = killing.pick(['close', 'close', 'close', 'night', 'reports', 'orders'] as const)
    const events = killing.between(1, STEPS[step])
    kills.set(killing.pick(days.filter(isBankingDay)), { step, events })
  }
}, TIMEOUT_MS)
afterAll(async () => {
  await mortal?.stop()
  await theirs?.close()
})

/** Does what may be repeated, as a step of a day: the tree may be killed on the way. */
function mortally<Result>(day: string, step: Step, run: () => Promise<Result>): Promise<Result> {
  const kill = kills.get(day)
  if (kill?.step !== step) return run()
  kills.delete(day)
  return mortal.killDuring(kill.events, run)
}

async function moveTo(day: string, time: string, step: Step): Promise<void> {
  now = atNewYork(day, time)
  await mortally(day, step, async () => {
    // a move that died may have gone part of the way
    const at = Date.parse((await ops('GET', '/clock')).now)
    await ops('POST', '/clock/advance', { to: new Date(Math.max(at, now)).toISOString() })
    await drain()
  })
}

/** The bank fetches the files of a day's batch, in which stands what the book has in it, and nothing else. */
async function fetchFiles(day: string): Promise<void> {
  const debits = book.close(day)
  const accounts = orders.employers.flatMap((employer) => employer.accounts)
  const checked = accounts.filter(({ credits }) => credits?.batch === day)
  if (debits.length + checked.length === 0) return expect(await bank.waiting()).toEqual([])
  const files = day === LOST || day === UNMARKED ? await fetchOddly(day) : await bank.fetch()
  await ops('POST', '/bank-files/look', {})
  for (const file of files) expect([file.day, file.time]).toEqual([day, '1701'])
  const entries = files.flatMap((file) => file.entries)
  const taken = new Map(entries.filter(isDebit).map((entry) => [entry.identification, entry]))
  const read = [...taken.values()].map(({ file: _file, batch: _batch, trace: _trace, ...entry }) => entry)
  expect(read.sort(byIdentification)).toEqual(debits.map(entryOf).sort(byIdentification))
  for (const debit of debits) book.sent(debit, taken.get(debit.id.slice(0, 15))!)

  const credits = entries.filter((entry) => !isDebit(entry))
  expect(credits).toHaveLength(2 * checked.length)
  for (const account of checked) {
    const own = credits.filter((entry) => entry.account === account.number)
    expect(own.map(({ description }) => description)).toEqual([ACCOUNT_CHECK, ACCOUNT_CHECK])
    account.credits = { batch: day, cents: own.map(({ cents }) => cents) }
  }
  for (const file of files) {
    const inFile = debits.filter(({ presentments }) => presentments.at(-1)!.file === file.name)
    word.consider(file, inFile, day)
  }
}

interface Identified {
  readonly identification: string
}
const byIdentification = (one: Identified, other: Identified) =>
  one.identification < other.identification ? -1 : 1
/** An entry as a file must have it. */
function entryOf({ id, cents, account, employer, slot, representments }: Debit) {
  return {
    identification: id.slice(0, 15),
    cents,
    routing: account.routing,
    account: account.number,
    name: employer.name,
    code: account.type === 'checking' ? '27' : '37',
    entryDate: slot!.entryDate,
    description: representments > 0 ? 'RETRY PYMT' : 'PREMIUM',
  }
}

/** Files that go without being marked as fetched: one that the bank does not have, or all of them, which it has. */
async function fetchOddly(day: string): Promise<readonly ReadFile[]> {
  const [name = ''] = await bank.waiting()
  if (day === LOST) await bank.lose(name, elsewhere)
  const files = day === LOST ? [] : await bank.fetch(elsewhere)
  const names = day === LOST ? [name] : files.map((file) => file.name)
  expect(await ops('POST', '/bank-files/look', {})).toMatchObject({ uncertain: names.length })
  expect(await takeNoteOf('bank_file_uncertain')).toBe(names.length)
  const verb = day === LOST ? 'expose-again' : 'treat-as-sent'
  for (const one of names) {
    await ops('POST', `/bank-files/${fileIdOf(one)}/${verb}`, { note: 'Says the bank' })
  }
  await drain()
  if (day === UNMARKED) return files
  const again = await readFile(join(theirs.outbox, name))
  expect(again).toEqual(await readFile(join(elsewhere, name)))
  return bank.fetch()
}
const fileIdOf = (name: string) => /([0-9a-f]{24})\.ach$/.exec(name)![1]!

/** @returns how many alerts of a kind were open. */
async function takeNoteOf(kind: string): Promise<number> {
  const open: readonly Json[] = await ops('GET', `/alerts?kind=${kind}&status=open`)
  for (const { alert_id } of open) await ops('POST', `/alerts/${alert_id}/acknowledge`, {})
  return open.length
}

/** Has a file of the bank read. @param expected how many items came to what. */
async function bring(day: string, name: string, text: string, expected: Json): Promise<void> {
  const isKilled = kills.get(day)?.step === 'reports'
  await theirs.bring(name, text)
  await mortally(day, 'reports', async () => {
    await ops('POST', '/bank-files/look', {})
    await drain()
  })
  const [row] = await ops('GET', '/bank-reports?limit=1')
  // a change that counted before the tree died is a repetition
  const made = isKilled ? { ...row, applied: row.applied + row.repeated, repeated: 0 } : row
  const { applied, repeated } = expected
  const all = isKilled ? { applied: applied + repeated, repeated: 0 } : {}
  expect(made).toMatchObject({ name, status: 'read', ...expected, ...all })
  const { parked } = await ops('GET', `/bank-reports/${row.report_id}`)
  expect(await takeNoteOf('bank_report_items_parked')).toBe(Math.min(parked.length, 1))
  for (const { line } of parked) {
    await ops('POST', `/bank-reports/${row.report_id}/items/${line}/resolve`, { note: 'Seen to' })
  }
}

/** The bank answers by files, or by word of mouth. */
async function hearAnswers(day: string): Promise<void> {
  const lines: object[] = []
  for (const { file, rejected, isTyped } of word.answersOn(day)) {
    const batches = [...new Set(file.entries.map(({ batch }) => batch))].map((number) => ({
      number,
      isRejected: rejected.includes(number),
    }))
    for (const { number, isRejected } of batches) {
      const reason = isRejected ? { reason: 'Not agreed on' } : {}
      const outcome = isRejected ? 'rejected' : 'accepted'
      const verb = isRejected ? 'reject' : 'acknowledge'
      const path = `/bank-files/${fileIdOf(file.name)}/${verb}`
      if (isTyped) await ops('POST', path, { batch_number: number, ...reason })
      else lines.push({ file: file.name, sha256: file.sha256, batch: number, outcome, ...reason })
      const entries = file.entries.filter((entry) => isDebit(entry) && entry.batch === number)
      for (const { trace } of entries) book.answered(trace, outcome, day)
    }
  }
  await drain()
  const all = { items: lines.length, applied: lines.length, repeated: 0, parked: 0 }
  if (lines.length > 0) await bring(day, `${day}-answers.jsonl`, answersFile(lines), all)
}

/** The bank returns and corrects. */
async function hearReturns(day: string): Promise<void> {
  const items = word.itemsOn(day)
  if (items.length === 0) return
  const isChange = ({ report }: (typeof items)[number]) => report.code.startsWith('C')
  const inOrder = [...items.filter(isChange), ...items.filter((item) => !isChange(item))]
  const outcomes = inOrder.map((item) => {
    const { trace, cents, report, change } = item
    if (!isChange(item)) return book.returned(trace, cents, report.code, day)
    if (change) Object.assign(change.account, change.correction)
    return change ? 'applied' : 'parked'
  })
  const count = (outcome: string) => outcomes.filter((one) => one === outcome).length
  const counts = { applied: count('applied'), repeated: count('repeated'), parked: count('parked') }
  // the same items on another day are another file
  const text = reportFile(items.map(({ report }) => report)).replace(
    '261124',
    day.slice(2).replaceAll('-', ''),
  )
  await bring(day, `${day}-returns.txt`, text, { items: items.length, ...counts })
}

/** Operators see to quarantine, present again, and are told what came into collecting accounts. */
async function operateOn(day: string): Promise<void> {
  const quarantined = book.debits.filter(({ standing }) => standing === 'quarantined')
  const listed: readonly Json[] = await ops('GET', '/debits?status=quarantined&limit=200')
  expect(listed.map((one) => one.transaction_id).sort()).toEqual(quarantined.map(({ id }) => id).sort())
  for (const debit of quarantined) {
    const verdict = pick(['release', 'reject', null] as const)
    if (verdict === null) continue
    await ops('POST', `/debits/${debit.id}/${verdict}`, { note: 'Asked the partner' })
    if (verdict === 'reject') debit.standing = 'failed'
    else Object.assign(debit, { standing: 'pending', isReleased: true })
  }
  const { service } = mortal
  for (const debit of book.debits.filter(({ standing }) => standing === 'returned')) {
    const may = book.mayBeRepresented(debit)
    if (!chance(may ? 40 : 3)) continue
    const { status } = await askOperator(service, 'POST', `/debits/${debit.id}/represent`, {})
    expect(status).toBe(may ? 200 : 409)
    if (may) book.represent(debit, now)
  }
  for (const debit of book.debits) {
    const { standing, isReceived, policy, slot, cents: amount_cents, id: reference } = debit
    if (standing !== 'submitted' || isReceived || policy.carrier.settlement !== 'fbo') continue
    if (day < bankingDayAfter(slot!.entryDate, 3) || !chance(60)) continue
    const told = await credit(policy.carrier, { amount_cents, reference, bank_date: day })
    expect(told).toMatchObject({ matched: true, leg_id: reference, confidence: 'high' })
    debit.isReceived = true
  }
  if (!chance(10)) return
  const [carrier, amount_cents] = [parties.carriers[0]!, between(1, 9)]
  expect(await credit(carrier, { amount_cents, bank_date: day })).toMatchObject({ matched: false })
  book.unmatched.set(carrier, (book.unmatched.get(carrier) ?? 0) + amount_cents)
}
let credits = 0
function credit({ id: carrier_id }: BookCarrier, shown: Json): Promise<Json> {
  credits += 1
  return ops('POST', '/bank-credits', { carrier_id, bank_transaction_id: `BT-${credits}`, ...shown })
}

/** @param most debits by calls at the most. */
async function askForDebits(day: string, most: number): Promise<void> {
  await orders.callOff(now)
  await orders.seeToAccounts(now)
  await orders.seeToPolicies()
  const asked = orders.ofDay(now, most)
  const answers = await mortally(day, 'orders', () => sendAll(asked))
  await drain()
  await mortal.read()
  for (const [index, order] of asked.entries()) order.book(answers[index])
  const again = pick(asked)
  expect(await again.send()).toMatchObject(answers[asked.indexOf(again)])
  // else a run comes by itself when the clock moves
  if (chance(50)) await ops('POST', '/debit-batches', {})
  book.run(now)
}

async function sendAll(asked: readonly Order[]): Promise<readonly Json[]> {
  const answers: Json[] = []
  const sender = async (first: number) => {
    for (let n = first; n < asked.length; n += AT_ONCE) answers[n] = await asked[n]!.send()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, first) => sender(first)))
  return answers
}

async function workOn(day: string): Promise<void> {
  expect(await bank.waiting()).toEqual([])
  await hearAnswers(day)
  await hearReturns(day)
  // where nothing came, the tree dies at rest
  await mortally(day, 'reports', drain)
  await mortal.read()
  expectStatuses({ mortal, book, today: day })
  await expectBalances({ mortal, book, ...parties })
  await operateOn(day)
  await askForDebits(day, 9)
}

async function settled(): Promise<void> {
  await ops('POST', '/debit-batches', {})
  await drain()
  await mortal.read()
  await expectSettled({ mortal, bank, book, ...parties, today: newYorkDay(now), owed: word.owedAt(now) })
}

test('debits of three months come out even to the cent, whenever the tree is killed', {
  timeout: TIMEOUT_MS,
}, async () => {
  /** The banking day whose files nobody has fetched. */
  let unfetched: string | null = null
  for (const day of days) {
    const isOpen = isBankingDay(day)
    if (!isOpen && !chance(30)) continue
    await moveTo(day, isOpen ? '10:00' : '17:05', 'night')
    if (unfetched !== null) await fetchFiles(unfetched)
    unfetched = null
    if (isOpen) await workOn(day)
    else await askForDebits(day, 2)
    // some closes are passed on the way to another day
    if (isOpen && chance(15) && kills.get(day)?.step !== 'close' && day < LAST) unfetched = day
    else if (isOpen) await moveTo(day, '17:02', 'close')
    if (isOpen && unfetched === null) await fetchFiles(day)
    if (isOpen && unfetched === null && chance(15)) {
      await moveTo(day, '18:30', 'night')
      await askForDebits(day, 3)
    }
    expect(isOpen || (await bank.waiting()).length === 0, `a file on ${day}`).toBe(true)
    if (day.endsWith('-30') || day.endsWith('-31')) await settled()
  }
  await settled()
  expect(kills.size).toBe(0)
  expect(mortal.kills.during, 'most kills came too late').toBeGreaterThan(KILLS / 3)
  expectVariety()
})

/** All that can become of a debit has happened. */
function expectVariety(): void {
  const types = new Set(mortal.events.map(({ type }) => type))
  const happened = [
    ...[
      'Created',
      'Gated',
      'Released',
      'Rejected',
      'Cancelled',
      'Failed',
      'Scheduled',
      'InFile',
      'Submitted',
    ],
    ...['Processed', 'Matched', 'Returned', 'Represented'],
  ]
  expect(happened.filter((name) => !types.has(`BankDebit${name}`))).toEqual([])
  const fates = new Set(book.debits.flatMap(({ presentments }) => presentments.map(({ fate }) => fate)))
  expect(['R01', 'R08', 'R09', 'R10', 'rejected'].filter((fate) => !fates.has(fate))).toEqual([])
  expect(book.debits.some(({ standing }) => standing === 'legacy_collected')).toBe(true)
  expect(book.lateAnswers).toBeGreaterThan(0)
}
