import type { Environment } from '../../../domain/kernel/ids.ts'
import type { PaymentLinkStatus } from '../../../domain/payments/links/payment-link.ts'
import { bigint, boolean, type RowOf, table, text, timestamptz } from '../../queries/table.ts'

/** What payment links are found by; what they are stands in the log. */
export const paymentLinks = table('payment_links', {
  key: ['payment_link_id'],
  columns: {
    payment_link_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: text(),
    carrier_id: text(),
    /** An open one whose time is over reads `expired`, before that is recorded as well. */
    status: text<PaymentLinkStatus>(),
    open: boolean(),
    expires_at: timestamptz(),
    /** Order of creation. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'environment', 'seq desc'], ['employer_id', 'seq desc'], ['seq desc']],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    payment_links: RowOf<typeof paymentLinks>
  }
}
