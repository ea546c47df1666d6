import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { disabledNumbers } from '../../../domain/banking/accounts/disabled-numbers.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import type { DebitedAccount } from '../../../domain/banking/debits/debited-account.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { within } from '../../commands/verbs.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'

interface Place {
  readonly tenant_id: string
  readonly environment: Environment
}
type Numbers = Pick<DebitedAccount, 'fingerprint'>

/** The code of the return by which one of some numbers was disabled; null: all of them may be debited. */
export async function disabledBy(
  { commands }: Pick<Application, 'commands'>,
  place: Place,
  numbers: readonly Numbers[],
): Promise<string | null> {
  const ids = new Set(numbers.map((one) => idOf(place, one)))
  const found = await commands.loadAll(disabledNumbers, [...ids])
  return found.find(({ state }) => state !== null)?.state?.return_code ?? null
}

/**
 * The same for a debit. Earlier versions recorded a return of an account or a plan alone, and not of its numbers.
 * @param numbers that its entry carries, or is to carry.
 */
export async function debitDisabledBy(
  app: Pick<Application, 'commands'>,
  debit: BankDebit,
  numbers: Numbers,
): Promise<string | null> {
  const { bank_account_id, source, payment_session_id } = debit
  const returnCode = await disabledBy(app, debit, [numbers])
  if (returnCode !== null) return returnCode
  if (bank_account_id !== null) {
    return (await app.commands.load(achAccount, bank_account_id)).state?.return_code ?? null
  }
  if (source !== 'instalment') return null
  return (await app.commands.load(paymentSession, payment_session_id!)).state?.disabled_by ?? null
}

/** Records that nothing is debited from numbers any more, whichever accounts have them. */
export async function recordDisabled(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  { tenant_id, environment }: Place,
  numbers: readonly Numbers[],
  return_code: string,
  context: CommandContext,
): Promise<void> {
  const place = { tenant_id, environment }
  for (const { fingerprint } of numbers) {
    const numbers_id = idOf(place, { fingerprint })
    const data = { numbers_id, ...place, fingerprint, return_code }
    const command = { type: 'Disable', data, at: clock.now() } as const
    orThrow(await commands.execute(disabledNumbers, numbers_id, command, within(context, place)))
  }
}

/** Records that numbers may be debited again. */
export async function recordEnabled(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  place: Place,
  numbers: readonly Numbers[],
  reason: string,
  context: CommandContext,
): Promise<void> {
  const command = { type: 'Enable', reason, at: clock.now() } as const
  for (const one of numbers) {
    orThrow(await commands.execute(disabledNumbers, idOf(place, one), command, within(context, place)))
  }
}

function idOf({ tenant_id, environment }: Place, { fingerprint }: Numbers): string {
  return derivedId(tenant_id, `disabled-numbers/${environment}/${fingerprint}`)
}

/** Accounts that are looked at in one go. */
const PAGE = 100
const WITH_NUMBERS = statement(
  'ach-accounts-with-numbers',
  (
    db,
    $: Parameter<
      Place & { readonly fingerprints: readonly string[]; readonly after: string; readonly limit: number }
    >,
  ) =>
    db
      .selectFrom('ach_accounts')
      .select(['ach_account_id', 'seq'])
      .where('tenant_id', '=', $('tenant_id'))
      .where('environment', '=', $('environment'))
      .where(({ eb, fn, or }) =>
        or([
          eb('fingerprint', '=', fn.any($('fingerprints'))),
          eb('persistent_fingerprint', '=', fn.any($('fingerprints'))),
        ]),
      )
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/**
 * The ACH accounts that have some numbers now, but for deleted ones.
 * @throws ReadModelsLate when it cannot be told which there are.
 */
export async function accountsWith(
  app: Pick<Application, 'log' | 'read' | 'readModels'>,
  { tenant_id, environment }: Place,
  numbers: readonly Numbers[],
): Promise<readonly string[]> {
  await untilCurrent(app, 'bank-accounts')
  const wanted = { tenant_id, environment, fingerprints: numbers.map(({ fingerprint }) => fingerprint) }
  const found: string[] = []
  for await (const page of pagesBySeq(PAGE, (page) => app.read.query(WITH_NUMBERS, { ...wanted, ...page }))) {
    found.push(...page.map(({ ach_account_id }) => ach_account_id))
  }
  return found
}
