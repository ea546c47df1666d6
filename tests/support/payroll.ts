import { randomBytes } from 'node:crypto'
import type { PayrollFileEvent } from '../../domain/payroll/payroll-file-events.ts'
import { PayrollFileReceived, PayrollRowsRecorded } from '../../domain/payroll/payroll-file-events.ts'
import { type CanonicalRow, normalizeRow, TOOL_ROWS } from '../../domain/payroll/payroll-row.ts'
import type { PayrollTerms } from '../../domain/payroll/row-validation.ts'
import type { Policy, PolicyCommand } from '../../domain/policies/policy.ts'

/** An id as the service makes them: 24 lower-case hex characters. */
export const newId = (): string => randomBytes(12).toString('hex')

export const TERMS: PayrollTerms = {
  class_codes: ['8810', '5606'],
  states: ['CA', 'NV'],
  effective_date: '2026-01-01',
  expiration_date: '2026-12-31',
}

/** A row as agents send it, normalized; nobody is named in it unless asked for. */
export function row(fields: Record<string, unknown> = {}, n = 1): CanonicalRow {
  const raw = { class_code: '8810', state: 'CA', gross_wages: 1000, ...fields }
  const normalized = normalizeRow(raw, n, TOOL_ROWS).row
  return { ...normalized, name: 'full' }
}

/** A policy with two class codes in two states and a rate for each pair. */
export function policyTerms(
  changes: Partial<Policy> = {},
): Extract<PolicyCommand, { type: 'Issue' }>['data'] {
  const { class_codes, states, effective_date, expiration_date } = TERMS
  return {
    policy_id: newId(),
    tenant_id: newId(),
    environment: 'live',
    employer_id: newId(),
    carrier_id: newId(),
    policy_number: 'WC-100',
    effective_date,
    expiration_date,
    annual_premium_cents: null,
    overtime_exclusion: false,
    class_codes: [...class_codes],
    states: [...states],
    locations: [],
    rates: class_codes.flatMap((class_code) =>
      states.map((state) => ({ class_code, state, rate_per_100: class_code === '8810' ? '0.25' : '2.50' })),
    ),
    payroll_frequency: 'WEEKLY',
    fees: [],
    billing_type: null,
    ...changes,
    status: 'active',
  }
}

/** The received event of a file against a policy. */
export function received(
  fileId: string,
  counts: { rows: number; chunks: number },
  on: Pick<Policy, 'policy_id' | 'tenant_id' | 'employer_id' | 'policy_number'> = policyTerms(),
): Extract<PayrollFileEvent, { type: 'PayrollFileReceived' }> {
  return PayrollFileReceived.of({
    file_id: fileId,
    tenant_id: on.tenant_id,
    environment: 'live',
    employer_id: on.employer_id,
    policy_id: on.policy_id,
    policy_number: on.policy_number,
    source: { kind: 'report', submission_id: null, sender_id: 'test' },
    file_name: 'payroll.json',
    row_count: counts.rows,
    chunk_count: counts.chunks,
    period: null,
  })
}

/** The event with one chunk of a file's rows. */
export function recorded(
  fileId: string,
  chunk: number,
  last: boolean,
  rows: CanonicalRow[],
): Extract<PayrollFileEvent, { type: 'PayrollRowsRecorded' }> {
  return PayrollRowsRecorded.of({ file_id: fileId, chunk, last, rows })
}
