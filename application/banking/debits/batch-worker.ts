import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { DebitSource } from '../../../domain/banking/debits/bank-debit-events.ts'
import { type BankDebit, GATED_SOURCES, isGated } from '../../../domain/banking/debits/bank-debit-state.ts'
import { type GateFacts, stopOf } from '../../../domain/banking/debits/debit-gates.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { within } from '../../commands/verbs.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type PageBySeq, pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { gateInquiry } from './gate-facts.ts'

/** Debits that are looked at in one go. */
const PAGE = 500

/** What a run made of debits: how many came to which status. */
export interface BatchRun {
  readonly scheduled: number
  readonly failed: number
  readonly legacy_collected: number
  readonly cancelled: number
  readonly quarantined: number
  /** Left as they were, since they or their policies cannot be read: the next run looks at them again. */
  readonly unreadable: number
}
type Outcome = keyof BatchRun

const PENDING = statement('pending-bank-debits', (db, $: Parameter<PageBySeq & { status: 'pending' }>) =>
  db
    .selectFrom('bank_debits')
    .select(['leg_id', 'seq'])
    .where('status', '=', $('status'))
    .where('seq', '>', $('after') as never)
    .orderBy('seq')
    .limit($('limit')),
)
interface OfBatch extends PageBySeq {
  readonly closesAt: string
  readonly status: 'Scheduled'
  readonly sources: readonly DebitSource[]
}
const IN_BATCH = statement('gated-bank-debits-of-batch', (db, $: Parameter<OfBatch>) =>
  db
    .selectFrom('bank_debits')
    .select(['leg_id', 'seq'])
    .where('batch_closes_at', '=', $('closesAt'))
    .where('status', '=', $('status'))
    .where('source', '=', ({ fn }) => fn.any($('sources')))
    .where('seq', '>', $('after') as never)
    .orderBy('seq')
    .limit($('limit')),
)

/**
 * Looks at every debit that waits: a gate stops it, or it goes into the batch that it is for. A debit is put into one
 * batch, whatever runs beside it.
 * @param context its command id tells runs apart: each attempt at one has the same.
 * @throws ReadModelsLate when it cannot be told which debits wait.
 */
export async function runBatch(app: Application, context: CommandContext): Promise<BatchRun> {
  const read = (page: PageBySeq) => app.read.query(PENDING, { ...page, status: 'pending' })
  return judgeAll(app, 'pending', read, context)
}

/**
 * Looks once more at the debits of a batch that has closed, before the bank is handed any: some were put into it long ago.
 * What cannot be read stays in it: no gate stopped it then.
 * @param closesAt epoch milliseconds.
 * @throws ReadModelsLate when it cannot be told what is in it.
 */
export async function gateBatch(app: Application, closesAt: number, context: CommandContext): Promise<void> {
  const ofBatch = { closesAt: isoTime(closesAt), status: 'Scheduled', sources: GATED_SOURCES } as const
  const read = (page: PageBySeq) => app.read.query(IN_BATCH, { ...page, ...ofBatch })
  await judgeAll(app, 'Scheduled', read, context)
}

async function judgeAll(
  app: Application,
  status: 'pending' | 'Scheduled',
  read: (page: PageBySeq) => Promise<readonly { readonly leg_id: string; readonly seq: number }[]>,
  context: CommandContext,
): Promise<BatchRun> {
  await untilCurrent(app, 'bank-debits')
  const inquire = gateInquiry(app, runIdOf(context))
  const run = { scheduled: 0, failed: 0, legacy_collected: 0, cancelled: 0, quarantined: 0, unreadable: 0 }
  let last: bigint | null = null
  const record = async (debits: readonly BankDebit[], facts: ReadonlyMap<BankDebit, GateFacts>) => {
    const judged = await Promise.all(debits.map((debit) => judge(app, debit, facts.get(debit), context)))
    for (const { outcome, position } of judged) {
      if (outcome !== null) run[outcome] += 1
      if (position !== null && (last === null || position > last)) last = position
    }
  }
  let recorded = Promise.resolve()
  for await (const page of pagesBySeq(PAGE, read)) {
    const debitIds = page.map(({ leg_id }) => leg_id)
    // while the page before is recorded
    const loaded = await app.commands.loadReadable(bankDebit, debitIds)
    const debits = loaded.filter((debit) => debit !== null)
    run.unreadable += debitIds.length - debits.length
    const waiting = debits.filter((debit) => debit.status === status)
    const facts = await inquire(waiting.filter(isGated))
    await recorded
    recorded = record(waiting, facts)
    // it is awaited with the next page, which may fail before
    recorded.catch(() => undefined)
  }
  await recorded
  if (last !== null) await app.readModels.awaitProjections(bankDebit, last)
  return run
}

function runIdOf({ commandId }: CommandContext): string {
  return derivedId(commandId, 'batch-run')
}

interface Judged {
  /** Null where nothing was to be done, or another process did it. */
  readonly outcome: Outcome | null
  readonly position: bigint | null
}

/** @param facts absent where they cannot be read. */
async function judge(
  { commands, clock }: Application,
  debit: BankDebit,
  facts: GateFacts | undefined,
  context: CommandContext,
): Promise<Judged> {
  if (isGated(debit) && facts === undefined) return { outcome: 'unreadable', position: null }
  const stop = facts === undefined ? null : stopOf(debit, facts)
  if (stop === null && debit.status === 'Scheduled') return { outcome: null, position: null }
  const at = clock.now()
  const runId = runIdOf(context)
  const command =
    stop === null ? ({ type: 'Schedule', runId, at } as const) : ({ type: 'Gate', stop, runId, at } as const)
  const outcome = orThrow(await commands.execute(bankDebit, debit.leg_id, command, within(context, debit)))
  const [event] = outcome.events
  const { position } = outcome
  if (event?.type === 'BankDebitGated') return { outcome: event.data.status, position }
  return { outcome: event ? 'scheduled' : null, position }
}
