import { expect, test } from 'vitest'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { bankFiles } from '../../../../application/banking/files/bank-files-process-manager.ts'
import { moneyAccounted } from '../../../../application/banking/reconciliation/money-accounted-process-manager.ts'
import type { RecordedEvent } from '../../../../application/commands/event-registry.ts'
import type { ProcessManager } from '../../../../application/followers/process-manager.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  type BankDebitEvent,
  BankDebitFailed,
  BankDebitGated,
  BankDebitInFile,
  BankDebitReleased,
  BankDebitReported,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
} from '../../../../domain/banking/debits/bank-debit-events.ts'
import { type BankFileEvent, BankFileRecorded } from '../../../../domain/banking/files/bank-file-events.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { createdDebit } from '../../../support/created-debits.ts'

const ID = 'a'.repeat(24)
const MINUTE = 60_000

// reacting is pure: whatever the work needs is not touched
const nothing = {} as Parameters<typeof bankDebits>[0]

/** What an event makes the process managers want, and when. @param intervalMs of the batch worker. */
function wantedBy(
  event: BankDebitEvent | BankFileEvent,
  intervalMs = MINUTE,
  managers: readonly ProcessManager[] = [bankDebits(nothing, intervalMs), bankFiles(nothing)],
): readonly string[] {
  return intentsOf(event, managers).map((intent) => {
    const at = intent.intent === 'perform' && intent.dueAt !== undefined ? ` at ${isoTime(intent.dueAt)}` : ''
    return `${intent.intent} ${intent.kind}${at}`
  })
}
function intentsOf(
  event: Pick<RecordedEvent, 'type'> & Partial<RecordedEvent>,
  managers: readonly ProcessManager[] = [bankDebits(nothing, MINUTE)],
) {
  return managers
    .flatMap(({ on }) => on.filter(({ type }) => type.name === event.type))
    .flatMap(({ react }) => react(event as unknown as RecordedEvent, undefined as never))
}
const createdAt = (at: string) => BankDebitCreated.of(createdDebit(ID, at))
const scheduled = BankDebitScheduled.of({
  leg_id: ID,
  batch_closes_at: '2026-11-24T22:00:00.000Z',
  effective_date: '2026-11-25',
  at: '2026-11-24T17:01:00.000Z',
})

test('a debit that waits arms the next run of the batch worker, and nothing else does', () => {
  const run = 'perform run-batch at'
  expect(wantedBy(createdAt('2026-11-24T17:00:00.000Z'))).toEqual([`${run} 2026-11-24T17:01:00.000Z`])
  expect(wantedBy(createdAt('2026-11-24T17:00:59.999Z'))).toEqual([`${run} 2026-11-24T17:01:00.000Z`])
})

test('money is compared in the night after a day on which any moved, in whichever way', () => {
  const at = '2026-11-24T17:00:00.000Z'
  const gate = { gate: 'billing', status: 'failed', reason: 'non_paygo_blocked' } as const
  const entry = { file_id: ID, trace_number: '021000020000001', entry_date: '2026-11-25' }
  const wanted = [
    createdAt(at),
    BankDebitGated.of({ leg_id: ID, ...gate, at }),
    BankDebitFailed.of({ leg_id: ID, note: 'rejected', at }),
    BankDebitCancelled.of({ leg_id: ID, at }),
    BankDebitInFile.of({ leg_id: ID, ...entry, at }),
  ].map((event) => wantedBy(event, MINUTE, [moneyAccounted(nothing)]))
  expect(wanted).toEqual(wanted.map(() => ['perform reconcile at 2026-11-25T08:00:00.000Z']))
  expect(wantedBy(scheduled, MINUTE, [moneyAccounted(nothing)])).toEqual([])
})

test('a debit that was released waits for the next run', () => {
  const released = BankDebitReleased.of({ leg_id: ID, note: null, at: '2026-11-24T17:00:30.000Z' })
  expect(wantedBy(released)).toEqual(['perform run-batch at 2026-11-24T17:01:00.000Z'])
})

test('each report and each return of a debit has work of its own', () => {
  const at = '2026-11-24T17:00:00.000Z'
  const reported = BankDebitReported.of({
    leg_id: ID,
    processor_status: 'settled',
    transmission_date: null,
    effective_date: null,
    settled_on: '2026-11-24',
    at,
  })
  const returned = BankDebitReturned.of({ leg_id: ID, return_code: 'R02', at })
  for (const [event, kind] of [
    [reported, 'settle'],
    [returned, 'disable-account'],
  ] as const) {
    const keys = [3, 4].flatMap((revision) =>
      intentsOf({ ...event, stream: `bankDebit-${ID}`, revision })
        .filter((intent) => intent.kind === kind)
        .map(({ key }) => key),
    )
    expect([kind, new Set(keys).size]).toEqual([kind, 2])
  }
})

test('a batch is handed over once all that was put into it before its close is recorded', () => {
  expect(wantedBy(scheduled)).toEqual(['perform submit-batch at 2026-11-24T22:01:00.000Z'])
})

test('that run comes before the batch closes that was open when the debit was created', () => {
  const hour = 60 * MINUTE
  expect(wantedBy(createdAt('2026-11-24T21:30:00.000Z'), hour)).toEqual([
    'perform run-batch at 2026-11-24T21:59:50.000Z',
  ])
  // a close is a tick as well
  expect(wantedBy(createdAt('2026-11-24T21:59:30.000Z'))).toEqual([
    'perform run-batch at 2026-11-24T21:59:50.000Z',
  ])
  expect(wantedBy(createdAt('2026-11-24T21:59:59.998Z'))).toEqual([
    'perform run-batch at 2026-11-24T21:59:59.998Z',
  ])
  expect(wantedBy(createdAt('2026-11-24T22:00:00.000Z'), hour)).toEqual([
    'perform run-batch at 2026-11-24T23:00:00.000Z',
  ])
  // once a day, and the 26th is a holiday
  expect(wantedBy(createdAt('2026-11-25T23:00:00.000Z'), 24 * hour)).toEqual([
    'perform run-batch at 2026-11-26T00:00:00.000Z',
  ])
})

test('a debit that the bank has looks for its money at once, and is processed when no return can be expected any more', () => {
  const submitted = BankDebitSubmitted.of({ leg_id: ID, effective_date: '2026-11-25', at: isoTime(0) })
  expect(wantedBy(submitted)).toEqual(['perform process at 2026-11-30T05:00:00.000Z', 'perform find-credit'])
})

test('debits hear of their file as soon as it is recorded, and it is looked for on the day it takes effect', () => {
  const batch = {
    batch_number: 1,
    description: 'PREMIUM',
    entry_date: '2026-11-25',
    service_class: 225,
    entries: 1,
    debit_cents: 500,
    credit_cents: 0,
  } as const
  const numbers = { first_trace: '021000020000001', last_trace: '021000020000001', bytes: 94 }
  const recorded = BankFileRecorded.of({
    file_id: ID,
    name: 'a.ach',
    sha256: '0'.repeat(64),
    entries_id: ID,
    batches: [batch],
    ...numbers,
    debit_cents: 500,
    credit_cents: 0,
    at: isoTime(0),
  })
  expect(wantedBy(recorded)).toEqual([
    'perform tell-debits',
    'perform find-overdue at 2026-11-25T22:00:00.000Z',
  ])
})
