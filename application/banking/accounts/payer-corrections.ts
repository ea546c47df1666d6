import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { payerCorrection } from '../../../domain/banking/accounts/payer-correction.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { type DebitedAccount, isSameAccount } from '../../../domain/banking/debits/debited-account.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { type Correction, disableNumbers } from './ach-accounts.ts'
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

/** What a return of a debit says something of. */
interface ReturnedNumbers {
  /** Whether its account still has these numbers, as its bank has corrected them, or nobody recorded those of the entry. */
  readonly areCurrent: boolean
  readonly numbers: readonly Pick<DebitedAccount, 'fingerprint'>[]
}

/** The numbers of a debit, as it was created and as its bank has corrected them; of an entry from before that, its own alone. */
export async function returnedNumbers(
  app: Pick<Application, 'commands'>,
  debit: BankDebit,
): Promise<ReturnedNumbers> {
  const known = await correctedAccount(app, debit)
  const { fingerprint = known.fingerprint } = debit.in_file ?? {}
  return fingerprint === known.fingerprint
    ? { areCurrent: true, numbers: [debit.account, known] }
    : { areCurrent: false, numbers: [{ fingerprint }] }
}

/**
 * Disables what a return says is debited no more, as its numbers stand now: once, whoever follows the return first. By a code
 * that disables a debit comes back once.
 * @throws ReadModelsLate when it cannot be told yet which accounts have them.
 */
export async function disableReturned(
  app: Application,
  debit: BankDebit,
  returnCode: string,
  context: CommandContext,
): Promise<void> {
  const { leg_id, tenant_id, environment, bank_account_id } = debit
  const { areCurrent, numbers } = await returnedNumbers(app, debit)
  const returned = { tenant_id, environment, achAccountId: areCurrent ? bank_account_id : null, numbers }
  const once = { ...context, commandId: derivedId(leg_id, 'disable-account'), mayRepeat: true }
  await disableNumbers(app, returned, returnCode, once)
}

/** Accounts are corrected once for all debits of a tenant that name them. */
export function correctionIdOf({ tenant_id, environment, account }: BankDebit): string {
  return derivedId(`payer-correction/${tenant_id}/${environment}`, account.fingerprint)
}
