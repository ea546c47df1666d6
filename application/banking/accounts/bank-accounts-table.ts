import type { AchAccountStatus } from '../../../domain/banking/accounts/ach-account.ts'
import type { BankAccountRecord } from '../../../domain/banking/accounts/bank-account.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { bigint, orNull, type RowOf, table, text } from '../../queries/table.ts'

/** What metadata accounts are found by; what they are stands in the log. Deleted ones are not here. */
export const bankAccounts = table('bank_accounts', {
  key: ['bank_account_id'],
  columns: {
    bank_account_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    employer_id: orNull(text()),
    carrier_id: orNull(text()),
    /** The client that created it, which also owns what belongs to no employer. */
    client_id: orNull(text()),
    connection_type: text<BankAccountRecord['connection_type']>(),
    status: text<BankAccountRecord['status']>(),
    /** Whose primary account it can be: `employer/<id>`, else `carrier/<id>`, else `user`. */
    owner: text(),
    /** Order of creation. */
    seq: bigint(),
  },
  indexes: [['tenant_id', 'environment', 'seq desc'], ['employer_id', 'seq desc'], ['seq desc']],
})

/**
 * Which metadata account each owner chose last. It may belong to another owner by now, who may have chosen it as well: it is
 * primary where the two owners are the same.
 */
export const primaryBankAccounts = table('primary_bank_accounts', {
  key: ['primary_id'],
  columns: { primary_id: text(), account_id: text(), owner: text() },
  indexes: [['account_id']],
})

/** What ACH accounts are found by; what they are stands in the log. Deleted ones are not here. */
export const achAccounts = table('ach_accounts', {
  key: ['ach_account_id'],
  columns: {
    ach_account_id: text(),
    tenant_id: text(),
    environment: text<Environment>(),
    /** Its owner, in the column of its kind. */
    employer_id: orNull(text()),
    carrier_id: orNull(text()),
    owner_type: text<'employer' | 'carrier'>(),
    owner_id: text(),
    connection_type: text<BankAccountRecord['connection_type']>(),
    status: text<AchAccountStatus>(),
    /** The metadata account that is the same one. */
    bank_account_id: orNull(text()),
    /** Of its numbers, as its bank has corrected them. */
    fingerprint: text(),
    /** Of the bank link's word for the account itself. */
    persistent_fingerprint: orNull(text()),
    /** Order of creation. */
    seq: bigint(),
  },
  indexes: [
    ['tenant_id', 'environment', 'seq desc'],
    ['owner_id', 'seq desc'],
    ['seq desc'],
    ['bank_account_id'],
    ['fingerprint', 'seq'],
    ['persistent_fingerprint', 'seq'],
  ],
})

declare module '../../queries/table.ts' {
  interface ReadModels {
    bank_accounts: RowOf<typeof bankAccounts>
    primary_bank_accounts: RowOf<typeof primaryBankAccounts>
    ach_accounts: RowOf<typeof achAccounts>
  }
}
