import type { Environment } from '../../../domain/kernel/ids.ts'
import type { SessionStatus } from '../../../domain/payments/sessions/payment-session-status.ts'
import { bigint, boolean, type RowOf, table, text, timestamptz } from '../../queries/table.ts'

/** What payment sessions are found by; what they are stands in the log. */
export const paymentSessions = table('payment_sessions', {
  key: ['payment_session_id'],
  columns: {
    payment_session_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: text(),
    policy_id: text(),
    /** An open one whose time is over reads `expired`, before that is recorded as well. */
    status: text<SessionStatus>(),
    open: boolean(),
    expires_at: timestamptz(),
    /** Order of creation. */
    seq: bigint(),
  },
  indexes: [
    ['tenant_id', 'environment', 'seq desc'],
    ['employer_id', 'seq desc'],
    ['policy_id', 'seq desc'],
    ['seq desc'],
  ],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    payment_sessions: RowOf<typeof paymentSessions>
  }
}
