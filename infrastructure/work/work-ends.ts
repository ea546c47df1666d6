import type { Pool } from 'pg'
import type { ClaimedWork, WorkEnd, WorkStore } from '../../application/followers/work-store.ts'
import { Gathered } from '../gathered.ts'

/** The claim that the first four parameters name: process manager, kind, key, token. */
const IS_MINE = `process_manager = $1 AND kind = $2 AND key = $3 AND lease_token = $4 AND state = 'leased'`

/** A claim given back. */
const FREED = 'again = false, lease_owner = NULL, lease_until = NULL, lease_token = NULL'

interface Statement {
  readonly name?: string
  readonly text: string
  readonly values: readonly (string | number | null)[]
}

/** Only what was not stored again meanwhile ends so. */
const ending = (set: string) =>
  `UPDATE runtime.work SET ${FREED}, ${set} WHERE ${IS_MINE} AND NOT again RETURNING state`

/** The order in which statements on several pieces lock them, so that no two of them wait for each other. */
const IN_LOCK_ORDER = 'ORDER BY process_manager COLLATE "C", kind COLLATE "C", key COLLATE "C"'

/**
 * Claims in the order in which all statements on several of them lock them. The commit does not wait for the disk: work whose
 * end a crash of the database takes away is done once more, which it must stand anyway.
 */
const ALL_MINE = `
  WITH mine AS MATERIALIZED (
    SELECT lease_token FROM runtime.work WHERE lease_token = ANY ($1::bigint[]) AND state = 'leased'
      AND (SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL
    ${IN_LOCK_ORDER} FOR UPDATE
  )`

const ALL_DONE = `${ALL_MINE}
  DELETE FROM runtime.work AS work USING mine
  WHERE work.lease_token = mine.lease_token AND work.lease_token = ANY ($1::bigint[]) AND state = 'leased' AND NOT again
  RETURNING work.lease_token`

const ALL_LATER = `${ALL_MINE}
  UPDATE runtime.work AS work SET ${FREED}, state = 'later', due_at = given.due_at, last_error = given.error,
    attempts = CASE WHEN given.is_afresh THEN 0 ELSE attempts END,
    payload = COALESCE(given.payload, work.payload),
    concurrency_key = COALESCE(given.concurrency_key, work.concurrency_key)
  FROM unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::text[], $5::jsonb[], $6::text[])
      AS given (token, due_at, is_afresh, error, payload, concurrency_key)
    JOIN mine ON mine.lease_token = given.token
  WHERE work.lease_token = given.token AND work.lease_token = ANY ($1::bigint[]) AND state = 'leased' AND NOT again
  RETURNING given.token AS lease_token`

type Waiting = Extract<WorkEnd, { end: 'retry' | 'again' }>
type Question = { readonly claim: ClaimedWork; readonly end: WorkEnd }
type Tokens = ReadonlySet<bigint>

/** Ends claims: the ways that most work takes as one statement for all that end at about the same time. */
export class WorkEnds {
  readonly #pool: Pool
  readonly #done: Gathered<Question, Tokens>
  readonly #later: Gathered<Question & { readonly end: Waiting }, Tokens>

  constructor(pool: Pool) {
    this.#pool = pool
    this.#done = new Gathered((all) => this.#endAll('work/all-done', ALL_DONE, [tokensOf(all)]), 'ordered')
    this.#later = new Gathered(
      (all) => this.#endAll('work/all-later', ALL_LATER, laterValues(all)),
      'ordered',
    )
  }

  async end(claim: ClaimedWork, end: WorkEnd): ReturnType<WorkStore['end']> {
    const ended = await this.#end(claim, end)
    if (ended !== null) return ended
    // a statement of its own: it sees an intent that came while the first one waited for the row
    const again = await this.#pool.query({
      name: 'work/stored-again',
      text: `UPDATE runtime.work SET state = 'later', attempts = 0, ${FREED} WHERE ${IS_MINE}`,
      values: named(claim),
    })
    return again.rowCount === 1 ? 'again' : 'lost'
  }

  /** @returns null when nothing was written. */
  async #end(claim: ClaimedWork, end: WorkEnd): Promise<'ended' | 'due' | null> {
    if (end.end === 'done') return (await this.#done.ask({ claim, end })).has(claim.token) ? 'ended' : null
    if (isLater(end)) return (await this.#later.ask({ claim, end })).has(claim.token) ? 'ended' : null
    const { text, values } = STATEMENTS[end.end](end as never)
    const ended = await this.#pool.query<{ state: string }>({ text, values: [...named(claim), ...values] })
    if (ended.rowCount === 0) return null
    return ended.rows[0]?.state === 'due' ? 'due' : 'ended'
  }

  async #endAll(name: string, text: string, values: readonly unknown[]): Promise<Tokens> {
    const { rows } = await this.#pool.query<{ lease_token: string }>({ name, text, values: [...values] })
    return new Set(rows.map((row) => BigInt(row.lease_token)))
  }
}

/** Whether it waits for a time of the service's clock. A retry that does not count as a try has none. */
function isLater(end: WorkEnd): end is Waiting {
  return (end.end === 'retry' || end.end === 'again') && end.at !== undefined
}

function named({ processManager, kind, key, token }: ClaimedWork): string[] {
  return [processManager, kind, key, String(token)]
}

function tokensOf(all: readonly Question[]): string[] {
  return all.map(({ claim }) => String(claim.token))
}

function laterValues(all: readonly { readonly claim: ClaimedWork; readonly end: Waiting }[]): unknown[] {
  const ends = all.map(({ end }) => end)
  return [
    tokensOf(all),
    ends.map(({ at }) => at),
    ends.map(({ end }) => end === 'again'),
    ends.map((end) => shown(end.end === 'retry' ? end.why : null)),
    ends.map(({ changed }) => (changed ? JSON.stringify(changed.payload) : null)),
    ends.map(({ changed }) => changed?.concurrencyKey ?? null),
  ]
}

type Single = 'interrupted' | 'failed' | 'held' | 'retry' | 'again'

/** The statement of each other way to end a claim; its values follow the four that name the claim. */
const STATEMENTS: { readonly [End in Single]: (end: Extract<WorkEnd, { end: End }>) => Statement } = {
  interrupted: () => ({ text: ending(`state = 'due', attempts = attempts - 1`), values: [] }),
  failed: ({ why }) => ({ text: ending(`state = 'failed', last_error = $5`), values: [shown(why)] }),
  // clearing the hold waits for this: it finds the row held, or this finds the hold cleared
  held: ({ at }) => ({
    text: `WITH hold AS (SELECT FROM runtime.faults WHERE point = $5 AND mode = 'hold' FOR SHARE)
           ${ending(`attempts = attempts - 1, held_at = CASE WHEN EXISTS (TABLE hold) THEN $5 END,
                     state = CASE WHEN EXISTS (TABLE hold) THEN 'held' ELSE 'due' END`)}`,
    values: [at],
  }),
  retry: (end) => paused(end, end.isTry === false ? 'attempts - 1' : 'attempts', end.why),
  again: (end) => paused(end, '0', null),
}

function paused({ afterMs = 0, changed }: Waiting, attempts: string, error: string | null): Statement {
  const payload = changed === undefined ? '' : ', payload = $7::jsonb, concurrency_key = $8'
  return {
    text: ending(
      `state = 'paused', paused_until = clock_timestamp() + $5 * interval '1 millisecond',
       attempts = ${attempts}, last_error = $6${payload}`,
    ),
    values: [
      ...[afterMs, shown(error)],
      ...(changed === undefined ? [] : [JSON.stringify(changed.payload), changed.concurrencyKey]),
    ],
  }
}

/** A reason as a text can hold it. */
export function shown(why: string | null): string | null {
  return why?.replaceAll('\0', '\ufffd') ?? null
}
