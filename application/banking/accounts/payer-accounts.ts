import { z } from 'zod'
import type { DebitedAccount } from '../../../domain/banking/debits/debited-account.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import { openAll, UNREADABLE } from '../../commands/sealed-fields.ts'
import { employerSubject } from '../../commands/sealing.ts'
import type { BankAccount } from '../../ports/bank-rail.ts'
import { ERASED } from '../../ports/personal-data.ts'

/** An account as the vault keeps it. */
const kept = z.object({
  holderName: z.string(),
  routingNumber: z.string(),
  accountNumber: z.string(),
  accountType: z.enum(['checking', 'savings']),
  bankName: z.string().nullable(),
})

/** Puts the account of a payer into the vault, sealed under the employer's data key. @returns what events may hold of it. */
export function keepAccount(
  app: Pick<Application, 'vault' | 'personalData' | 'randomness'>,
  { payment_session_id, employer_id }: Pick<PaymentSession, 'payment_session_id' | 'employer_id'>,
  account: BankAccount,
): Promise<DebitedAccount> {
  const account_ref = `payer-account/${payment_session_id}/${app.randomness.hex(8)}`
  return keep(app, { account_ref, ownerId: employer_id }, account)
}

/**
 * The same of an ACH account of an owner, where a carrier's is sealed under a data key of the carrier. The same numbers of
 * the same account are kept once, so that a repetition after a crash is safe.
 */
export function keepAchAccount(
  app: Pick<Application, 'vault' | 'personalData'>,
  { achAccountId, ownerId }: { readonly achAccountId: string; readonly ownerId: string },
  account: BankAccount,
): Promise<DebitedAccount> {
  const entry = app.personalData.fingerprint('bank-account-entry', JSON.stringify(kept.parse(account)))
  return keep(app, { account_ref: `ach-account/${achAccountId}/${entry}`, ownerId }, account)
}

async function keep(
  { vault, personalData }: Pick<Application, 'vault' | 'personalData'>,
  { account_ref, ownerId }: { readonly account_ref: string; readonly ownerId: string },
  account: BankAccount,
): Promise<DebitedAccount> {
  const { routingNumber, accountNumber, accountType } = account
  const subject = employerSubject(personalData, ownerId)
  const plaintext = JSON.stringify(kept.parse(account))
  const [sealed] = await personalData.seal([{ subject, context: account_ref, plaintext }])
  await vault.getOrPut(account_ref, () => sealed!)
  return {
    account_ref,
    fingerprint: personalData.fingerprint('bank-account', `${routingNumber}/${accountNumber}`),
    account_last4: accountNumber.slice(-4),
    account_type: accountType,
  }
}

/** The account in plain text; null where it was erased, is not in the vault or does not open. */
export async function keptAccount(
  { vault, personalData }: Pick<Application, 'vault' | 'personalData'>,
  { account_ref, account_type }: DebitedAccount,
): Promise<BankAccount | null> {
  const text = await vault.get(account_ref)
  if (text === null) return null
  const [account] = await openAll(personalData, [{ value: text as Sealed, context: account_ref }])
  if (account === ERASED || account === UNREADABLE) return null
  // its type can change, its numbers cannot
  return { ...kept.parse(JSON.parse(account!)), accountType: account_type }
}
