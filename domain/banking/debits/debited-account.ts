import { z } from 'zod'
import { secret } from '../../kernel/sealed.ts'

/** A bank account that is debited, as events hold it: its numbers and its holder are in the vault. */
export const debitedAccount = z.object({
  /** Where the vault keeps it. */
  account_ref: secret(),
  /** Keyed: the same for the same numbers, and nothing that leads back to them. */
  fingerprint: z.string().regex(/^[0-9a-f]{24}$/),
  account_last4: z.string().regex(/^\d{4}$/),
  account_type: z.enum(['checking', 'savings']),
})
export type DebitedAccount = z.output<typeof debitedAccount>

/** Whether two are the same numbers of the same type. */
export function isSameAccount(one: DebitedAccount, other: DebitedAccount): boolean {
  return one.fingerprint === other.fingerprint && one.account_type === other.account_type
}
