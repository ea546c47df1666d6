import { bankDebit } from '../../domain/banking/debits/bank-debit.ts'
import { streamOf } from '../../domain/kernel/decider.ts'
import { employeeSync } from '../../domain/parties/employee-sync.ts'
import { paymentLink } from '../../domain/payments/links/payment-link.ts'
import { PaymentLinkCreated } from '../../domain/payments/links/payment-link-events.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import { payrollFile } from '../../domain/payroll/payroll-file.ts'
import { policy } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import type { StoredEvent } from '../ports/event-log.ts'
import type { Statement } from '../ports/read-database.ts'
import { type Parameter, statement } from '../queries/statement.ts'
import type { ReadModels } from '../queries/table.ts'
import type { Thing } from './story-streams.ts'

/**
 * How things began under a policy or an employer, in log order. There may be any number of them: the read models tell which
 * there are, each by the place of its first event in the log, and the rest of it is a story of its own.
 */

interface Wanted {
  readonly owner: string
  /** Place in the log. */
  readonly after: number
  readonly limit: number
}
interface Begun {
  readonly id: string
  readonly seq: number
}
type Begins = Statement<Wanted, Begun>

type Owner = 'employer_id' | 'policy_id'

/** How the rows of an owner are found, with the help of an index. */
interface FoundBy {
  /** The column that is the owner's id. */
  readonly is?: Owner
  /** The column that is that of the owner's policies, or of the policy's employer. */
  readonly through?: Owner
}

/** @param table has the column `seq` with the place of a thing's first event. */
function begun(
  of: 'policy' | 'employer',
  table: keyof ReadModels,
  id: string,
  { is, through }: FoundBy,
): Begins {
  return statement(`story-${table}-of-${of}`, (db, $: Parameter<Wanted>) => {
    // the tables are alike in these columns; one of them stands for all
    let rows = db
      .selectFrom(table as 'payment_sessions')
      .select([`${id} as id` as 'payment_session_id as id', 'seq'])
      .where('seq', '>', $('after'))
      .orderBy('seq')
      .limit($('limit'))
    if (is) rows = rows.where(is, '=', $('owner'))
    if (!through) return rows
    const own = db.selectFrom('policies').select(through).where(`${of}_id`, '=', $('owner'))
    return rows.where(through, 'in', own)
  })
}

interface Kind {
  readonly projection: string
  readonly begins: Begins
  /** The streams of which one is the thing's. */
  readonly streams: (id: string) => readonly string[]
}

const of = (aggregate: { readonly category: string }) => (id: string) => [streamOf(aggregate, id)]
const ofFile = (id: string) => [streamOf(payrollFile, id), streamOf(employeeSync, id)]

const UNDER: Readonly<Partial<Record<Thing['kind'], readonly Kind[]>>> = {
  policy: [
    kind(
      'payroll-files',
      ofFile,
      begun('policy', 'payroll_files', 'file_id', { is: 'policy_id', through: 'employer_id' }),
    ),
    // whose policies they are for stands in the log alone
    kind(
      'payment-links',
      of(paymentLink),
      begun('policy', 'payment_links', 'payment_link_id', { through: 'employer_id' }),
    ),
    kind(
      'payment-sessions',
      of(paymentSession),
      begun('policy', 'payment_sessions', 'payment_session_id', { is: 'policy_id' }),
    ),
    kind(
      'subscriptions',
      of(subscription),
      begun('policy', 'subscriptions', 'subscription_id', { is: 'policy_id' }),
    ),
    kind('bank-debits', of(bankDebit), begun('policy', 'bank_debits', 'leg_id', { is: 'policy_id' })),
  ],
  employer: [
    kind('policies', of(policy), begun('employer', 'policies', 'policy_id', { is: 'employer_id' })),
    kind('payroll-files', ofFile, begun('employer', 'payroll_files', 'file_id', { is: 'employer_id' })),
    kind(
      'payment-links',
      of(paymentLink),
      begun('employer', 'payment_links', 'payment_link_id', { is: 'employer_id' }),
    ),
    kind(
      'payment-sessions',
      of(paymentSession),
      begun('employer', 'payment_sessions', 'payment_session_id', { is: 'employer_id' }),
    ),
    kind(
      'subscriptions',
      of(subscription),
      begun('employer', 'subscriptions', 'subscription_id', { through: 'policy_id' }),
    ),
    kind('bank-debits', of(bankDebit), begun('employer', 'bank_debits', 'leg_id', { is: 'employer_id' })),
  ],
}

/** Whether a first event is that of something under the thing: links of other policies of its employer come along. */
export function isUnder({ kind, id }: Thing, event: StoredEvent): boolean {
  if (kind !== 'policy' || event.type !== PaymentLinkCreated.name) return true
  return (JSON.parse(event.data) as { policy_id?: unknown } | null)?.policy_id === id
}

function kind(projection: string, streams: Kind['streams'], begins: Begins): Kind {
  return { projection, streams, begins }
}

/**
 * The first events of all that began under a thing, in log order after a place.
 * @param pageSize things that are looked for at once.
 */
export async function* beginnings(
  app: Pick<Application, 'log' | 'read' | 'readModels'>,
  thing: Thing,
  from: bigint,
  pageSize: number,
): AsyncGenerator<StoredEvent, void, undefined> {
  const kinds = UNDER[thing.kind] ?? []
  if (kinds.length === 0) return
  await app.readModels.reached(
    kinds.map(({ projection }) => projection),
    await app.log.head(),
  )
  for (let after = Number(from); ; ) {
    const wanted = { owner: thing.id, after, limit: pageSize }
    const lists = await Promise.all(kinds.map(({ begins }) => app.read.query(begins, wanted)))
    const next = lists
      .flatMap((rows, index) => rows.map((row) => ({ ...row, streams: kinds[index]!.streams })))
      .sort((a, b) => a.seq - b.seq)
      .slice(0, pageSize)
    const firsts = await Promise.all(next.map(({ id, streams }) => firstOf(app, streams(id))))
    for (const first of firsts) if (first) yield first
    if (next.length < pageSize) return
    after = next.at(-1)!.seq
  }
}

async function firstOf(
  { log }: Pick<Application, 'log'>,
  streams: readonly string[],
): Promise<StoredEvent | undefined> {
  for (const stream of streams) {
    const [first] = await log.readStream(stream, { maxCount: 1 })
    if (first) return first
  }
  return undefined
}
