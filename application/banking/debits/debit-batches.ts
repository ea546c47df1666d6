import { disabledNote } from '../../../domain/banking/accounts/ach-account.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { FirstFailure } from '../../commands/first-failure.ts'
import { within } from '../../commands/verbs.ts'
import { raiseHeldUp } from '../../followers/through-outages.ts'
import type { RailBatch, RailEntry } from '../../ports/bank-rail.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type PageBySeq, pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { debitDisabledBy } from '../accounts/disabled-numbers.ts'
import { keptAccount } from '../accounts/payer-accounts.ts'
import { correctedAccount } from '../accounts/payer-corrections.ts'

/** Debits that are looked at in one go. */
const PAGE = 500

const OF_BATCH = statement(
  'bank-debits-of-batch',
  (db, $: Parameter<PageBySeq & { closesAt: string; environment: Environment; status: 'Scheduled' }>) =>
    db
      .selectFrom('bank_debits')
      .select(['leg_id', 'tenant_id', 'seq'])
      .where('batch_closes_at', '=', $('closesAt'))
      .where('environment', '=', $('environment'))
      // a repetition of a batch leaves out what the bank has acknowledged meanwhile
      .where('status', '=', $('status'))
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/**
 * Hands the batch of a close to the bank. A debit whose account cannot be read has failed, and operators are told.
 * @param closesAt epoch milliseconds.
 * @param signal aborts when the time is up.
 * @throws ProviderUnavailable, ProviderRefused; ReadModelsLate when it cannot be told what is in it; what went wrong with
 *   one of its debits, once the others are handed over.
 */
export async function submitBatch(
  app: Application,
  closesAt: number,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  await untilCurrent(app, 'bank-debits')
  const failure = new FirstFailure()
  // no money waits for what is simulated
  for (const environment of ['live', 'sandbox'] as const) {
    await failure.unlessFailing(() => submitTo(app, environment, { closesAt, context, signal }))
  }
  failure.throwIfAny()
}

async function submitTo(
  app: Application,
  environment: Environment,
  handedOver: Pick<RailBatch, 'closesAt' | 'context' | 'signal'>,
): Promise<void> {
  const { closesAt, context, signal } = handedOver
  signal.throwIfAborted()
  const batch = batchOf(closesAt, environment)
  const rail = app.bankRails[environment]
  // the simulated one has nothing else to hand over
  if (rail.kind === 'simulated' && (await oldestOf(app, batch)) === null) return
  const failure = new FirstFailure()
  await rail.submit({
    ...handedOver,
    entries: entriesOf(app, batch, failure),
    async refuse({ debitId, account }, note) {
      const at = app.clock.now()
      const command =
        account === null
          ? ({ type: 'LeaveOut', note, at } as const)
          : ({ type: 'Fail', note, byBank: true, at } as const)
      const commandId = derivedId(context.commandId, `refuse/${debitId}`)
      await failure.unlessFailing(() => recorded(app, debitId, command, { ...context, commandId }))
    },
  })
  failure.throwIfAny()
}

/**
 * Has the operator told that a batch waits for a bank that is away, once for its oldest debit and a time.
 * @param closesAt of the batch, as `since` epoch milliseconds.
 */
export async function raiseBatchHeldUp(
  app: Pick<Application, 'commands' | 'clock' | 'log' | 'read'>,
  { closesAt, since }: { readonly closesAt: number; readonly since: number },
  context: CommandContext,
): Promise<void> {
  for (const environment of ['live', 'sandbox'] as const) {
    const oldest = await oldestOf(app, batchOf(closesAt, environment))
    if (oldest === null) continue
    const { leg_id, tenant_id } = oldest
    const about = { leg_id, batch_closes_at: isoTime(closesAt) }
    const whose = within(context, { tenant_id, environment })
    return raiseHeldUp(app, { kind: 'debit_batch_held_up', about }, whose, since)
  }
}

type Batch = ReturnType<typeof batchOf>
const batchOf = (closesAt: number, environment: Environment) =>
  ({ closesAt: isoTime(closesAt), environment, status: 'Scheduled' }) as const

async function oldestOf({ read }: Pick<Application, 'read'>, batch: Batch) {
  const [oldest] = await read.query(OF_BATCH, { ...batch, after: '0', limit: 1 })
  return oldest ?? null
}

async function* entriesOf(
  app: Application,
  batch: Batch,
  failure: FirstFailure,
): AsyncGenerator<readonly RailEntry[]> {
  const read = (page: PageBySeq) => app.read.query(OF_BATCH, { ...page, ...batch })
  for await (const page of pagesBySeq(PAGE, read)) {
    const entries = await Promise.all(
      page.map(({ leg_id }) => failure.unlessFailing(() => entryOf(app, leg_id, batch))),
    )
    yield entries.filter((entry) => entry !== null)
  }
}

/** Null of a debit that has left the batch since it was looked for. */
async function entryOf(app: Application, debitId: string, batch: Batch): Promise<RailEntry | null> {
  const debit = (await app.commands.load(bankDebit, debitId)).state!
  if (debit.status !== batch.status || debit.batch_closes_at !== batch.closesAt) return null
  const { amount_cents: amountCents, entry_date, representments } = debit
  const known = await correctedAccount(app, debit)
  const account = await keptAccount(app, known)
  const returnCode = await debitDisabledBy(app, debit, known)
  const unreadable = account === null ? 'Its account cannot be read' : null
  const refusal = returnCode === null ? unreadable : disabledNote({ return_code: returnCode })
  return {
    debitId,
    amountCents,
    effectiveDate: entry_date!,
    account,
    fingerprint: known.fingerprint,
    isRetry: representments > 0,
    refusal,
  }
}

async function recorded(
  { commands }: Application,
  debitId: string,
  command: Parameters<typeof bankDebit.decide>[0],
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(bankDebit, debitId)
  orThrow(await commands.execute(bankDebit, debitId, command, within(context, state!)))
}
