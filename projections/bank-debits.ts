import { bankDebits as table } from '../application/read-models/bank-debits.ts'
import {
  BankDebitCreated,
  BankDebitMatched,
  BankDebitProcessed,
  BankDebitReported,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
} from '../domain/banking/bank-debit-events.ts'
import { projection } from './runtime/projection.ts'

const ofLeg = ({ data }: { data: { leg_id: string } }) => ({ bank_debits: [[data.leg_id]] }) as const

/** Bank debits as they are listed and looked for; whose account is debited stays in the log. */
export const bankDebits = projection({
  name: 'bank-debits',
  version: 1,
  tables: [table],
  handlers: (on) => [
    on(BankDebitCreated, {
      apply({ data, position }, { bank_debits }) {
        const { leg_id, tenant_id, environment, employer_id, carrier_id, policy_id, amount_cents } = data
        bank_debits.put({
          ...{ leg_id, tenant_id, environment, employer_id, carrier_id, policy_id, amount_cents },
          ...{ status: 'pending', created_at: data.created_at, seq: position },
          awaits_credit: data.settlement_type === 'fbo',
        })
      },
    }),
    on(BankDebitScheduled, {
      reads: ofLeg,
      apply: ({ data: { leg_id, batch_closes_at, effective_date } }, { bank_debits }) =>
        bank_debits.change([leg_id], { status: 'Scheduled', batch_closes_at, effective_date }),
    }),
    on(BankDebitSubmitted, {
      reads: ofLeg,
      apply: ({ data }, { bank_debits }) => bank_debits.change([data.leg_id], { status: 'submitted' }),
    }),
    on(BankDebitReported, {
      reads: ofLeg,
      apply({ data: { leg_id, settled_on } }, { bank_debits }) {
        if (settled_on === null || bank_debits.get(leg_id)?.status !== 'submitted') return
        bank_debits.change([leg_id], { status: 'processed' })
      },
    }),
    on(BankDebitProcessed, {
      reads: ofLeg,
      apply: ({ data }, { bank_debits }) => bank_debits.change([data.leg_id], { status: 'processed' }),
    }),
    on(BankDebitMatched, {
      reads: ofLeg,
      apply: ({ data }, { bank_debits }) => bank_debits.change([data.leg_id], { awaits_credit: false }),
    }),
    on(BankDebitReturned, {
      reads: ofLeg,
      apply: ({ data }, { bank_debits }) =>
        bank_debits.change([data.leg_id], { status: 'returned', awaits_credit: false }),
    }),
  ],
})
