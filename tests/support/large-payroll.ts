import { expect } from 'vitest'
import { employeeRecord, type ShownEvent, status } from './core.ts'
import { askOperator, operate, type SeededTenant } from './seed.ts'
import type { RunningService } from './service.ts'

/** Records of a large report, and what has to come out of them, computed apart from the service. */
export interface LargePayroll {
  readonly employees: readonly Record<string, unknown>[]
  readonly green: number
  readonly red: number
  readonly wageCents: number
  readonly premiumCents: number
}

/** Rates of the seeded policy in cents per 10,000 cents of wages. */
const RATES: Readonly<Record<string, bigint>> = { '8810': 250n, '5403': 1000n }

/**
 * Distinct people in two class codes and two states; every 41st has a class code that the policy does not.
 * @param seed makes the wages differ between files.
 */
export function largePayroll(rows: number, seed: number): LargePayroll {
  const employees: Record<string, unknown>[] = []
  let red = 0
  let wageCents = 0
  let premiumCents = 0n
  for (let index = 0; index < rows; index += 1) {
    const isRed = index % 41 === 40
    const class_code = isRed ? '0000' : index % 3 === 0 ? '5403' : '8810'
    const cents = 100_000 + ((index * 7_919 + seed * 104_729) % 400_000)
    employees.push(
      employeeRecord({
        employee_id: `E-${seed}-${index}`,
        last_name: `Baker ${index}`,
        class_code,
        state: index % 2 === 0 ? 'CA' : 'NV',
        gross_wages: cents / 100,
      }),
    )
    if (isRed) red += 1
    else {
      wageCents += cents
      premiumCents += (BigInt(cents) * RATES[class_code]! + 5_000n) / 10_000n
    }
  }
  return { employees, green: rows - red, red, wageCents, premiumCents: Number(premiumCents) }
}

/** Every event of a stream, in order. */
export async function streamEvents(service: RunningService, stream: string): Promise<ShownEvent[]> {
  const events: ShownEvent[] = []
  let from: number | null = 0
  while (from !== null) {
    const { body }: { body: { data: ShownEvent[]; pagination: { next: number | null } } } = await askOperator(
      service,
      'GET',
      `/streams/${stream}?from=${from}&limit=20`,
    )
    events.push(...body.data)
    from = body.pagination.next
  }
  return events
}

const PHASES = ['PayrollRowsValidated', 'PayrollWagesCalculated', 'PayrollPremiumCalculated'] as const

/** The types of the events of a whole file of so many chunks, in order, where nothing held or failed it. */
export function wholeFileTypes(chunks: number): string[] {
  if (chunks === 1) return ['PayrollFileReceived', 'PayrollFileProcessed']
  const times = (type: string) => Array.from({ length: chunks }, () => type)
  return [
    'PayrollFileReceived',
    ...times('PayrollRowsRecorded'),
    'PayrollFileNormalized',
    ...PHASES.flatMap(times),
  ]
}

/** Waits for the service to come to rest and checks a file: each step once, in order, and the right sums everywhere. */
export async function expectComplete(
  service: RunningService,
  tenant: SeededTenant,
  fileId: string,
  payroll: LargePayroll,
): Promise<void> {
  await operate(service, 'POST', '/drain', { timeout_seconds: 150 })
  const events = await streamEvents(service, `payrollFile-${fileId}`)
  const chunks = Number(events[0]!.data.chunk_count)
  expect(events.map(({ type }) => type)).toEqual(wholeFileTypes(chunks))
  for (const type of ['PayrollRowsRecorded', ...PHASES]) {
    const numbers = events.filter((event) => event.type === type).map(({ data }) => data.chunk)
    expect(numbers, type).toEqual(Array.from({ length: chunks }, (_, chunk) => chunk))
  }
  expect(fileSums(events)).toMatchObject({
    green: payroll.green,
    red: payroll.red,
    wageCents: payroll.wageCents,
    premiumCents: payroll.premiumCents,
  })
  const shown = await status(service, tenant, fileId)
  expect(shown.body).toMatchObject({
    status: 'NORMALIZED',
    employee_count: payroll.employees.length,
    phase_1: { green_rows: payroll.green, red_rows: payroll.red },
    phase_2: { processed_rows: payroll.green },
    phase_3: { total_premium_cents: payroll.premiumCents, processed_rows: payroll.green },
  })
}

/** What the events of a whole file say that its phases came to, and under which revision of its policy. */
export function fileSums(
  events: readonly { readonly type: string; readonly data: ReturnType<typeof JSON.parse> }[],
) {
  const processed = events.find(({ type }) => type === 'PayrollFileProcessed')?.data
  if (processed) {
    const { policy_revision, validation, wages, premium } = processed
    return {
      policyRevision: policy_revision,
      green: validation.green,
      red: validation.red,
      wageCents: wages.auditable_cents,
      premiumCents: premium?.premium_cents,
    }
  }
  const sum = (of: string, field: string) =>
    events.filter(({ type }) => type === of).reduce((total, { data }) => total + Number(data[field]), 0)
  return {
    policyRevision: events.find(({ type }) => type === 'PayrollFileNormalized')?.data.policy_revision,
    green: sum('PayrollRowsValidated', 'green'),
    red: sum('PayrollRowsValidated', 'red'),
    wageCents: sum('PayrollWagesCalculated', 'auditable_cents'),
    premiumCents: sum('PayrollPremiumCalculated', 'premium_cents'),
  }
}
