import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { payerCorrection } from '../../../domain/banking/accounts/payer-correction.ts'
import type { BankDebitCommand } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebitData } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { type DebitedAccount, isSameAccount } from '../../../domain/banking/debits/debited-account.ts'
import { disablesAccount } from '../../../domain/banking/debits/return-codes.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId, UnreadableEvent } from '../../commands/event-registry.ts'
import type { Correction } from './ach-accounts.ts'
import { keepAccount, keptAccount } from './payer-accounts.ts'

/**
 * Applies a bank's notification of change to an account that a payer gave for a session: whatever is debited from it from
 * now on carries the corrected numbers.
 * @returns a rejection where its numbers cannot be read.
 */
export async function correctPayerAccount(
  app: Application,
  debit: BankDebit,
  { changeCode: change_code, ...correct }: Correction,
  context: CommandContext,
): Promise<DebitedAccount | Rejection> {
  const { tenant_id, environment, leg_id, employer_id, payment_session_id, account } = debit
  const correction_id = correctionIdOf(debit)
  const { fingerprint } = account
  for (;;) {
    const of = await correctedAccount(app, debit)
    const before = await keptAccount(app, of)
    if (before === null) return reject('conflict', 'account_unreadable', 'The account cannot be read')
    const owner = { payment_session_id: payment_session_id!, employer_id }
    const corrected = await keepAccount(app, owner, { ...before, ...correct })
    const data = {
      correction_id,
      tenant_id,
      environment,
      fingerprint,
      change_code,
      account: corrected,
      leg_id,
    }
    const command = { type: 'Correct', data, of, at: app.clock.now() } as const
    const outcome = await app.commands.execute(payerCorrection, correction_id, command, context)
    if (isRejection(outcome)) return outcome
    const after = outcome.state!.account
    // it is another than was read: what was changed meanwhile stays
    if (outcome.position !== null || isSameAccount(after, corrected)) return after
  }
}

/** The account that a debit is to be taken from, as its bank has corrected it. */
export async function correctedAccount(
  { commands }: Pick<Application, 'commands'>,
  debit: BankDebit,
): Promise<DebitedAccount> {
  const { state } =
    debit.bank_account_id === null
      ? await commands.load(payerCorrection, correctionIdOf(debit))
      : await commands.load(achAccount, debit.bank_account_id)
  return state?.account ?? debit.account
}

/**
 * The command that takes a debit back. It says of which numbers the return speaks: what follows from it is done later, when
 * they may be others.
 * @param inFile fingerprint of the numbers of its entry, as its file has it; null: as the debit has it, if it does.
 */
export async function returnOf(
  app: Pick<Application, 'commands' | 'clock'>,
  debit: BankDebit,
  return_code: string,
  inFile: string | null = null,
): Promise<Extract<BankDebitCommand, { type: 'Return' }>> {
  const command = { type: 'Return', return_code, at: app.clock.now() } as const
  const fingerprint = inFile ?? debit.in_file?.fingerprint
  if (fingerprint === undefined || !disablesAccount(return_code)) return command
  try {
    const known = await correctedAccount(app, debit)
    return { ...command, ofFormerNumbers: fingerprint !== known.fingerprint }
  } catch (error) {
    // an account that cannot be read holds up no return, only what follows from it
    if (error instanceof UnreadableEvent) return command
    throw error
  }
}

/** What a return of a debit says something of. */
interface ReturnedNumbers {
  /** Whether its account had these numbers then, as its bank has corrected them, or nobody recorded those of the entry. */
  readonly areCurrent: boolean
  readonly numbers: readonly Pick<DebitedAccount, 'fingerprint'>[]
}

/** The numbers of a debit, as it was created and as its entry had them; of an entry from before a correction, its own alone. */
export async function returnedNumbers(
  app: Pick<Application, 'commands'>,
  debit: BankDebit,
  { of_former_numbers }: Pick<BankDebitData<'BankDebitReturned'>, 'of_former_numbers'>,
): Promise<ReturnedNumbers> {
  const known = await correctedAccount(app, debit)
  const { fingerprint = (of_former_numbers ? debit.account : known).fingerprint } = debit.in_file ?? {}
  return (of_former_numbers ?? fingerprint !== known.fingerprint)
    ? { areCurrent: false, numbers: [{ fingerprint }] }
    : { areCurrent: true, numbers: [debit.account, { fingerprint }] }
}

/** Accounts are corrected once for all debits of a tenant that name them. */
export function correctionIdOf({ tenant_id, environment, account }: BankDebit): string {
  return derivedId(`payer-correction/${tenant_id}/${environment}`, account.fingerprint)
}
