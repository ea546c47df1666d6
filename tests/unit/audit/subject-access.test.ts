import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isKnown, ownOf, ownPart } from '../../../application/audit/subject-access/own-part.ts'
import { sentenceFor } from '../../../application/audit/subject-access/own-sentences.ts'
import {
  type Owner,
  subjectStreams,
  type Whose,
  whoseFrom,
} from '../../../application/audit/subject-access/subject-streams.ts'
import type { RecordedEvent } from '../../../application/commands/event-registry.ts'
import type { EventLog, StoredEvent } from '../../../application/ports/event-log.ts'
import {
  BankAccountChanged,
  BankAccountCreated,
  BankAccountDeleted,
} from '../../../domain/banking/accounts/bank-account.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import type { DomainEvent } from '../../../domain/kernel/event-type.ts'
import { type Sealed, sensitiveFields } from '../../../domain/kernel/sealed.ts'
import { EmployeeChangesRecorded, EmployeeSyncReceived } from '../../../domain/parties/employee-sync.ts'
import * as payroll from '../../../domain/payroll/payroll-file-events.ts'
import { IntakeCompleted, IntakeReceived, IntakeRefused } from '../../../domain/policies/intake.ts'
import { PolicyNotActivated } from '../../../domain/policies/policy.ts'

const types = aggregates.flatMap(({ events }) => events)
const id = (digit: string) => digit.repeat(24)
const sealedFor = (subject: string, text: string) => `sld1.${subject}.${text}` as Sealed
const person = (n: number) => `person/${n.toString(16).padStart(24, '0')}`

test('it is known of every event type with something of people what it says of one of them', () => {
  const ofPeople = types.filter(({ schema }) =>
    sensitiveFields(schema).some(({ sealed }) => sealed?.subject === 'person'),
  )
  expect(ofPeople.map(({ name }) => name).filter((name) => !isKnown(name))).toEqual([])
})

/** Rows of some people: whose each is. */
const people = fc.array(fc.nat(4), { minLength: 1, maxLength: 30 })
/** Texts that stand for one row alone: none is part of another, or of anything else. */
const wordOf = (row: number) => `w${row}w`
const centsOf = (row: number) => 90_000_000 + row

/** All events of a file whose rows are of some people, in chunks or at once. */
function fileOf(whose: readonly number[], chunkSize: number | null): readonly DomainEvent[] {
  const file_id = id('f')
  const rows = whose.map((one, row) => ({
    n: row + 1,
    person: sealedFor(person(one), `s${wordOf(row)}`),
    name: 'full' as const,
    class_code: wordOf(row),
    gross_wages: centsOf(row),
    malformed: [{ field: wordOf(row), code: 'negative' as const, value: wordOf(row) }],
  }))
  const failures = rows
    .filter((_, row) => row % 2 === 0)
    .map(({ n, person }) => ({
      row_number: n,
      person,
      reasons: [{ field: wordOf(n - 1), code: 'negative' as const }],
    }))
  const wages = rows.map(({ n, class_code }): [number, number, string, string] => [
    n,
    centsOf(n - 1),
    class_code,
    wordOf(n - 1),
  ])
  const premiums = rows.map(({ n }): [number, number] => [n, centsOf(n - 1)])
  const whole = { employer_id: id('e'), policy_id: id('d'), policy_number: 'WC-1', row_count: rows.length }
  const total = rows.reduce((sum, { gross_wages }) => sum + gross_wages, 0)
  const received = {
    ...whole,
    file_id,
    tenant_id: id('a'),
    environment: 'live' as const,
    source: { kind: 'report' as const, submission_id: null, sender_id: id('c') },
    file_name: 'Somebody.json',
    chunk_count: 1,
    period: null,
  }
  const ofAll = { green: rows.length, red: failures.length }
  if (chunkSize === null) {
    return [
      payroll.PayrollFileReceived.of({ ...received, rows }),
      payroll.PayrollFileProcessed.of({
        ...whole,
        file_id,
        period: null,
        policy_revision: 0,
        validation: { ...ofAll, failures },
        wages: { rows_processed: rows.length, auditable_cents: total, wages },
        premium: { rows_processed: rows.length, premium_cents: total, premiums },
        debit_account_id: null,
      }),
      payroll.PayrollFileFailed.of({ file_id, stage: 'premium_calculation', error: `${wordOf(0)} (row 1)` }),
    ]
  }
  const chunks = Array.from({ length: Math.ceil(rows.length / chunkSize) }, (_, chunk) => chunk)
  const of = (chunk: number) => ({ file_id, chunk, last: chunk === chunks.length - 1 })
  const isIn = (chunk: number) => (n: number) => Math.floor((n - 1) / chunkSize) === chunk
  return [
    payroll.PayrollFileReceived.of(received),
    ...chunks.map((chunk) =>
      payroll.PayrollRowsRecorded.of({ ...of(chunk), rows: rows.filter(({ n }) => isIn(chunk)(n)) }),
    ),
    payroll.PayrollFileNormalized.of({ file_id, row_count: rows.length, policy_revision: 0 }),
    ...chunks.map((chunk) =>
      payroll.PayrollRowsValidated.of({
        ...of(chunk),
        ...ofAll,
        failures: failures.filter(({ row_number }) => isIn(chunk)(row_number)),
      }),
    ),
    ...chunks.map((chunk) =>
      payroll.PayrollWagesCalculated.of({
        ...of(chunk),
        rows_processed: 1,
        auditable_cents: total,
        wages: wages.filter(([n]) => isIn(chunk)(n)),
      }),
    ),
    ...chunks.map((chunk) =>
      payroll.PayrollPremiumCalculated.of({
        ...of(chunk),
        rows_processed: 1,
        premium_cents: total,
        premiums: premiums.filter(([n]) => isIn(chunk)(n)),
      }),
    ),
  ]
}

/** Changes of some people. */
function syncOf(whose: readonly number[]): readonly DomainEvent[] {
  const file_id = id('b')
  return [
    EmployeeSyncReceived.of({
      ...{ file_id, sync_id: id('9'), tenant_id: id('a'), environment: 'live' as const },
      ...{ employer_id: id('e'), sender_id: id('c'), record_count: whose.length, chunk_count: 1 },
    }),
    EmployeeChangesRecorded.of({
      ...{ file_id, employer_id: id('e'), chunk: 0, last: true },
      changes: whose.map((one, row) => ({
        subject: person(one),
        action: 'hire' as const,
        record: sealedFor(person(one), `s${wordOf(row)}`),
        effective_date: wordOf(row),
      })),
    }),
  ]
}

/** What the events say of a subject, as text. */
function saidOf(subject: string, events: readonly DomainEvent[], isOwner = false): string {
  const own = ownOf(new Set([subject]), isOwner)
  return events
    .flatMap((event) => {
      const { schema } = types.find(({ name }) => name === event.type)!
      expect([event.type, schema.safeParse(event.data).error]).toEqual([event.type, undefined])
      const part = ownPart({ type: event.type, data: event.data, schema }, own)
      if (part === null) return []
      const recorded = { ...event, metadata: { actor: { type: 'system', id: 'test' } } } as RecordedEvent
      return [JSON.stringify(part), sentenceFor(recorded, part, isOwner)]
    })
    .join('\n')
}

describe('what events say of a person', () => {
  const chunkSize = fc.constantFrom(null, 1, 3, 10)

  test('holds all of that person, and nothing of anybody else', () => {
    fc.assert(
      fc.property(people, chunkSize, (whose, size) => {
        const events = [...fileOf(whose, size), ...syncOf(whose)]
        for (const one of new Set(whose)) {
          const said = saidOf(person(one), events)
          for (const [row, other] of whose.entries()) {
            const isOwn = other === one
            expect([row, said.includes(wordOf(row))]).toEqual([row, isOwn])
            expect([row, said.includes(String(centsOf(row)))]).toEqual([row, isOwn])
            expect(said.includes(person(other))).toBe(isOwn)
          }
          expect(said).not.toContain('Somebody')
        }
      }),
    )
  })

  test('has no sum over others', () => {
    const said = saidOf(person(0), fileOf([0, 1], null))
    // of both rows
    expect(said).not.toContain(String(2 * 90_000_000 + 1))
    expect(said).toContain('auditable wages $900,000.00')
  })
})

test('what events say of an employer holds its own totals, and nothing of a row', () => {
  fc.assert(
    fc.property(people, (whose) => {
      const said = saidOf('employer/0'.padEnd(33, '0'), [...fileOf(whose, null), ...syncOf(whose)], true)
      for (const [row, one] of whose.entries()) {
        expect(said).not.toContain(wordOf(row))
        expect(said).not.toContain(person(one))
      }
      expect(said).toContain('auditable_cents')
    }),
  )
})

const subjectOfEmployer = (n: number) => `employer/${String(n).repeat(24)}`
const [A, B, CARRIER] = [id('1'), id('2'), id('3')] as const
const employers: Readonly<Record<string, Owner>> = {
  A: { id: A, fields: ['employer_id', 'owner_id'] },
  B: { id: B, fields: ['employer_id', 'owner_id'] },
  carrier: { id: CARRIER, fields: ['owner_id'] },
}

/** Events as the log has them. */
function stored(stream: string, events: readonly DomainEvent[], from = 1): readonly StoredEvent[] {
  return events.map(({ type, data }, revision) => ({
    position: BigInt(from + revision),
    stream,
    revision,
    eventId: `event-${from + revision}`,
    type,
    data: JSON.stringify(data),
    metadata: '{}',
  }))
}

describe('a bank account', () => {
  const at = '2026-03-03T00:00:00.000Z'
  const bank_account_id = id('a')
  const created = (employer_id: string | null, carrier_id: string | null) =>
    BankAccountCreated.of({
      bank_account_id,
      tenant_id: id('b'),
      environment: 'live',
      user_id: sealedFor(subjectOfEmployer(1), 'user'),
      name: 'Operating',
      bank_name: 'First Bank',
      employer_id,
      carrier_id,
      connection_type: 'manual',
      primary: false,
      created_at: at,
    })
  const changed = (change: object) => BankAccountChanged.of({ bank_account_id, ...change, at })
  /** Whose it is behind each of its events. */
  function ownedBy(owner: Owner, subject: string, events: readonly DomainEvent[]): readonly boolean[] {
    let whose: Whose | null = null
    return stored(`bankAccount-${bank_account_id}`, events).map((event) => {
      whose = whoseFrom(event, whose, new Set([subject]), owner)
      return whose.isOwned
    })
  }

  test('that moved is its new owner’s from then on, and no longer its old one’s', () => {
    const events = [
      created(A, null),
      changed({ name: 'Payroll' }),
      changed({ employer_id: B }),
      changed({ name: 'Claims' }),
      BankAccountDeleted.of({ bank_account_id, at }),
    ]
    expect(ownedBy(employers.A!, subjectOfEmployer(1), events)).toEqual([true, true, false, false, false])
    expect(ownedBy(employers.B!, subjectOfEmployer(2), events)).toEqual([false, false, true, true, true])
  })

  test('is its carrier’s as long as it is of no employer', () => {
    const events = [
      created(A, CARRIER),
      changed({ employer_id: null }),
      changed({ name: 'Claims' }),
      changed({ employer_id: B }),
      changed({ carrier_id: null }),
    ]
    expect(ownedBy(employers.A!, subjectOfEmployer(1), events)).toEqual([true, false, false, false, false])
    expect(ownedBy(employers.B!, subjectOfEmployer(2), events)).toEqual([false, false, false, true, true])
    expect(ownedBy(employers.carrier!, subjectOfEmployer(3), events)).toEqual([
      ...[false, true, true],
      ...[false, false],
    ])
  })

  test('of nobody is that of the connection or user it is sealed for, as long as it has no owner', () => {
    const events = [
      created(null, null),
      changed({ name: 'Payroll' }),
      changed({ employer_id: B }),
      changed({ employer_id: null }),
    ]
    const connection = { id: id('c'), fields: ['connection_id'] }
    expect(ownedBy(connection, subjectOfEmployer(1), events)).toEqual([true, true, false, true])
  })
})

test('an intake is told to an employer only where it was completed: its FEIN may have been reserved for another’s', async () => {
  const received = (intake_id: string) =>
    IntakeReceived.of({
      intake_id,
      tenant_id: id('b'),
      environment: 'live',
      command_id: 'c',
      carrier_id: CARRIER,
      employer_id: A,
      employer: sealedFor(subjectOfEmployer(1), 'employer'),
      fein_notation: 'employer',
      owners: [],
      policy: {
        policy_number: 'WC-1',
        state: 'NV',
        class_code: '8810',
        effective_date: '2026-01-01',
        expiration_date: '2027-01-01',
        annual_premium_cents: 1,
        el_limit_tier: null,
      },
    })
  const [open, refused, completed] = [id('7'), id('8'), id('9')] as const
  const events = [
    ...stored(`intake-${open}`, [received(open)], 1),
    ...stored(
      `intake-${refused}`,
      [received(refused), IntakeRefused.of({ intake_id: refused, reason: 'fein_taken' })],
      2,
    ),
    ...stored(
      `intake-${completed}`,
      [received(completed), IntakeCompleted.of({ intake_id: completed, employer_id: A, policy_id: id('d') })],
      4,
    ),
  ]
  const log = {
    readAll: async () => ({ events, checkpoint: 5n, atHead: true }),
    readStream: async (stream: string) => events.filter((event) => event.stream === stream).slice(0, 1),
  } as Partial<EventLog> as EventLog
  const parts = {
    log,
    registry: { types },
    personalData: { subjectId: (kind: string, text: string) => `${kind}/${text}` },
  } as unknown as Parameters<typeof subjectStreams>[0]
  const subjects = new Set([subjectOfEmployer(1)])
  const { signal } = new AbortController()
  const found = await subjectStreams(parts, subjects, employers.A!, 5n, signal)
  expect(found).toEqual([{ stream: `intake-${completed}`, first: 4n }])
})

test('a policy that did not become active says nothing of the policy that has its number, which may be another’s', () => {
  const taken = PolicyNotActivated.of({
    policy_id: id('d'),
    reason: 'policy_number_taken',
    holder_policy_id: id('5'),
  })
  const said = saidOf(subjectOfEmployer(1), [taken], true)
  expect(said).toContain('another policy has its number')
  expect(said).not.toContain(id('5'))
})
