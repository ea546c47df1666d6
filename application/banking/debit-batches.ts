import { achAccount, disabledNote } from '../../domain/banking/ach-account.ts'
import { bankDebit } from '../../domain/banking/bank-debit.ts'
import type { BankDebit } from '../../domain/banking/bank-debit-state.ts'
import type { DebitedAccount } from '../../domain/banking/debited-account.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import type { RailEntry } from '../ports/bank-rail.ts'
import { ReadModelsLate } from '../ports/read-models.ts'
import { type Parameter, statement } from '../read-models/statement.ts'
import { keptAccount } from './payer-accounts.ts'
import { correctedAccount } from './payer-corrections.ts'

/** Debits that are looked at in one go. */
const PAGE = 500

/** A page of debits in the order of their creation. */
export interface Page {
  /** Position of the debit before; of the first page 0. */
  readonly after: string
  readonly limit: number
}

const OF_BATCH = statement(
  'bank-debits-of-batch',
  (db, $: Parameter<Page & { closesAt: string; environment: Environment; status: 'Scheduled' }>) =>
    db
      .selectFrom('bank_debits')
      .select(['leg_id', 'seq'])
      .where('batch_closes_at', '=', $('closesAt'))
      .where('environment', '=', $('environment'))
      // whoever repeats a batch leaves what the bank has acknowledged meanwhile
      .where('status', '=', $('status'))
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/**
 * Hands the batch of a close to the bank. A debit whose account cannot be read is left out, and operators are told.
 * @param closesAt epoch milliseconds.
 * @param signal aborts when the time is up.
 * @throws ProviderUnavailable, ProviderRefused; ReadModelsLate when it cannot be told what is in it.
 */
export async function submitBatch(
  app: Application,
  closesAt: number,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  await debitsAsOfNow(app)
  for (const environment of ['sandbox', 'live'] as const) {
    const batch = batchOf(closesAt, environment)
    const rail = app.bankRails[environment]
    // the simulated one has nothing else to hand over
    if (rail.kind === 'simulated' && (await oldestOf(app, batch)) === null) continue
    await rail.submit({
      ...{ closesAt, context, signal, entries: entriesOf(app, batch, context) },
      refuse(legId, note) {
        const command = { type: 'Fail', note, byBank: true, at: app.clock.now() } as const
        const commandId = derivedId(context.commandId, `refuse/${legId}`)
        return recorded(app, legId, command, { ...context, commandId })
      },
    })
  }
}

/**
 * Records that a batch waits for a bank that is away, once for a time.
 * @param closesAt of the batch, as `since` epoch milliseconds.
 */
export async function recordBatchHeldUp(
  app: Application,
  { closesAt, since }: { readonly closesAt: number; readonly since: number },
  context: CommandContext,
): Promise<void> {
  const oldest =
    (await oldestOf(app, batchOf(closesAt, 'live'))) ?? (await oldestOf(app, batchOf(closesAt, 'sandbox')))
  if (oldest === null) return
  const command = { type: 'RecordHeldUp', since, at: app.clock.now() } as const
  await recorded(app, oldest, command, {
    ...context,
    commandId: derivedId(context.commandId, `held-up/${since}`),
  })
}

type Batch = ReturnType<typeof batchOf>
const batchOf = (closesAt: number, environment: Environment) =>
  ({ closesAt: isoTime(closesAt), environment, status: 'Scheduled' }) as const

async function oldestOf({ read }: Pick<Application, 'read'>, batch: Batch): Promise<string | null> {
  const [oldest] = await read.query(OF_BATCH, { ...batch, after: '0', limit: 1 })
  return oldest?.leg_id ?? null
}

async function* entriesOf(
  app: Application,
  batch: Batch,
  context: CommandContext,
): AsyncGenerator<readonly RailEntry[]> {
  const read = (page: Page) => app.read.query(OF_BATCH, { ...page, ...batch })
  for await (const legs of pages(read)) {
    await app.commands.preload(bankDebit, legs)
    const entries = await Promise.all(legs.map((legId) => entryOf(app, legId, context)))
    yield entries.filter((entry) => entry !== null)
  }
}

/** Null of a debit whose account cannot be read: the others of its batch do not wait for it. */
async function entryOf(app: Application, legId: string, context: CommandContext): Promise<RailEntry | null> {
  const debit = (await app.commands.load(bankDebit, legId)).state!
  const { amount_cents, entry_date, representments } = debit
  const { account, refusal } = await accountOf(app, debit)
  const kept = await keptAccount(app, account)
  if (kept === null) {
    const command = { type: 'LeaveOut', at: app.clock.now() } as const
    const commandId = derivedId(context.commandId, `leave-out/${legId}`)
    await recorded(app, legId, command, { ...context, commandId })
    return null
  }
  const isRetry = representments > 0
  return { legId, amountCents: amount_cents, effectiveDate: entry_date!, account: kept, isRetry, refusal }
}

/** The account as it is known now: its bank may have corrected it since the debit was created, or closed it. */
async function accountOf(
  app: Application,
  debit: BankDebit,
): Promise<{ readonly account: DebitedAccount; readonly refusal: string | null }> {
  if (debit.bank_account_id === null) return { account: await correctedAccount(app, debit), refusal: null }
  const { state } = await app.commands.load(achAccount, debit.bank_account_id)
  if (state === null) return { account: debit.account, refusal: null }
  return { account: state.account, refusal: state.status === 'disabled' ? disabledNote(state) : null }
}

async function recorded(
  { commands }: Application,
  legId: string,
  command: Parameters<typeof bankDebit.decide>[0],
  context: CommandContext,
): Promise<void> {
  const { state } = await commands.load(bankDebit, legId)
  const outcome = await commands.execute(bankDebit, legId, command, within(context, state!))
  if (isRejection(outcome)) throw new Error(outcome.message)
}

/** Waits until all debits that there are can be looked for. @throws ReadModelsLate */
export async function debitsAsOfNow({ readModels, log }: Pick<Application, 'readModels' | 'log'>) {
  if (!(await readModels.reached(['bank-debits'], await log.head()))) throw new ReadModelsLate()
}

/** The debits that a query finds, page by page. @param limit debits on a page. */
export async function* pages(
  read: (page: Page) => Promise<readonly { readonly leg_id: string; readonly seq: number | bigint }[]>,
  limit = PAGE,
): AsyncGenerator<readonly string[]> {
  for (let after = '0'; ; ) {
    const page = await read({ after, limit })
    yield page.map(({ leg_id }) => leg_id)
    if (page.length < limit) return
    after = String(page.at(-1)!.seq)
  }
}
