import {
  achAccounts,
  primaryBankAccounts,
  bankAccounts as table,
} from '../../../application/banking/accounts/bank-accounts-table.ts'
import {
  AchAccountCorrected,
  AchAccountCreated,
  AchAccountDeleted,
  AchAccountDisabled,
  AchAccountEnabled,
  AchAccountIdentified,
  AchAccountUnverified,
  AchAccountVerified,
} from '../../../domain/banking/accounts/ach-account-events.ts'
import {
  BankAccountChanged,
  BankAccountCreated,
  BankAccountDeleted,
} from '../../../domain/banking/accounts/bank-account.ts'
import {
  PrimaryAccountChosen,
  PrimaryAccountCleared,
} from '../../../domain/banking/accounts/primary-account.ts'
import { changing, projection } from '../../runtime/projection.ts'

const ofAccount = changing(table)
const ofAchAccount = changing(achAccounts)

interface Associated {
  readonly employer_id: string | null
  readonly carrier_id: string | null
}
/** Whose primary account one can be; the user of an account stays the same. */
const ownerOf = ({ employer_id, carrier_id }: Associated) =>
  employer_id !== null ? `employer/${employer_id}` : carrier_id !== null ? `carrier/${carrier_id}` : 'user'

/** Bank accounts of both layers, as they are listed and looked for. */
export const bankAccounts = projection({
  name: 'bank-accounts',
  version: 7,
  tables: [table, achAccounts, primaryBankAccounts],
  handlers: (on) => [
    on(BankAccountCreated, {
      apply({ data, position }, { bank_accounts }) {
        bank_accounts.put({ ...data, status: 'active', owner: ownerOf(data), seq: position })
      },
    }),
    ofAccount(BankAccountChanged, ({ data }, row) => {
      if (!row) return null
      const { employer_id = row.employer_id, carrier_id = row.carrier_id } = data
      const { connection_type = row.connection_type, status = row.status } = data
      const owner = ownerOf({ employer_id, carrier_id })
      return { employer_id, carrier_id, connection_type, status, owner }
    }),
    on(BankAccountDeleted, {
      apply: ({ data }, { bank_accounts }) => bank_accounts.remove(data.bank_account_id),
    }),
    on(PrimaryAccountChosen, {
      apply({ data: { primary_id, layer, account_id, owner_type, owner_id } }, { primary_bank_accounts }) {
        if (layer !== 'bank_account') return
        // earlier versions knew a user by its plain name
        const owner = owner_type === 'user' ? owner_type : `${owner_type}/${owner_id}`
        primary_bank_accounts.put({ primary_id, account_id, owner })
      },
    }),
    on(PrimaryAccountCleared, {
      apply({ data: { primary_id, layer } }, { primary_bank_accounts }) {
        if (layer === 'bank_account') primary_bank_accounts.remove(primary_id)
      },
    }),
    on(AchAccountCreated, {
      apply({ data, position }, { ach_accounts }) {
        const { owner_type, owner_id } = data
        ach_accounts.put({
          ...data,
          employer_id: owner_type === 'employer' ? owner_id : null,
          carrier_id: owner_type === 'carrier' ? owner_id : null,
          status: data.verified ? 'active' : 'unverified',
          seq: position,
          fingerprint: data.account.fingerprint,
        })
      },
    }),
    ofAchAccount(AchAccountCorrected, ({ data }) => ({ fingerprint: data.account.fingerprint })),
    ofAchAccount(AchAccountIdentified, ({ data: { persistent_fingerprint } }, row) =>
      row ? { persistent_fingerprint } : null,
    ),
    // that it is there says not yet that it may be debited again
    ofAchAccount(AchAccountVerified, (_event, row) =>
      row!.status === 'disabled' ? null : { status: 'active' },
    ),
    // once it is enabled, it is unverified
    ofAchAccount(AchAccountUnverified, (_event, row) =>
      row!.status === 'disabled' ? null : { status: 'unverified' },
    ),
    // a debit of a deleted one can be returned still
    ofAchAccount(AchAccountDisabled, (_event, row) => (row ? { status: 'disabled' } : null)),
    ofAchAccount(AchAccountEnabled, ({ data: { status } }, row) => (row ? { status } : null)),
    on(AchAccountDeleted, {
      apply: ({ data }, { ach_accounts }) => ach_accounts.remove(data.ach_account_id),
    }),
  ],
})
