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
import { projection } from '../../runtime/projection.ts'

const ofAccount = ({ data }: { data: { bank_account_id: string } }) =>
  ({ bank_accounts: [[data.bank_account_id]] }) as const
const ofAchAccount = ({ data }: { data: { ach_account_id: string } }) =>
  ({ ach_accounts: [[data.ach_account_id]] }) as const

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
    on(BankAccountChanged, {
      reads: ofAccount,
      apply({ data }, { bank_accounts }) {
        const { bank_account_id } = data
        const row = bank_accounts.get(bank_account_id)
        if (!row) return
        const { employer_id = row.employer_id, carrier_id = row.carrier_id } = data
        const { connection_type = row.connection_type, status = row.status } = data
        const owner = ownerOf({ employer_id, carrier_id })
        const now = { employer_id, carrier_id, connection_type, status, owner }
        bank_accounts.change([bank_account_id], now)
      },
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
    on(AchAccountCorrected, {
      reads: ofAchAccount,
      apply({ data: { ach_account_id, account } }, { ach_accounts }) {
        ach_accounts.change([ach_account_id], { fingerprint: account.fingerprint })
      },
    }),
    on(AchAccountIdentified, {
      reads: ofAchAccount,
      apply({ data: { ach_account_id, persistent_fingerprint } }, { ach_accounts }) {
        if (ach_accounts.get(ach_account_id))
          ach_accounts.change([ach_account_id], { persistent_fingerprint })
      },
    }),
    on(AchAccountVerified, {
      reads: ofAchAccount,
      apply({ data: { ach_account_id } }, { ach_accounts }) {
        // that it is there says not yet that it may be debited again
        if (ach_accounts.get(ach_account_id)!.status === 'disabled') return
        ach_accounts.change([ach_account_id], { status: 'active' })
      },
    }),
    on(AchAccountUnverified, {
      reads: ofAchAccount,
      apply({ data: { ach_account_id } }, { ach_accounts }) {
        // once it is enabled, it is unverified
        if (ach_accounts.get(ach_account_id)!.status === 'disabled') return
        ach_accounts.change([ach_account_id], { status: 'unverified' })
      },
    }),
    on(AchAccountDisabled, {
      reads: ofAchAccount,
      apply({ data: { ach_account_id } }, { ach_accounts }) {
        // a debit of a deleted one can be returned still
        if (ach_accounts.get(ach_account_id)) ach_accounts.change([ach_account_id], { status: 'disabled' })
      },
    }),
    on(AchAccountEnabled, {
      reads: ofAchAccount,
      apply({ data: { ach_account_id, status } }, { ach_accounts }) {
        if (ach_accounts.get(ach_account_id)) ach_accounts.change([ach_account_id], { status })
      },
    }),
    on(AchAccountDeleted, {
      apply: ({ data }, { ach_accounts }) => ach_accounts.remove(data.ach_account_id),
    }),
  ],
})
