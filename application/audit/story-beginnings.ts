import { bankDebit } from '../../domain/banking/debits/bank-debit.ts'
import { streamOf } from '../../domain/kernel/decider.ts'
import { employeeSync } from '../../domain/parties/employee-sync.ts'
import { paymentLink } from '../../domain/payments/links/payment-link.ts'
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

/** @param table has the column `seq` with the place of a thing's first event. */
function begun(table: keyof ReadModels, id: string, owner: 'employer_id' | 'policy_id'): Begins {
  // the tables are alike in these columns; one of them stands for all
  return statement(`story-${table}-of-${owner}`, (db, $: Parameter<Wanted>) =>
    db
      .selectFrom(table as 'payment_sessions')
      .select([`${id} as id` as 'payment_session_id as id', 'seq'])
      .where(owner, '=', $('owner'))
      .where('seq', '>', $('after'))
      .orderBy('seq')
      .limit($('limit')),
  )
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
    kind('payroll-files', begun('payroll_files', 'file_id', 'policy_id'), ofFile),
    kind(
      'payment-sessions',
      begun('payment_sessions', 'payment_session_id', 'policy_id'),
      of(paymentSession),
    ),
    kind('subscriptions', begun('subscriptions', 'subscription_id', 'policy_id'), of(subscription)),
    kind('bank-debits', begun('bank_debits', 'leg_id', 'policy_id'), of(bankDebit)),
  ],
  employer: [
    kind('policies', begun('policies', 'policy_id', 'employer_id'), of(policy)),
    kind('payroll-files', begun('payroll_files', 'file_id', 'employer_id'), ofFile),
    kind('payment-links', begun('payment_links', 'payment_link_id', 'employer_id'), of(paymentLink)),
    kind(
      'payment-sessions',
      begun('payment_sessions', 'payment_session_id', 'employer_id'),
      of(paymentSession),
    ),
    kind('subscriptions', begun('subscriptions', 'subscription_id', 'employer_id'), of(subscription)),
    kind('bank-debits', begun('bank_debits', 'leg_id', 'employer_id'), of(bankDebit)),
  ],
}

function kind(projection: string, begins: Begins, streams: Kind['streams']): Kind {
  return { projection, begins, streams }
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
