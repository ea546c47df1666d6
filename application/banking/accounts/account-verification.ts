import {
  type AchAccount,
  type AchAccountCommand,
  achAccount,
  awaitsDeposits,
  type Verification,
  wrongAmounts,
} from '../../../domain/banking/accounts/ach-account.ts'
import { verificationStarts } from '../../../domain/banking/accounts/verification-starts.ts'
import { isRejection, orThrow, type Rejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { changed, readable, within } from '../../commands/verbs.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { readNumbers } from './ach-accounts.ts'

/** The largest of the two deposits, in cents: they are credits under one dollar. */
const MOST_CENTS = 99

/**
 * Begins to verify an account by two small credits, which the process manager `bank-accounts` has the bank make. Where they
 * are paid, the same numbers are verified a few times only: amounts could be guessed, and each start costs money.
 */
export async function startVerification(
  app: Application,
  { ach_account_id }: Pick<AchAccount, 'ach_account_id'>,
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  const verificationId = createdId(context, { category: 'accountVerification' })
  const command = { type: 'StartVerification', verificationId, at: app.clock.now() } as const
  const { state } = await app.commands.load(achAccount, ach_account_id)
  // an earlier attempt of the same request has started it
  const isStarted = state?.verification?.verification_id === verificationId
  if (state !== null && !isStarted && app.bankRails[state.environment].kind !== 'simulated') {
    const decided = achAccount.decide(command, state)
    const refusal = isRejection(decided) ? decided : await countStart(app, state, context)
    if (refusal) return refusal
  }
  return changed(app, achAccount, ach_account_id, command, context)
}

async function countStart(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  account: AchAccount,
  context: CommandContext,
): Promise<Rejection | null> {
  const { tenant_id, environment, ach_account_id, verification } = account
  const starts_id = derivedId(tenant_id, `verifications/${environment}/${account.account.fingerprint}`)
  const follows = verification?.verification_id ?? null
  const data = { starts_id, tenant_id, environment, ach_account_id, follows }
  const command = { type: 'Count', data, at: clock.now() } as const
  const outcome = await commands.execute(verificationStarts, starts_id, command, within(context, account))
  return isRejection(outcome) ? outcome : null
}

/**
 * The two amounts of a verification, in cents, which are different. They follow from its id under a key of the service, so
 * that they are kept nowhere and nobody without the key can tell them.
 */
export function amountsOf(
  { personalData }: Pick<Application, 'personalData'>,
  { verification_id }: Pick<Verification, 'verification_id'>,
): readonly [number, number] {
  const digits = personalData.fingerprint('micro-deposits', verification_id)
  const part = (from: number) => Number.parseInt(digits.slice(from, from + 12), 16)
  const first = 1 + (part(0) % MOST_CENTS)
  const step = 1 + (part(12) % (MOST_CENTS - 1))
  return [first, 1 + ((first - 1 + step) % MOST_CENTS)]
}

/** Takes the amounts that the owner of an account saw. @returns the account, active; else why it is not, with the tries left. */
export async function verifyAmounts(
  app: Application,
  account: AchAccount,
  amounts: readonly number[],
  context: CommandContext,
): Promise<AchAccount | Rejection> {
  const { ach_account_id, verification } = account
  const { verification_id: verificationId = '' } = verification ?? {}
  const expected = verification === null ? [] : amountsOf(app, verification)
  const told = { type: 'Verify', verificationId, amounts, expected, at: app.clock.now() } as const
  const outcome = await app.commands.execute(achAccount, ach_account_id, told, within(context, account))
  const after = await readable(app, achAccount, outcome)
  if (isRejection(after) || isRejection(outcome)) return after
  const [event] = outcome.events
  return event?.type === 'AchAccountVerificationFailed' ? wrongAmounts(event.data) : after
}

/**
 * Has the bank make the two credits of a verification; they are the same ones if asked for again. A refusal ends the
 * verification.
 * @throws ProviderUnavailable
 */
export async function sendMicroDeposits(
  app: Application,
  achAccountId: string,
  verificationId: string,
  context: CommandContext,
): Promise<void> {
  const { state } = await app.commands.load(achAccount, achAccountId)
  // nobody waits for those of an account that was deleted or verified meanwhile, or of a verification that is over
  if (state === null || !awaitsDeposits(state, verificationId, app.clock.now())) return
  const verification = state.verification!
  if (verification.state !== 'started') return
  const isTaken = await areTaken(app, state, verification, context)
  const command: AchAccountCommand = {
    ...({ type: 'RecordDeposits', verificationId, isTaken } as const),
    at: app.clock.now(),
  }
  orThrow(await changed(app, achAccount, achAccountId, command, context))
}

/** Records that the deposits of a verification do not arrive: it has ended, and another one can be started. */
export async function endVerification(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  achAccountId: string,
  verificationId: string,
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(achAccount, achAccountId)
  const command = { type: 'RecordDeposits', verificationId, isTaken: false, at: clock.now() } as const
  orThrow(await commands.execute(achAccount, achAccountId, command, within(context, state!)))
}

async function areTaken(
  app: Application,
  account: AchAccount,
  verification: Verification,
  context: CommandContext,
): Promise<boolean> {
  const numbers = await readNumbers(app, account, 'micro_deposits', context)
  // erased since: there is nobody to pay
  if (numbers === null) return false
  try {
    await app.bankRails[account.environment].sendMicroDeposits({
      depositsId: verification.verification_id,
      achAccountId: account.ach_account_id,
      account: numbers,
    })
    return true
  } catch (error) {
    if (error instanceof ProviderRefused) return false
    throw error
  }
}
