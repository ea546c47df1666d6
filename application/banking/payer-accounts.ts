import { z } from 'zod'
import type { DebitedAccount } from '../../domain/banking/debited-account.ts'
import type { Application } from '../application.ts'
import type { BankAccount } from '../ports/bank-rail.ts'

/** An account as the vault keeps it. */
const kept = z.object({
  holderName: z.string(),
  routingNumber: z.string(),
  accountNumber: z.string(),
  accountType: z.enum(['checking', 'savings']),
  bankName: z.string().nullable(),
})

/** Puts the account of a payer into the vault. @returns what events may hold of it. */
export async function keepAccount(
  { vault, personalData, randomness }: Pick<Application, 'vault' | 'personalData' | 'randomness'>,
  sessionId: string,
  account: BankAccount,
): Promise<DebitedAccount> {
  const { routingNumber, accountNumber, accountType } = account
  const account_ref = `payer-account/${sessionId}/${randomness.hex(8)}`
  await vault.put(account_ref, JSON.stringify(kept.parse(account)))
  return {
    account_ref,
    fingerprint: personalData.fingerprint('bank-account', `${routingNumber}/${accountNumber}`),
    account_last4: accountNumber.slice(-4),
    account_type: accountType,
  }
}

/** The account in plain text; null where what the vault has of it cannot be read. @throws when the vault is away. */
export async function keptAccount(
  { vault }: Pick<Application, 'vault'>,
  { account_ref }: DebitedAccount,
): Promise<BankAccount | null> {
  const text = await vault.get(account_ref)
  if (text === null) return null
  try {
    return kept.parse(JSON.parse(text))
  } catch {
    // what is wrong with it would show what it is
    return null
  }
}
