import type { Balances, BookedDebit, Place } from '../../../domain/banking/reconciliation/postings.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { bigint, integer, jsonb, orNull, type RowOf, table, text } from '../../queries/table.ts'

/** Balances of the carriers of a tenant: events of debits name their tenant, not their carrier. */
export const carrierBalances = table('carrier_balances', {
  key: ['tenant_id', 'environment'],
  columns: {
    tenant_id: text(),
    environment: text<Environment>(),
    /** By carrier. */
    carriers: jsonb<Readonly<Record<string, Balances>>>(),
    /** Of the last event that moved money, as a decimal. */
    position: text(),
  },
})

/** Where the money of each debit stands. */
export const bookedDebits = table('booked_debits', {
  key: ['leg_id'],
  columns: {
    leg_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    carrier_id: text(),
    amount_cents: bigint(),
    settlement_type: orNull(text<NonNullable<BookedDebit['settlement_type']>>()),
    place: text<Place>(),
    /** Of how many of its presentations the money was found. */
    matched_entries: integer(),
    /** The file for the bank that its entry stands in. */
    file_id: orNull(text()),
    /** How often it was put into a file, and presented again. */
    entries: integer(),
    representments: integer(),
    /** Position of its last event. */
    seq: bigint(),
  },
  indexes: [['seq'], ['file_id']],
})

/** Credits, and the debits that they are the money of. */
export const bookedCredits = table('booked_credits', {
  key: ['credit_id'],
  columns: {
    credit_id: text(),
    tenant_id: text(),
    carrier_id: text(),
    amount_cents: bigint(),
    /** The day on which the bank shows it, and the id that its reference is, whatever that names. */
    bank_date: text(),
    named_id: orNull(text()),
    leg_id: orNull(text()),
    /** Order of receipt. */
    seq: bigint(),
  },
  indexes: [['seq'], ['leg_id'], ['carrier_id', 'amount_cents', 'leg_id']],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    carrier_balances: RowOf<typeof carrierBalances>
    booked_debits: RowOf<typeof bookedDebits>
    booked_credits: RowOf<typeof bookedCredits>
  }
}
