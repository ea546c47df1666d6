import { HashChains } from '../../../application/audit/chain-verification.ts'
import { backOff } from '../../../application/followers/backoff.ts'
import { LOG_START, type StoredEvent } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveInterrupted, MoveRefused } from '../../../application/ports/movable-log.ts'
import type { LogIdentity, Moved, MovedDatabase } from '../../../application/ports/moved-database.ts'
import { streamOf } from '../../../domain/kernel/decider.ts'
import {
  INSTALLATION_ID,
  installation,
  KeyCheckValueRecorded,
} from '../../../domain/operations/installation.ts'
import { Comparison } from './comparison.ts'
import { LogCursor } from './log-cursor.ts'
import { chainBroken, type LogAccount, refuseCut, shareOf } from './log-proof.ts'

/** `comparing` what the target holds already, `copying` what it lacks, `proving` what was copied. */
export type MovePhase = 'comparing' | 'copying' | 'proving'

interface MoveProgress {
  readonly phase: MovePhase
  /** Events of the whole log that this phase has come to. */
  readonly events: number
  /** The share of the log that they are, 0 to 1. */
  readonly share: number
}

/** What became of a copy that succeeded. Both logs were found equal, see {@link LogAccount.log_hash}. */
export interface MoveAccount {
  readonly logs_equal: true
  /** Whether a service on the target answers what it answered on the source: null when the log alone was copied. */
  readonly equal: true | null
  readonly from: LogAccount
  readonly to: LogAccount
  /** What was found to be the same on both sides. */
  readonly proven: readonly string[]
  readonly already_there: number
  readonly copied: number
  readonly seconds: number
  readonly copied_per_second: number
  /** Null when the log alone was copied. */
  readonly database: {
    readonly from: string
    readonly to: string
    /** `moved` now, or `moved before`: nothing was left to do. */
    readonly outcome: Moved['outcome']
    /** Different checkpoints that were translated. */
    readonly checkpoints: number
    /** Rows by what they are; null when they stay where they are. */
    readonly carried: Moved['carried']
  } | null
  readonly not_carried: readonly string[]
}

/** What no move carries, and where it comes from at the target. */
const NOT_CARRIED = [
  'read models and parked streams: the next start builds them anew',
  'master key, operator token and other settings: the target has its own',
]
const NOT_CARRIED_WITH_LOG = [
  'keys of personal data, secrets and the root of fingerprints: without them no service starts on the copy',
  'work, checkpoints and last uses of credentials',
  ...NOT_CARRIED,
]

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
 * and only then moves what is stored outside the log. Stopped anywhere, it goes on when it is
 * started again.
 * @throws MoveRefused, MoveInterrupted, or what a side refuses.
 */
export async function moveLog(parts: {
  readonly source: MovableLog
  readonly target: MovableLog
  /** What belongs to the source and shall belong to the target; null to copy the log alone. */
  readonly database: MovedDatabase | null
  readonly report: (progress: MoveProgress) => void
  readonly signal: AbortSignal
}): Promise<MoveAccount> {
  const { source, target, database, signal } = parts
  const began = performance.now()
  const head = await source.head()
  const follows = database
    ? await database.follows(
        await identityOf(source),
        await identityOf(target),
        await keyCheckValueOf(source),
      )
    : null
  const wanted = database ? await database.positions() : []
  if (follows === 'source' && (wanted.at(-1) ?? LOG_START) > head) {
    throw new MoveRefused(
      `${source.name} ends at position ${head}, and ${database?.from} has read it up to ${wanted.at(-1)}: ` +
        'restore both from backups that belong together',
    )
  }
  for (const log of [source, target]) await refuseCut(log)
  const comparison = new Comparison(source, target, wanted)
  const { proof } = comparison
  const reportProgress = (phase: MovePhase, events: number, position: bigint) =>
    parts.report({ phase, events, share: shareOf(position, head) })
  const compare = (phase: MovePhase) =>
    comparison.run(() => reportProgress(phase, proof.events, comparison.sourcePosition), signal)

  let alreadyThere: number | null = null
  let progressAt = performance.now()
  let copyingMs = 0
  for (let failures = 1; ; failures += 1) {
    const before = proof.events
    try {
      await compare(alreadyThere === null ? 'comparing' : 'proving')
      alreadyThere ??= proof.events
      const copyingSince = performance.now()
      await copyRest(source, target, comparison.sourcePosition, proof.events, signal, (events, position) =>
        reportProgress('copying', events, position),
      )
      copyingMs += performance.now() - copyingSince
      await compare('proving')
      break
    } catch (error) {
      if (!(error instanceof MoveInterrupted)) throw error
      if (proof.events > before) {
        progressAt = performance.now()
        failures = 1
      } else if (performance.now() - progressAt > PATIENCE_MS) throw error
      await backOff(failures, { firstMs: 200, mostMs: LONGEST_PAUSE_MS }, signal)
      signal.throwIfAborted()
    }
  }
  for (const [log, seen] of [
    [source, comparison.sourcePosition],
    [target, proof.position],
  ] as const) {
    if ((await log.head()) !== seen) {
      throw new MoveRefused(
        `${log.name} was written to meanwhile: stop every service on it, then start this again`,
      )
    }
  }
  const isTranslated =
    follows === 'target' || (follows === 'either' && comparison.exact.target > comparison.exact.source)
  const isDone = isTranslated && database?.from === database?.to
  const moved: Moved =
    database && !isDone
      ? await database.move(isTranslated ? new Map() : comparison.translated(), await identityOf(target))
      : { outcome: 'moved before', carried: null }
  const account = proof.account()
  const copied = account.events - alreadyThere
  return {
    logs_equal: true,
    equal: database ? true : null,
    from: { ...account, log: source.name, head: String(comparison.sourcePosition) },
    to: account,
    proven: PROVEN,
    already_there: alreadyThere,
    copied,
    seconds: Math.round(performance.now() - began) / 1000,
    copied_per_second: copied === 0 ? 0 : Math.round((copied * 1000) / Math.max(1, copyingMs)),
    database: database && {
      from: database.from,
      to: database.to,
      ...moved,
      checkpoints: isTranslated || moved.outcome === 'moved before' ? 0 : wanted.length,
    },
    not_carried: database ? NOT_CARRIED : NOT_CARRIED_WITH_LOG,
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
  const chains = new HashChains((places) => source.eventsAt(places))
  let events = eventsBefore
  for (let ready = await cursor.ready(); ready.length > 0; ready = await cursor.ready()) {
    signal.throwIfAborted()
    await chains.prepare(ready)
    const page: StoredEvent[] = []
    for (let n = 0; n < ready.length; n += 1) {
      const event = cursor.next()
      const problem = chains.check(event)
      if (problem) throw chainBroken(source.name, event, problem)
      page.push(event)
    }
    await target.write(page)
    events += page.length
    report(events, page.at(-1)!.position)
  }
}

async function identityOf(log: MovableLog): Promise<LogIdentity | null> {
  const [first] = (await log.readPage({ after: LOG_START, maxCount: 1 })).events
  return first ? { firstEventId: first.eventId, firstPosition: first.position } : null
}

/** What the log says of the keys that it was written with; null when it was written by an earlier release alone. */
async function keyCheckValueOf(log: MovableLog): Promise<string | null> {
  const [event] = await log.eventsAt([{ stream: streamOf(installation, INSTALLATION_ID), revision: 0 }])
  if (event?.type !== KeyCheckValueRecorded.name) return null
  return KeyCheckValueRecorded.schema.parse(JSON.parse(event.data)).key_check_value
}
