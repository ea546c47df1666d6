import type { Environment } from '../../domain/kernel/ids.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import { bigint, date, integer, jsonb, orNull, type RowOf, table, text } from '../queries/table.ts'

export const policies = table('policies', {
  key: ['policy_id'],
  columns: {
    policy_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: text(),
    policy_number: text(),
    /** Whether an active one is expired depends on the day. */
    status: text<Policy['status']>(),
    effective_date: date(),
    expiration_date: date(),
    class_codes: jsonb<Policy['class_codes']>(),
    states: jsonb<Policy['states']>(),
    locations: jsonb<Policy['locations']>(),
    payroll_frequency: text(),
    fees: jsonb<Policy['fees']>(),
    fee_count: integer(),
    billing_type: orNull(text<NonNullable<Policy['billing_type']>>()),
    /** Order of issue. */
    seq: bigint(),
  },
  indexes: [['employer_id', 'seq'], ['tenant_id', 'environment', 'seq desc'], ['seq desc']],
})

export const carriers = table('carriers', {
  key: ['carrier_id'],
  columns: {
    carrier_id: text(),
    tenant_id: text(),
    name: text(),
    /** Order of registration. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'seq desc'], ['seq desc']],
})

declare module '../queries/table.ts' {
  interface ReadModels {
    policies: RowOf<typeof policies>
    carriers: RowOf<typeof carriers>
  }
}
