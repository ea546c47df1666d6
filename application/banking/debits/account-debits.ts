import { disabledNote } from '../../../domain/banking/accounts/ach-account.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import {
  type DebitStatus,
  hasClosed,
  OPEN_STATUSES,
} from '../../../domain/banking/debits/bank-debit-state.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { FirstFailure } from '../../commands/first-failure.ts'
import { within } from '../../commands/verbs.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type PageBySeq, pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'

/** Debits that are looked at in one go. */
const PAGE = 100

const OF_ACCOUNT = statement(
  'open-bank-debits-of-account',
  (db, $: Parameter<PageBySeq & { accountId: string; statuses: readonly DebitStatus[] }>) =>
    db
      .selectFrom('bank_debits')
      .select(['leg_id', 'seq'])
      .where('bank_account_id', '=', $('accountId'))
      .where('status', '=', ({ fn }) => fn.any($('statuses')))
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/**
 * Ends the debits of an account that was disabled, those that no bank can have yet.
 * @throws ReadModelsLate when it cannot be told which there are; what went wrong with one of them, once the others are done.
 */
export async function failDebitsOf(
  app: Application,
  { accountId, return_code }: { readonly accountId: string; readonly return_code: string },
  context: CommandContext,
): Promise<void> {
  await untilCurrent(app, 'bank-debits')
  const failure = new FirstFailure()
  const read = (page: PageBySeq) =>
    app.read.query(OF_ACCOUNT, { ...page, accountId, statuses: OPEN_STATUSES })
  for await (const page of pagesBySeq(PAGE, read)) {
    for (const { leg_id } of page) {
      await failure.unlessFailing(() => failDebit(app, leg_id, return_code, context))
    }
  }
  failure.throwIfAny()
}

/** Ends a debit of an account that was disabled, unless a bank can have it. One that is not there stays so. */
export async function failDebit(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  debitId: string,
  returnCode: string | null,
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(bankDebit, debitId)
  const now = clock.now()
  // what went with a batch that has closed may be at the bank: it comes back by itself
  if (state === null || !OPEN_STATUSES.includes(state.status) || hasClosed(state, now)) return
  const note = disabledNote({ return_code: returnCode })
  const commandId = derivedId(context.commandId, `account-disabled/${debitId}`)
  const scoped = { ...within(context, state), commandId }
  const outcome = await commands.execute(bankDebit, debitId, { type: 'Fail', note, at: now }, scoped)
  // it moved on in between
  if (isRejection(outcome)) return
}
