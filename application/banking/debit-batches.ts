import { bankDebit } from '../../domain/banking/bank-debit.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import type { RailEntry } from '../ports/bank-rail.ts'
import { ReadModelsLate } from '../ports/read-models.ts'
import { type Parameter, statement } from '../read-models/statement.ts'
import { keptAccount } from './payer-accounts.ts'

/** Debits that are looked at in one go. */
const PAGE = 500

/** What a run of the batch worker did. */
export interface BatchRun {
  readonly scheduled: number
}

/** A page of debits in the order of their creation. */
interface Page {
  /** Position of the debit before; of the first page 0. */
  readonly after: string
  readonly limit: number
}

const PENDING = statement('pending-bank-debits', (db, $: Parameter<Page & { status: 'pending' }>) =>
  db
    .selectFrom('bank_debits')
    .select(['leg_id', 'seq'])
    .where('status', '=', $('status'))
    .where('seq', '>', $('after') as never)
    .orderBy('seq')
    .limit($('limit')),
)
const OF_BATCH = statement(
  'bank-debits-of-batch',
  (db, $: Parameter<Page & { closesAt: string; returned: 'returned' }>) =>
    db
      .selectFrom('bank_debits')
      .select(['leg_id', 'seq'])
      .where('batch_closes_at', '=', $('closesAt'))
      .where('status', '<>', $('returned'))
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/**
 * Puts every debit that waits into the batch that closes next. A debit is put into one batch, whatever runs beside it.
 * @throws ReadModelsLate when it cannot be told which debits wait.
 */
export async function runBatch(app: Application, context: CommandContext): Promise<BatchRun> {
  await debitsAsOfNow(app)
  let scheduled = 0
  let last: bigint | null = null
  const read = (page: Page) => app.read.query(PENDING, { ...page, status: 'pending' })
  for await (const legs of pages(read)) {
    const outcomes = await Promise.all(legs.map((legId) => schedule(app, legId, context)))
    for (const { events, position } of outcomes) {
      scheduled += events.length
      if (position !== null && (last === null || position > last)) last = position
    }
  }
  if (last !== null) await app.readModels.tellOf(bankDebit, last)
  return { scheduled }
}

async function schedule({ commands, clock }: Application, legId: string, context: CommandContext) {
  const { state } = await commands.load(bankDebit, legId)
  const commandId = derivedId(context.commandId, `schedule/${legId}`)
  const command = { type: 'Schedule', at: clock.now() } as const
  const outcome = await commands.execute(bankDebit, legId, command, { ...within(context, state!), commandId })
  if (isRejection(outcome)) throw new Error(outcome.message)
  return outcome
}

/**
 * Hands the batch of a close to the bank.
 * @param closesAt epoch milliseconds.
 * @throws ProviderUnavailable, ProviderRefused; ReadModelsLate when it cannot be told what is in it.
 */
export async function submitBatch(app: Application, closesAt: number): Promise<void> {
  await debitsAsOfNow(app)
  await app.bankRail.submit({ closesAt, entries: entriesOf(app, closesAt) })
}

async function* entriesOf(app: Application, closesAt: number): AsyncGenerator<readonly RailEntry[]> {
  const batch = { closesAt: isoTime(closesAt), returned: 'returned' } as const
  const read = (page: Page) => app.read.query(OF_BATCH, { ...page, ...batch })
  for await (const legs of pages(read)) yield await Promise.all(legs.map((legId) => entryOf(app, legId)))
}

async function entryOf(app: Application, legId: string): Promise<RailEntry> {
  const { amount_cents, effective_date, account } = (await app.commands.load(bankDebit, legId)).state!
  const kept = await keptAccount(app, account)
  if (kept === null) throw new Error('The account of a debit cannot be read')
  return { legId, amountCents: amount_cents, effectiveDate: effective_date!, account: kept }
}

/** Waits until all debits that there are can be looked for. @throws ReadModelsLate */
export async function debitsAsOfNow({ readModels, log }: Pick<Application, 'readModels' | 'log'>) {
  if (!(await readModels.reached(['bank-debits'], await log.head()))) throw new ReadModelsLate()
}

async function* pages(
  read: (page: Page) => Promise<readonly { readonly leg_id: string; readonly seq: number | bigint }[]>,
): AsyncGenerator<readonly string[]> {
  for (let after = '0'; ; ) {
    const page = await read({ after, limit: PAGE })
    yield page.map(({ leg_id }) => leg_id)
    if (page.length < PAGE) return
    after = String(page.at(-1)!.seq)
  }
}
