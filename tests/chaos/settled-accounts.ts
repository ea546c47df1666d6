import { expect } from 'vitest'
import { partner } from '../support/payments.ts'
import { operate, type SeededTenant } from '../support/seed.ts'
import { dayAfter, isBankingDay } from './bank-calendar.ts'
import type { BookCarrier, DebitBook } from './debit-book.ts'
import type { MortalService } from './mortal-service.ts'
import { isDebit, type ReadEntry, type ReadingBank, sumOf } from './reading-bank.ts'

type Json = ReturnType<typeof JSON.parse>

interface Accounts {
  /** At rest, and read to the end of its log. */
  readonly mortal: MortalService
  readonly bank: ReadingBank
  readonly book: DebitBook
  readonly carriers: readonly BookCarrier[]
  readonly tenants: readonly SeededTenant[]
  /** In New York. */
  readonly today: string
  /** Names of files to which the bank owes an answer. */
  readonly owed: readonly string[]
}

/** Days that count for return rates. */
const RATE_DAYS = 60
/** What calls for a person by the end of a day, and is no fault of the service. */
const EXPECTED_ALERTS = [
  ...['debit_quarantined', 'return_rate_exceeded', 'bank_file_rejected', 'bank_file_overdue'],
]

/** Holds what events, files and read models say of the money against one another and against the book, to the cent. */
export async function expectSettled(accounts: Accounts): Promise<void> {
  const { mortal } = accounts
  const ops = (method: string, path: string, body?: unknown): Promise<Json> =>
    operate(mortal.service, method, path, body)
  expectOnePresentment(accounts)
  expectFilesInEvents(accounts)
  expectStatuses(accounts)
  await expectLedger(accounts)
  await expectBalances(accounts)
  await expectReturnRates(accounts)

  const { difference_count, differences } = await ops('POST', '/reconciliations', {})
  expect([difference_count, differences]).toEqual([0, []])
  const nights = eventsOf(mortal, 'ReconciliationMade')
  expect(nights.flatMap(({ data }) => data.differences)).toEqual([])
  const projections: readonly Json[] = await ops('GET', '/projections')
  expect(
    projections.filter(({ state, parked_streams }) => state !== 'active' || parked_streams !== 0),
  ).toEqual([])
  expect((await ops('GET', '/work')).failed).toEqual([])
  const alerts: readonly Json[] = await ops('GET', '/alerts?status=open&limit=200')
  const overdue = alerts.filter(({ kind }) => kind === 'bank_file_overdue').map(({ about }) => about.file_id)
  expect(overdue.sort()).toEqual(accounts.owed.map((name) => name.slice(-28, -4)).sort())
  expect(alerts.filter(({ kind }) => !EXPECTED_ALERTS.includes(kind))).toEqual([])
  expect(await ops('POST', '/audit/verify')).toMatchObject({ verified: true })
}

export async function expectBalances(
  accounts: Pick<Accounts, 'mortal' | 'book' | 'carriers'>,
): Promise<void> {
  const { mortal } = accounts
  const ops = (method: string, path: string, body?: unknown): Promise<Json> =>
    operate(mortal.service, method, path, body)
  for (const carrier of accounts.carriers) {
    // one row for each environment, of which a carrier of the test has debits in one
    const rows: readonly Json[] = await ops('GET', `/carriers/${carrier.id}/balances`)
    const expected = accounts.book.balancesOf(carrier)
    const found = Object.keys(expected).map((name) => [
      name,
      rows.reduce((sum, row) => sum + row[`${name}_cents`], 0),
    ])
    expect(Object.fromEntries(found)).toEqual(expected)
  }
}

const eventsOf = ({ events }: MortalService, type: string) => events.filter((event) => event.type === type)

/** A debit stands in another file only after the entry before came back, and goes on banking days. */
function expectOnePresentment({ bank, book }: Accounts): void {
  for (const { id, presentments } of book.debits) {
    for (const { fate } of presentments.slice(0, -1))
      expect([id, fate]).toEqual([id, expect.stringMatching(/^R0[19]$/)])
  }
  const presented = book.debits.flatMap(({ presentments }) => presentments.map(({ trace }) => trace))
  const read = [...bank.entries.values()].filter(isDebit)
  expect(presented.sort()).toEqual(read.map(({ trace }) => trace).sort())
  for (const { day, entries } of bank.files) {
    expect([day, isBankingDay(day)]).toEqual([day, true])
    for (const { entryDate } of entries) {
      expect([entryDate, isBankingDay(entryDate), entryDate > day]).toEqual([entryDate, true, true])
    }
  }
}

/** Each cent of each file is in the events, and the other way round. */
function expectFilesInEvents({ mortal, bank }: Accounts): void {
  const recorded = eventsOf(mortal, 'BankFileRecorded').map(({ data }) => [
    ...[data.name, data.sha256, data.debit_cents, data.credit_cents],
  ])
  const read = bank.files.map(({ name, sha256, debitCents, creditCents }) => [
    name,
    sha256,
    debitCents,
    creditCents,
  ])
  expect(recorded.sort()).toEqual(read.sort())
  const cents = new Map(
    eventsOf(mortal, 'BankDebitCreated').map(({ data }) => [data.leg_id, data.amount_cents]),
  )
  const inFiles = eventsOf(mortal, 'BankDebitInFile').map(({ data }) => {
    const entry = bank.entries.get(String(data.trace_number))!
    expect(entry.file).toContain(data.file_id)
    expect(entry.entryDate).toBe(data.entry_date)
    expect(String(data.leg_id).slice(0, 15)).toBe(entry.identification)
    return [data.trace_number, cents.get(data.leg_id)]
  })
  const entries = [...bank.entries.values()].filter(isDebit)
  expect(inFiles.sort()).toEqual(entries.map((entry) => [entry.trace, entry.cents]).sort())
  for (const { name, debitCents } of bank.files) {
    const told = entries.filter(({ file }) => file === name)
    expect(sumOf(told)).toBe(debitCents)
  }
}

/** What an event makes of the status of a debit. */
const STATUS_AFTER: Readonly<Record<string, (data: Readonly<Record<string, unknown>>) => string>> = {
  BankDebitCreated: () => 'pending',
  BankDebitGated: ({ status }) => String(status),
  BankDebitReleased: () => 'pending',
  BankDebitRejected: () => 'failed',
  BankDebitCancelled: () => 'cancelled',
  BankDebitFailed: () => 'failed',
  BankDebitScheduled: () => 'Scheduled',
  BankDebitSubmitted: () => 'submitted',
  BankDebitProcessed: () => 'processed',
  BankDebitReturned: () => 'returned',
  BankDebitRepresented: () => 'Scheduled',
}

/** Holds what events say of each debit against the book. */
export function expectStatuses({ mortal, book, today }: Pick<Accounts, 'mortal' | 'book' | 'today'>): void {
  const statuses = new Map<unknown, string>()
  for (const { type, data } of mortal.events) {
    const after = STATUS_AFTER[type]?.(data)
    if (after !== undefined) statuses.set(data.leg_id, after)
  }
  const expected = new Map(book.debits.map((debit) => [debit.id, book.statusOn(debit, today)]))
  expect(Object.fromEntries(statuses)).toEqual(Object.fromEntries(expected))
}

async function expectLedger({ mortal, bank, book, tenants, today }: Accounts): Promise<void> {
  const rows: Json[] = []
  for (const { clientHeaders } of tenants) {
    for (let page = 1, hasMore = true; hasMore; page += 1) {
      const path = `/ach/transactions?limit=200&page=${page}`
      const { body } = await partner(mortal.service, clientHeaders, 'GET', path)
      rows.push(...body.data)
      hasMore = body.pagination.has_more
    }
  }
  const debits = book.debits.map((debit) => [debit.id, debit.cents, book.statusOn(debit, today)])
  const records = book.legacy.map(({ id, cents, status }) => [id, cents, status])
  const shown = rows.map(({ transaction_id, amount_cents, status }) => [transaction_id, amount_cents, status])
  expect(shown.sort()).toEqual([...debits, ...records].sort())

  // what the bank was asked for, less what it would not take and what came back, is with it
  const byTrace = new Map(
    book.debits.flatMap(({ presentments }) => presentments.map(({ trace, fate }) => [trace, fate] as const)),
  )
  const isOut = ({ trace }: ReadEntry) => byTrace.get(trace) === 'none'
  const out = sumOf([...bank.entries.values()].filter((entry) => isDebit(entry) && isOut(entry)))
  const inFile = new Set(book.debits.filter((debit) => book.isInFile(debit)).map(({ id }) => id))
  const held = rows.filter(
    ({ transaction_id, status }) =>
      ['submitted', 'processed'].includes(status) || (status === 'Scheduled' && inFile.has(transaction_id)),
  )
  expect(held.reduce((sum, { amount_cents }) => sum + amount_cents, 0)).toBe(out)
}

async function expectReturnRates({ mortal, book, tenants, today }: Accounts): Promise<void> {
  const from = dayAfter(today, 1 - RATE_DAYS)
  const counted = (
    list: readonly { readonly tenant: SeededTenant; readonly day: string }[],
    of: SeededTenant,
  ) => list.filter(({ tenant, day }) => tenant === of && day >= from).length
  for (const tenant of tenants) {
    const shown = await operate(mortal.service, 'GET', `/return-rates?tenant_id=${tenant.tenantId}`)
    const { entries = 0, overall = { returned: 0 } } = shown[0] ?? {}
    expect([entries, overall.returned]).toEqual([counted(book.taken, tenant), counted(book.cameBack, tenant)])
  }
}
