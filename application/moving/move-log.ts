import { setTimeout as delay } from 'node:timers/promises'
import { HashChains } from '../hash-chains.ts'
import { LOG_START, type StoredEvent } from '../ports/event-log.ts'
import { type MovableLog, MoveInterrupted } from '../ports/movable-log.ts'
import type { LogIdentity, StoredPositions } from '../ports/stored-positions.ts'
import { Comparison } from './comparison.ts'
import { LogCursor } from './log-cursor.ts'
import { ChainBroken, type LogAccount, shareOf } from './log-proof.ts'

/** Somebody wrote to one of the logs while it was moved; the message is one clear line. */
export class WrittenMeanwhile extends Error {
  override readonly name = 'WrittenMeanwhile'
}

/** Stored positions lie behind the end of the source: it lacks what was read already; the message is one clear line. */
export class SourceTooShort extends Error {
  override readonly name = 'SourceTooShort'
}

/** `comparing` what the target holds already, `copying` what it lacks, `proving` what was copied. */
export type MovePhase = 'comparing' | 'copying' | 'proving'

export interface MoveProgress {
  readonly phase: MovePhase
  /** Events of the whole log that this phase has come to. */
  readonly events: number
  /** The share of the log that they are, 0 to 1. */
  readonly share: number
}

/** What became of a move that succeeded. Both sides were found equal, see {@link LogAccount.log_hash}. */
export interface MoveAccount {
  readonly equal: true
  readonly from: LogAccount
  readonly to: LogAccount
  /** What was found to be the same on both sides. */
  readonly proven: readonly string[]
  readonly already_there: number
  readonly copied: number
  readonly seconds: number
  readonly copied_per_second: number
  /** Null when no database was named whose positions were to be moved. */
  readonly checkpoints: {
    readonly database: string
    /** `moved` now, or `moved before`. */
    readonly outcome: 'moved' | 'moved before'
    /** Different positions that were translated. */
    readonly positions: number
  } | null
}

const PROVEN = [
  'number of events',
  'order over all streams',
  'order in every stream',
  'event ids',
  'types',
  'bytes of data and metadata',
  'hash chain of every stream',
]

/** How long a side may stay away without any progress, in milliseconds. */
const PATIENCE_MS = 60_000
const LONGEST_PAUSE_MS = 2_000

/**
 * Moves a whole log: makes sure that the target holds a beginning of it, copies the rest, proves that both are equal,
 * and only then translates the positions that are stored outside the log. Stopped anywhere, it goes on when it is
 * started again.
 * @throws LogsDiffer, ChainBroken, WrittenMeanwhile, SourceTooShort, MoveInterrupted, or what a side refuses.
 */
export async function moveLog(parts: {
  readonly source: MovableLog
  readonly target: MovableLog
  /** What follows the source and shall follow the target. */
  readonly positions: StoredPositions | null
  readonly report: (progress: MoveProgress) => void
  readonly signal: AbortSignal
  readonly patienceMs?: number
}): Promise<MoveAccount> {
  const { source, target, positions, signal } = parts
  const began = performance.now()
  const head = await source.head()
  const follows = positions
    ? await positions.follows(await identityOf(source), await identityOf(target))
    : null
  const wanted = positions && follows !== 'target' ? await positions.read() : new BigInt64Array(0)
  if (follows === 'source' && (wanted.at(-1) ?? LOG_START) > head) {
    throw new SourceTooShort(
      `${source.name} ends at position ${head}, and ${positions?.name} has read it up to ${wanted.at(-1)}: ` +
        'restore both from backups that belong together',
    )
  }
  const comparison = new Comparison(source, target, wanted)
  const { proof } = comparison
  const tell = (phase: MovePhase, events: number, position: bigint) =>
    parts.report({ phase, events, share: shareOf(position, head) })
  const compare = (phase: MovePhase) =>
    comparison.run(() => tell(phase, proof.events, comparison.sourcePosition), signal)

  let alreadyThere: number | null = null
  let progressAt = performance.now()
  let copyingMs = 0
  for (let attempt = 0; ; attempt += 1) {
    const before = proof.events
    try {
      await compare(alreadyThere === null ? 'comparing' : 'proving')
      alreadyThere ??= proof.events
      const copyingSince = performance.now()
      await copyRest(source, target, comparison.sourcePosition, proof.events, signal, (events, position) =>
        tell('copying', events, position),
      )
      copyingMs += performance.now() - copyingSince
      await compare('proving')
      break
    } catch (error) {
      if (!(error instanceof MoveInterrupted)) throw error
      if (proof.events > before) {
        progressAt = performance.now()
        attempt = 0
      } else if (performance.now() - progressAt > (parts.patienceMs ?? PATIENCE_MS)) throw error
      await delay(Math.min(100 * 2 ** attempt, LONGEST_PAUSE_MS), undefined, { signal })
    }
  }
  for (const [log, seen] of [
    [source, comparison.sourcePosition],
    [target, proof.position],
  ] as const) {
    if ((await log.head()) !== seen) {
      throw new WrittenMeanwhile(
        `${log.name} was written to meanwhile: stop every service on it, then start this again`,
      )
    }
  }
  const translated = comparison.finish()
  const movedBefore =
    follows === 'target' || (follows === 'either' && comparison.exact.target > comparison.exact.source)
  if (positions && !movedBefore) await positions.replace(wanted, translated, await identityOf(target))
  const account = proof.account()
  const copied = account.events - alreadyThere
  return {
    equal: true,
    from: { ...account, log: source.name, head: String(comparison.sourcePosition) },
    to: account,
    proven: PROVEN,
    already_there: alreadyThere,
    copied,
    seconds: Math.round(performance.now() - began) / 1000,
    copied_per_second: copied === 0 ? 0 : Math.round((copied * 1000) / Math.max(1, copyingMs)),
    checkpoints: positions && {
      database: positions.name,
      outcome: movedBefore ? 'moved before' : 'moved',
      positions: movedBefore ? 0 : wanted.length,
    },
  }
}

/** Writes what follows a position of the source to the end of the target. */
async function copyRest(
  source: MovableLog,
  target: MovableLog,
  after: bigint,
  eventsBefore: number,
  signal: AbortSignal,
  report: (events: number, position: bigint) => void,
): Promise<void> {
  const cursor = new LogCursor(source, after)
  // what is broken must not be handed on
  const chains = new HashChains((stream, revision) => source.eventAt(stream, revision))
  let events = eventsBefore
  for (let ready = await cursor.ready(); ready > 0; ready = await cursor.ready()) {
    signal.throwIfAborted()
    const page: StoredEvent[] = []
    for (let n = 0; n < ready; n += 1) {
      const event = cursor.next()
      const problem = await chains.check(event)
      if (problem) throw new ChainBroken(source.name, event, problem)
      page.push(event)
    }
    await target.write(page)
    events += page.length
    report(events, page.at(-1)!.position)
  }
}

async function identityOf(log: MovableLog): Promise<LogIdentity> {
  const [first] = (await log.readPage({ after: LOG_START, maxCount: 1 })).events
  return { firstEventId: first?.eventId ?? null, firstPosition: first?.position ?? null }
}
