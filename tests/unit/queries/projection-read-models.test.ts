import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import { BankAccountChanged, BankAccountCreated } from '../../../domain/banking/accounts/bank-account.ts'
import {
  PrimaryAccountChosen,
  PrimaryAccountCleared,
} from '../../../domain/banking/accounts/primary-account.ts'
import { BankCreditMatched, BankCreditUnmatched } from '../../../domain/banking/credits/bank-credit.ts'
import {
  BankDebitGated,
  BankDebitRejected,
  BankDebitReleased,
} from '../../../domain/banking/debits/bank-debit-events.ts'
import {
  BankFileBegun,
  BankFileCaughtUp,
  BankFileExposed,
  BankFileFetched,
  BankFileOverdue,
  BankFileRecorded,
  BankFileTreatedAsSent,
  BankFileUncertain,
} from '../../../domain/banking/files/bank-file-events.ts'
import {
  BankReportCleared,
  BankReportItemApplied,
  BankReportItemResolved,
  BankReportItemsParked,
  BankReportRead,
  BankReportReceived,
} from '../../../domain/banking/files/bank-report.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import type { DomainEvent } from '../../../domain/kernel/event-type.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import { OperatorAlertAcknowledged } from '../../../domain/operations/operator-alert.ts'
import {
  type EmployeeChange,
  EmployeeChangesRecorded,
  EmployeeSyncReceived,
} from '../../../domain/parties/employee-sync.ts'
import {
  EmployerDetailsChanged,
  EmployerLinkedToPayrollCompany,
  EmployerRegistered,
  EmployerUnlinkedFromPayrollCompany,
} from '../../../domain/parties/employer.ts'
import { payrollFile } from '../../../domain/payroll/payroll-file.ts'
import type { PayrollFileEvent } from '../../../domain/payroll/payroll-file-events.ts'
import {
  PolicyActivated,
  PolicyIssued,
  PolicyNotActivated,
  PolicyTermsChanged,
} from '../../../domain/policies/policy.ts'
import { WebhookDeliveryDropped } from '../../../domain/webhooks/webhook-event.ts'
import { WebhookSubscriptionDisabled } from '../../../domain/webhooks/webhook-subscriptions.ts'
import { bankAccounts } from '../../../projections/banking/accounts/bank-accounts.ts'
import { bankFiles } from '../../../projections/banking/files/bank-files.ts'
import { projections } from '../../../projections/index.ts'
import { operatorAlerts } from '../../../projections/operations/operator-alerts.ts'
import { employeeRegister } from '../../../projections/parties/employee-register.ts'
import { employers } from '../../../projections/parties/employers.ts'
import { payrollFiles } from '../../../projections/payroll/payroll-files.ts'
import { policies } from '../../../projections/policies/policies.ts'
import { Fold } from '../../../projections/runtime/fold.ts'
import type { Projection } from '../../../projections/runtime/projection.ts'
import { eventsOf } from '../../support/decider-spec.ts'
import { oneALine } from '../../support/golden.ts'
import { policyTerms } from '../../support/payroll.ts'
import { type Happened, recorded, specifyProjection, TENANT } from '../../support/projection-spec.ts'

const id = (digit: string) => digit.repeat(24)
const FILE = id('f')
const EMPLOYER = id('e')
const POLICY = id('b')
const sealed = (text: string) => `sld1.person/${id('5')}.${Buffer.from(text).toString('base64url')}` as Sealed

/** What each sample of a stored event makes a projection write, one after the other. */
function rowsOfSamples({ tables, handlers }: Projection) {
  const registry = new EventRegistry(aggregates)
  const golden = JSON.parse(readFileSync(new URL('../../golden/events.json', import.meta.url), 'utf8')) as {
    readonly metadata: object
    readonly samples: readonly { type: string; version: number; data: object }[]
  }
  const fold = new Fold(tables)
  fold.forget(true)
  return golden.samples.flatMap(({ type, version, data }) => {
    const stored = {
      // of no place in the samples: a new sample changes no other's rows
      position: 1n,
      stream: `golden-${type}`,
      revision: 0,
      type,
      eventId: '00000000-0000-8000-8000-000000000000',
      data: JSON.stringify(data, withSecondFailure),
      metadata: JSON.stringify({ ...golden.metadata, schema_version: version }),
    }
    const its = handlers.filter((handler) => handler.type === type)
    if (its.length === 0) return []
    fold.apply(its, registry.decode(stored))
    const writes = fold.take()
    fold.written()
    return [{ of: `${type} version ${version}`, writes }]
  })
}

/** Samples have one red row; what differs between the first and the others is to be seen, too. */
function withSecondFailure(key: string, value: unknown): unknown {
  if (key !== 'failures') return value
  const [first] = value as { row_number: number }[]
  return [first, { ...first, row_number: first!.row_number + 1 }]
}

const withoutBigint = (_key: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)

describe('read models as a whole', () => {
  it('handle only event types that exist', () => {
    const registry = new EventRegistry(aggregates)
    const handled = projections.flatMap((projection) => projection.handlers.map((handler) => handler.type))
    expect(handled.filter((type) => !registry.knows(type))).toEqual([])
  })

  it('have tables of their own', () => {
    const tables = projections.flatMap((projection) => projection.tables.map((table) => table.name))
    expect(new Set(tables).size).toBe(tables.length)
  })

  it('declare the columns of values that are always sealed as personal', () => {
    const sealed = new Set<string>()
    for (const { writes } of projections.flatMap(rowsOfSamples)) {
      for (const { table, put } of writes) {
        for (const [column, value] of put.flatMap((row) => Object.entries(row))) {
          if (JSON.stringify(value ?? null, withoutBigint).includes('sld1.')) sealed.add(`${table}.${column}`)
        }
      }
    }
    const declared = projections.flatMap(({ tables }) =>
      tables.flatMap(({ name, personal = [] }) => personal.map((column) => `${name}.${column}`)),
    )
    expect(declared.sort()).toEqual([...sealed].sort())
  })

  it('have the stored tables of their version; with others, raise it and run this with -u', async () => {
    const stored = projections.flatMap(({ name, version, tables }) =>
      tables.map((table) => ({ projection: name, version, ...table })),
    )
    await expect(`${oneALine(stored)}\n`).toMatchFileSnapshot('../../golden/read-models.json')
  })

  it('write the stored rows of their version; with others, raise it and run this with -u', async () => {
    const written = projections.flatMap((projection) =>
      rowsOfSamples(projection).map((rows) => ({
        projection: projection.name,
        version: projection.version,
        ...rows,
      })),
    )
    await expect(`${oneALine(written)}\n`).toMatchFileSnapshot('../../golden/read-model-rows.json')
  })
})

describe('payroll files', () => {
  const spec = specifyProjection(payrollFiles)
  const of = { tenant_id: TENANT, environment: 'live', employer_id: EMPLOYER, policy_id: POLICY } as const
  const event = eventsOf(payrollFile, { ...of, file_id: FILE, policy_number: 'WC-1', policy_revision: 0 })
  const received = (chunks: number, rows: number) =>
    event('PayrollFileReceived', {
      source: { kind: 'tool', submission_id: id('1'), sender_id: id('c') },
      file_name: 'payroll.json',
      row_count: rows,
      chunk_count: chunks,
      period: { start: '2026-01-01', end: '2026-01-14' },
    })
  const row = (n: number) => ({ n, name: 'none' as const, gross_wages: 100 })
  const recorded = (chunk: number, last: boolean, rows: number[]) =>
    event('PayrollRowsRecorded', { chunk, last, rows: rows.map(row) })
  const normalized = event('PayrollFileNormalized', { row_count: 3 })
  const validated = (chunk: number, last: boolean, green: number, red: number[]) =>
    event('PayrollRowsValidated', {
      chunk,
      last,
      green,
      red: red.length,
      failures: red.map((row_number) => ({
        row_number,
        person: sealed(`person ${row_number}`),
        reasons: [{ field: 'state', code: 'unknown_value' as const, value: 'ZZ' }],
      })),
      ...(red.length > 0 ? { valid: { class_codes: ['8810'], states: ['CA'] } } : {}),
    })
  const wages = (chunk: number, last: boolean, rows: number, cents: number) =>
    event('PayrollWagesCalculated', { chunk, last, rows_processed: rows, auditable_cents: cents, wages: [] })
  const premium = (chunk: number, last: boolean, rows: number, cents: number) =>
    event('PayrollPremiumCalculated', {
      chunk,
      last,
      rows_processed: rows,
      premium_cents: cents,
      premiums: [],
    })
  const stream = `payrollFile-${FILE}`

  it('completes each phase with its last chunk and adds the chunks up', () => {
    const events = [
      received(2, 3),
      recorded(0, false, [1, 2]),
      recorded(1, true, [3]),
      normalized,
      validated(0, false, 1, [2]),
      validated(1, true, 1, []),
      wages(0, false, 1, 10_000),
      wages(1, true, 1, 20_050),
      premium(0, false, 1, 120),
      premium(1, true, 1, 241),
    ]
    for (const [count, phase] of [
      [5, 'phase_1_status'],
      [7, 'phase_2_status'],
      [9, 'phase_3_status'],
    ] as const) {
      const first = { stream, events: events.slice(0, count) }
      spec.given(first).thenRows({ payroll_files: [{ [phase]: 'pending' }] })
    }
    spec.given({ stream, events }).thenRows({
      payroll_files: [
        {
          status: 'NORMALIZED',
          error: null,
          recorded_chunks: 2,
          green_rows: 2,
          red_rows: 1,
          phase_1_status: 'complete',
          wages_rows: 2,
          total_auditable_wages_cents: 30_050,
          phase_2_status: 'complete',
          premium_rows: 2,
          total_premium_cents: 361,
          phase_3_status: 'complete',
          created_at: '2026-03-01T12:00:00.000Z',
          updated_at: '2026-03-01T12:00:09.000Z',
        },
      ],
      payroll_row_errors: [
        {
          file_id: FILE,
          row_number: 2,
          person: sealed('person 2'),
          reasons: [{ field: 'state', code: 'unknown_value', value: 'ZZ' }],
          valid: { class_codes: ['8810'], states: ['CA'] },
        },
      ],
    })
  })

  describe('of a file that was processed at once', () => {
    const processed = (isRated: boolean) =>
      event('PayrollFileProcessed', {
        row_count: 3,
        period: null,
        validation: validated(0, true, 1, [2, 3]).data,
        wages: wages(0, true, 1, 10_000).data,
        premium: isRated ? premium(0, true, 1, 120).data : null,
      })
    const whole = event('PayrollFileReceived', { ...received(1, 3).data, rows: [1, 2, 3].map(row) })
    const phases = [
      ...[received(1, 3), recorded(0, true, [1, 2, 3]), normalized],
      ...[validated(0, true, 1, [2, 3]), wages(0, true, 1, 10_000)],
    ]
    const failed = event('PayrollFileFailed', { stage: 'premium_calculation', error: 'no rate' })
    const rowsOf = (...events: PayrollFileEvent[]) => {
      const { payroll_files, payroll_row_errors } = spec.given({ stream, events }).rows()
      return {
        payroll_files: payroll_files!.map((one) => ({ ...one, updated_at: null })),
        payroll_row_errors,
      }
    }

    it('tells what its phases would tell one by one', () => {
      const rows = rowsOf(whole, processed(true))
      expect(rows).toEqual(rowsOf(...phases, premium(0, true, 1, 120)))
      expect(rows.payroll_files).toMatchObject([{ status: 'NORMALIZED', total_premium_cents: 120 }])
    })

    it('tells of a missing rate as the phases would', () => {
      const rows = rowsOf(whole, processed(false), failed)
      expect(rows).toEqual(rowsOf(...phases, failed))
      expect(rows.payroll_files).toMatchObject([{ status: 'failed', phase_2_status: 'complete' }])
    })

    it('keeps with the first red row only what would have been valid', () => {
      expect(rowsOf(whole, processed(true)).payroll_row_errors!.map((one) => one.valid)).toEqual([
        { class_codes: ['8810'], states: ['CA'] },
        null,
      ])
    })
  })

  it.each([
    ['file_creation', ['pending', 'pending', 'pending']],
    ['validation', ['failed', 'pending', 'pending']],
    ['wage_calculation', ['pending', 'failed', 'pending']],
    ['premium_calculation', ['pending', 'pending', 'failed']],
  ] as const)('marks the phase of a file that failed in %s', (stage, [one, two, three]) => {
    const failed = event('PayrollFileFailed', { stage, error: 'no rate' })
    spec.given({ stream, events: [received(1, 3), failed] }).thenRows({
      payroll_files: [
        {
          status: 'failed',
          error: 'no rate',
          phase_1_status: one,
          phase_2_status: two,
          phase_3_status: three,
        },
      ],
    })
  })

  it('keeps what was complete when a later phase fails', () => {
    const events = [
      received(1, 3),
      recorded(0, true, [1, 2, 3]),
      normalized,
      validated(0, true, 3, []),
      wages(0, true, 3, 30_000),
      event('PayrollFileFailed', { stage: 'premium_calculation', error: 'no rate' }),
    ]
    spec.given({ stream, events }).thenRows({
      payroll_files: [
        {
          status: 'failed',
          phase_1_status: 'complete',
          phase_2_status: 'complete',
          phase_3_status: 'failed',
        },
      ],
    })
  })

  it('takes a sync as normalized with its last chunk', () => {
    const sync = EmployeeSyncReceived.of({
      file_id: FILE,
      sync_id: id('2'),
      tenant_id: TENANT,
      environment: 'sandbox',
      employer_id: EMPLOYER,
      sender_id: id('c'),
      record_count: 2,
      chunk_count: 2,
    })
    const chunk = (number: number, last: boolean) =>
      EmployeeChangesRecorded.of({
        file_id: FILE,
        employer_id: EMPLOYER,
        chunk: number,
        last,
        changes: [
          { subject: `person/${number}`, action: 'update', record: sealed('x'), effective_date: null },
        ],
      })
    const syncStream = `employeeSync-${FILE}`
    spec
      .given({ stream: syncStream, events: [sync, chunk(0, false)] })
      .thenRows({ payroll_files: [{ kind: 'sync', sync_id: id('2'), status: 'pending', row_count: 2 }] })
    spec.given({ stream: syncStream, events: [sync, chunk(0, false), chunk(1, true)] }).thenRows({
      payroll_files: [{ kind: 'sync', policy_id: null, status: 'NORMALIZED', recorded_chunks: 2 }],
    })
  })

  it('refuses events of a file it has never seen', () => {
    spec.given({ stream, events: [normalized] }).thenFails(/payroll_files: the row to change is not there/)
  })
})

describe('policies', () => {
  const spec = specifyProjection(policies)
  const fees = [{ label: 'Expense constant', amount_cents: 16_000 }]
  const issued = PolicyIssued.of(policyTerms({ policy_id: POLICY, class_codes: ['8810'], fees }))

  it('changes only the terms that changed', () => {
    const changed = PolicyTermsChanged.of({ policy_id: POLICY, fees: [], billing_type: 'DIRECT_BILLING' })
    spec.given({ stream: `policy-${POLICY}`, events: [issued, changed] }).thenRows({
      policies: [{ fees: [], fee_count: 0, billing_type: 'DIRECT_BILLING', class_codes: ['8810'] }],
    })
  })

  it('takes a change of rates alone as no change', () => {
    const changed = PolicyTermsChanged.of({ policy_id: POLICY, rates: [] })
    spec
      .given({ stream: `policy-${POLICY}`, events: [issued, changed] })
      .thenRows({ policies: [{ fee_count: 1 }] })
  })

  it('shows a policy in progress as active when it is', () => {
    const quoted = PolicyIssued.of({ ...issued.data, status: 'in_progress' })
    const history = { stream: `policy-${POLICY}`, events: [quoted] }
    spec.given(history).thenRows({ policies: [{ status: 'in_progress' }] })
    const activated = PolicyActivated.of({ policy_id: POLICY })
    spec
      .given({ ...history, events: [quoted, activated] })
      .thenRows({ policies: [{ status: 'active', fee_count: 1 }] })
  })
})

describe('bank accounts', () => {
  const [account, from, to] = [id('1'), id('2'), id('3')]
  const created: Happened = {
    stream: `bankAccount-${account}`,
    events: [
      BankAccountCreated.of({
        bank_account_id: account,
        tenant_id: TENANT,
        environment: 'live',
        user_id: 'user-1',
        name: 'Operating',
        bank_name: 'First Bank',
        employer_id: from,
        carrier_id: null,
        connection_type: 'manual',
        primary: false,
        created_at: '2026-03-01T12:00:00.000Z',
      }),
    ],
  }
  const moved: Happened = {
    stream: created.stream,
    events: [
      BankAccountChanged.of({ bank_account_id: account, employer_id: to, at: '2026-03-01T12:00:01.000Z' }),
    ],
  }
  const primary = (owner_id: string) => ({
    ...({ primary_id: id(owner_id[0] === '2' ? 'c' : 'd'), layer: 'bank_account' } as const),
    ...({ owner_type: 'employer', owner_id, account_id: account } as const),
    at: '2026-03-01T12:00:02.000Z',
  })
  const chosen = (owner_id: string): Happened => ({
    stream: `primaryAccount-${primary(owner_id).primary_id}`,
    events: [
      PrimaryAccountChosen.of({
        ...primary(owner_id),
        tenant_id: TENANT,
        environment: 'live',
        replaces: null,
      }),
    ],
  })
  const cleared = (owner_id: string): Happened => ({
    stream: chosen(owner_id).stream,
    events: [PrimaryAccountCleared.of(primary(owner_id))],
  })

  it('stay primary of whom they belong to when an owner chooses one that has gone meanwhile', () => {
    specifyProjection(bankAccounts)
      .given(created, moved, chosen(to), chosen(from))
      .thenRows({
        bank_accounts: [{ bank_account_id: account, employer_id: to, owner: `employer/${to}` }],
        primary_bank_accounts: [
          { account_id: account, owner: `employer/${from}` },
          { account_id: account, owner: `employer/${to}` },
        ],
      })
  })

  it('are primary of nobody whose choice was cleared', () => {
    specifyProjection(bankAccounts)
      .given(created, chosen(from), moved, chosen(to), cleared(to))
      .thenRows({ primary_bank_accounts: [{ account_id: account, owner: `employer/${from}` }] })
  })

  it('belong to their user whichever way an event names it', () => {
    const ofUser: Happened = {
      stream: created.stream,
      events: created.events.map(({ data }) =>
        BankAccountCreated.of({ ...(data as object), employer_id: null } as never),
      ),
    }
    const chosenFor = (owner_id: string): Happened => ({
      stream: chosen(from).stream,
      events: chosen(from).events.map(({ data }) =>
        PrimaryAccountChosen.of({ ...(data as object), owner_type: 'user', owner_id } as never),
      ),
    })
    for (const name of ['user-1', 'f0e1d2c3b4a5968778695a4b']) {
      specifyProjection(bankAccounts)
        .given(ofUser, chosenFor(name))
        .thenRows({
          bank_accounts: [{ bank_account_id: account, owner: 'user' }],
          primary_bank_accounts: [{ account_id: account, owner: 'user' }],
        })
    }
  })
})

describe('files for a bank', () => {
  it('are found by every block of a thousand trace numbers that theirs lie in', () => {
    const at = '2026-03-02T00:00:00.000Z'
    const file_id = FILE
    const begun = { batch_closes_at: at, part: 1, file_date: '2026-03-02', file_time: '1200', modifier: 'A' }
    const total = { debit_cents: 0, credit_cents: 0 }
    const recorded = { name: 'out.txt', sha256: '0'.repeat(64), bytes: 940, batches: [], entries_id: id('1') }
    const traces = { first_trace: '071000010000998', last_trace: '071000010002000' }
    specifyProjection(bankFiles)
      .given({
        stream: `bankFile-${FILE}`,
        events: [
          BankFileBegun.of({ file_id, ...begun, first_sequence: 998, count: 1_003, at }),
          BankFileRecorded.of({ file_id, ...recorded, ...traces, ...total, at }),
        ],
      })
      .thenRows({
        bank_file_traces: ['071000010000', '071000010001', '071000010002'].map((block) => ({
          block,
          file_id,
        })),
      })
  })
})

describe('reports of a bank', () => {
  it('count an item that was applied and parked again as parked', () => {
    const of = { report_id: 'e'.repeat(24), at: '2026-03-02T00:00:00.000Z' }
    const what = { kind: 'return', code: 'R02', original_trace: null, amount_cents: 5 } as const
    const items = [3, 4].map((line) => ({ ...what, line, reason: 'unknown' }))
    const applied = { line: 3, transaction_id: 'f'.repeat(24), return_code: 'R02' }
    const received = { name: 'ret.txt', sha256: '0'.repeat(64), bytes: 1 }
    const read = { format: 'nacha', items: 2, applied: 0, repeated: 0, parked: 2 } as const
    specifyProjection(bankFiles)
      .given({
        stream: `bankReport-${of.report_id}`,
        events: [
          BankReportReceived.of({ ...of, ...received }),
          BankReportItemsParked.of({ ...of, items }),
          BankReportRead.of({ ...of, ...read }),
          BankReportItemApplied.of({ ...of, ...applied, reason: 'said the bank', was_resolved: false }),
          BankReportItemsParked.of({ ...of, items: items.slice(0, 1) }),
        ],
      })
      .thenRows({ bank_reports: [{ status: 'read', items: 2, applied: 0, parked: 2 }] })
  })
})

describe('employers', () => {
  const spec = specifyProjection(employers)
  const registered = EmployerRegistered.of({
    employer_id: EMPLOYER,
    tenant_id: TENANT,
    environment: 'live',
    legal_name: 'Acme',
    fein: sealed('12-3456789'),
    address: null,
    contact_email: null,
    payroll_company_ids: [id('1')],
  })
  const stream = `employer-${EMPLOYER}`

  it('follows name and links, and holds nothing sealed', () => {
    const link = (payroll_company_id: string) =>
      EmployerLinkedToPayrollCompany.of({ employer_id: EMPLOYER, payroll_company_id })
    const rows = spec
      .given({
        stream,
        events: [
          registered,
          EmployerDetailsChanged.of({ employer_id: EMPLOYER, legal_name: 'Acme Ltd' }),
          link(id('2')),
          EmployerUnlinkedFromPayrollCompany.of({ employer_id: EMPLOYER, payroll_company_id: id('1') }),
          link(id('3')),
        ],
      })
      .rows().employers!
    expect(rows).toMatchObject([{ legal_name: 'Acme Ltd', payroll_company_ids: [id('2'), id('3')] }])
    expect(JSON.stringify(rows)).not.toContain('sld1.')
  })

  it('leaves the name alone when only sealed details change', () => {
    const changed = EmployerDetailsChanged.of({ employer_id: EMPLOYER, address: sealed('{}') })
    spec.given({ stream, events: [registered, changed] }).thenRows({ employers: [{ legal_name: 'Acme' }] })
  })
})

describe('operator alerts', () => {
  const spec = specifyProjection(operatorAlerts)
  const holder_policy_id = id('c')
  const taken = PolicyNotActivated.of({ policy_id: POLICY, reason: 'policy_number_taken', holder_policy_id })
  const cancelled = PolicyNotActivated.of({
    policy_id: POLICY,
    reason: 'policy_cancelled',
    holder_policy_id: null,
  })
  const dropped = WebhookDeliveryDropped.of({
    event_id: id('1'),
    subscription_id: id('2'),
    delivery_id: id('3'),
  })
  const disabled = (by: 'partner' | 'failures') =>
    WebhookSubscriptionDisabled.of({ subscription_id: id('2'), by, at: 0 })
  const happened = [
    { stream: `policy-${POLICY}`, events: [taken, cancelled] },
    { stream: `webhookEvent-${id('1')}`, events: [dropped] },
    { stream: `webhookSubscriptions-${TENANT}_live`, events: [disabled('partner'), disabled('failures')] },
  ]
  const rows = () => spec.given(...happened).rows().operator_alerts!

  it('are raised by what calls for a person, with ids of what it is about', () => {
    const found = [...rows()].sort((a, b) => Number(a.seq) - Number(b.seq))
    expect(found.map(({ kind, about, seq }) => [kind, about, seq])).toEqual([
      ['policy_not_activated', { policy_id: POLICY, holder_policy_id }, 1],
      ['policy_not_activated', { policy_id: POLICY }, 2],
      ['webhook_delivery_dropped', { event_id: id('1'), subscription_id: id('2'), delivery_id: id('3') }, 3],
      // a partner who disables its own subscription calls for nobody
      ['webhook_subscription_disabled', { subscription_id: id('2') }, 5],
    ])
    for (const row of found) {
      expect(row).toMatchObject({ tenant_id: TENANT, environment: 'live', acknowledged_at: null, note: null })
      expect(row.alert_id).toMatch(/^[0-9a-f]{24}$/)
    }
    expect(new Set(found.map(({ alert_id }) => alert_id)).size).toBe(found.length)
  })

  it('of one subscription are one open alert that counts, and a new one after somebody took note', () => {
    const drops = (first: number, count: number) =>
      Array.from({ length: count }, (_, n) => ({
        stream: `webhookEvent-${id(String(first + n))}`,
        events: [WebhookDeliveryDropped.of({ ...dropped.data, event_id: id(String(first + n)) })],
      }))
    const [alert, ...others] = spec.given(...drops(1, 3)).rows().operator_alerts!
    expect(others).toEqual([])
    expect(alert).toMatchObject({ count: 3, times: 3, seq: 1, about: { event_id: id('3') } })
    const { alert_id } = alert as { alert_id: string }
    const noted = (times: number) => ({
      stream: `operatorAlert-${alert_id}`,
      events: [OperatorAlertAcknowledged.of({ alert_id, note: null, times })],
    })
    type Happened = {
      readonly stream: string
      readonly events: (typeof happened)[number]['events'] | ReturnType<typeof noted>['events']
    }
    const rowsAfter = (...more: Happened[]) => spec.given(...drops(1, 3), ...more).rows().operator_alerts
    expect(rowsAfter(noted(2))).toMatchObject([{ count: 1, acknowledged_at: null }])
    expect(rowsAfter(noted(3))).toMatchObject([{ count: 3, acknowledged_by: 'test' }])
    expect(rowsAfter(noted(3), ...drops(4, 2))).toMatchObject([
      { count: 2, times: 5, seq: 5, acknowledged_at: null },
    ])
  })

  it('end with what settles them', () => {
    const [leg_id, at] = [id('1'), '2026-11-24T17:00:00.000Z']
    const stop = { gate: 'anomaly', status: 'quarantined', reason: 'why' } as const
    const gated = BankDebitGated.of({ leg_id, ...stop, at })
    const failed = BankDebitGated.of({ ...gated.data, gate: 'billing', status: 'failed' })
    const released = BankDebitReleased.of({ leg_id, note: null, at })
    const rejected = BankDebitRejected.of({ leg_id, note: null, at })
    type Happened = typeof gated | typeof released | typeof rejected
    const rowsAfter = (...events: Happened[]) =>
      spec.given({ stream: `bankDebit-${leg_id}`, events }).rows().operator_alerts
    expect(rowsAfter(failed, released)).toEqual([])
    expect(rowsAfter(gated)).toMatchObject([{ about: { leg_id }, acknowledged_at: null }])
    for (const settled of [released, rejected]) {
      expect(rowsAfter(gated, settled)).toMatchObject([
        { kind: 'debit_quarantined', acknowledged_by: 'test', acknowledged_at: expect.any(String) },
      ])
    }
  })

  it('of a file for the bank end when it is found, or fetched and answered', () => {
    const data = { file_id: FILE, at: '2026-11-24T17:00:00.000Z' }
    const rowsAfter = (...events: readonly DomainEvent[]) =>
      spec.given({ stream: `bankFile-${FILE}`, events }).rows().operator_alerts
    for (const [raised, settled] of [
      [BankFileUncertain, BankFileExposed],
      [BankFileUncertain, BankFileFetched],
      [BankFileUncertain, BankFileTreatedAsSent],
      [BankFileOverdue, BankFileCaughtUp],
    ] as const) {
      const after = settled.of({ ...data, note: null })
      expect(rowsAfter(raised.of(data))).toMatchObject([{ about: { file_id: FILE }, acknowledged_at: null }])
      expect(rowsAfter(raised.of(data), after)).toMatchObject([{ acknowledged_at: expect.any(String) }])
      // it happened again
      expect(rowsAfter(raised.of(data), after, raised.of(data))).toMatchObject([{ acknowledged_at: null }])
    }
  })

  it('of items that a bank reported end when none is parked any more', () => {
    const data = { report_id: FILE, at: '2026-11-24T17:00:00.000Z' }
    const parked = BankReportItemsParked.of({ ...data, items: [] })
    const rowsAfter = (...events: readonly DomainEvent[]) =>
      spec.given({ stream: `bankReport-${FILE}`, events }).rows().operator_alerts
    const resolved = BankReportItemResolved.of({ ...data, line: 3, note: null })
    expect(rowsAfter(parked, resolved)).toMatchObject([{ about: { report_id: FILE }, acknowledged_at: null }])
    const cleared = BankReportCleared.of(data)
    expect(rowsAfter(parked, resolved, cleared)).toMatchObject([{ acknowledged_at: expect.any(String) }])
    expect(rowsAfter(parked, cleared, parked)).toMatchObject([{ acknowledged_at: null }])
  })

  it('of a credit end when it is matched, and take no note of an id that is not there', () => {
    const data = { credit_id: id('1'), at: '2026-11-24T17:00:00.000Z' }
    const unmatched = BankCreditUnmatched.of({ ...data, leg_id: id('2') })
    const matched = BankCreditMatched.of({ ...data, leg_id: id('2'), confidence: 'high' })
    const rowsAfter = (...events: readonly DomainEvent[]) =>
      spec.given({ stream: `bankCredit-${data.credit_id}`, events }).rows().operator_alerts
    const noted = OperatorAlertAcknowledged.of({ alert_id: id('3'), note: null })
    expect(rowsAfter(unmatched, noted)).toMatchObject([{ about: { leg_id: id('2') }, acknowledged_at: null }])
    expect(rowsAfter(unmatched, matched)).toMatchObject([{ acknowledged_at: expect.any(String) }])
    expect(rowsAfter(unmatched, matched, unmatched)).toMatchObject([{ acknowledged_at: null }])
    expect(rowsAfter(BankCreditUnmatched.of({ ...data, leg_id: null }), matched)).toEqual([])
  })

  it('keep who took note, and when', () => {
    const { alert_id } = rows().find(({ kind }) => kind === 'webhook_delivery_dropped')!
    const noted = OperatorAlertAcknowledged.of({ alert_id: String(alert_id), note: 'called them' })
    const at = '2026-03-02T08:00:00.000Z'
    const after = spec.given(...happened, { stream: `operatorAlert-${alert_id}`, events: [noted], at }).rows()
    const [row] = after.operator_alerts!.filter((one) => one.acknowledged_at !== null)
    expect(row).toMatchObject({ alert_id, acknowledged_at: at, acknowledged_by: 'test', note: 'called them' })
  })
})

describe('employee register', () => {
  const spec = specifyProjection(employeeRegister)
  const change = (
    action: EmployeeChange['action'],
    date: string | null,
    text: string = action,
  ): EmployeeChange => ({ subject: 'person/1', action, record: sealed(text), effective_date: date })
  const sync = (file: string, ...changes: EmployeeChange[]) => ({
    stream: `employeeSync-${id(file)}`,
    events: [
      EmployeeChangesRecorded.of({ file_id: id(file), employer_id: EMPLOYER, chunk: 0, last: true, changes }),
    ],
  })

  it('keeps the last record with the place it is sealed for', () => {
    spec.given(sync('1', change('hire', '2026-01-05')), sync('2', change('update', null))).thenRows({
      employee_register: [
        {
          employer_id: EMPLOYER,
          subject: 'person/1',
          tenant_id: TENANT,
          environment: 'live',
          status: 'employed',
          hire_date: '2026-01-05',
          last_action: 'update',
          record: sealed('update'),
          record_stream: `employeeSync-${id('2')}`,
          record_field: 'chunks.0.changes.0.record',
          changes: 2,
        },
      ],
    })
  })

  it('terminates and hires again', () => {
    spec
      .given(sync('1', change('hire', '2026-01-05'), change('terminate', '2026-02-01')))
      .thenRows({ employee_register: [{ status: 'terminated', termination_date: '2026-02-01' }] })
    spec
      .given(
        sync('1', change('hire', '2026-01-05'), change('terminate', '2026-02-01')),
        sync('2', change('hire', '2026-03-01')),
      )
      .thenRows({
        employee_register: [{ status: 'employed', hire_date: '2026-03-01', termination_date: null }],
      })
  })

  it('takes an update of somebody unknown as employment', () => {
    spec
      .given(sync('1', change('update', null)))
      .thenRows({ employee_register: [{ status: 'employed', hire_date: null, changes: 1 }] })
  })

  it('keeps a termination when an update follows', () => {
    spec
      .given(sync('1', change('terminate', '2026-02-01')), sync('2', change('update', null)))
      .thenRows({ employee_register: [{ status: 'terminated', last_action: 'update' }] })
  })

  it('is not set back by a stream that is applied late', () => {
    const registry = new EventRegistry(aggregates)
    const history = [
      sync('1', change('hire', '2026-01-05', 'early')),
      sync('2', change('terminate', '2026-02-01', 'late')),
    ]
    const [early, late] = recorded(registry, history)
    const fold = new Fold(employeeRegister.tables)
    fold.forget(true)
    for (const event of [late!, early!]) fold.apply(employeeRegister.handlers, event)
    expect(fold.take()[0]!.put).toMatchObject([
      {
        status: 'terminated',
        hire_date: '2026-01-05',
        termination_date: '2026-02-01',
        last_action: 'terminate',
        record: sealed('late'),
        changes: 2,
      },
    ])
  })
})
