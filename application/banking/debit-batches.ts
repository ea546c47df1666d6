import { bankDebit } from '../../domain/banking/bank-debit.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import type { PagePart } from '../read-models/pages.ts'
import { type Parameter, statement } from '../read-models/statement.ts'

/** Debits that are looked at in one go. */
const PAGE = 500

/** What a run of the batch worker did. */
export interface BatchRun {
  readonly scheduled: number
}

const PENDING = statement(
  'pending-bank-debits',
  (db, $: Parameter<Pick<PagePart, 'limit'> & { after: string; status: 'pending' }>) =>
    db
      .selectFrom('bank_debits')
      .select(['leg_id', 'seq'])
      .where('status', '=', $('status'))
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/** Puts every debit that waits into the batch that closes next. A debit is put into one batch, whatever runs beside it. */
export async function runBatch(app: Application, context: CommandContext): Promise<BatchRun> {
  await app.readModels.reached(['bank-debits'], await app.log.head())
  let scheduled = 0
  for (let after = '0'; ; ) {
    const page = await app.read.query(PENDING, { limit: PAGE, after, status: 'pending' })
    const outcomes = await Promise.all(
      page.map(async ({ leg_id }) => {
        const { state } = await app.commands.load(bankDebit, leg_id)
        const own = {
          ...within(context, state!),
          commandId: derivedId(context.commandId, `schedule/${leg_id}`),
        }
        return app.commands.execute(bankDebit, leg_id, { type: 'Schedule', at: app.clock.now() }, own)
      }),
    )
    for (const outcome of outcomes) {
      if (isRejection(outcome)) throw new Error(outcome.message)
      scheduled += outcome.events.length
      if (outcome.position !== null) await app.readModels.tellOf(bankDebit, outcome.position)
    }
    if (page.length < PAGE) return { scheduled }
    after = String(page.at(-1)!.seq)
  }
}
