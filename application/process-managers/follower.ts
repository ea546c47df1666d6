import { setImmediate as othersTurn } from 'node:timers/promises'
import type { EventRegistry } from '../event-store.ts'
import { whileOwned } from '../ownership/while-owned.ts'
import { pagesInTime } from '../pages-in-time.ts'
import type { Clock } from '../ports/clock.ts'
import type { EventLog, StoredEvent } from '../ports/event-log.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import type { Notices } from '../ports/notices.ts'
import { describeError } from './describe-error.ts'
import { leaseOf, type ProcessManager } from './process-manager.ts'
import { parkedStream, Reactions, Wanted } from './reactions.ts'
import {
  CheckpointMoved,
  type ClaimedWork,
  PARKED_STREAM,
  type WorkChanges,
  type WorkStore,
  type WorkToStore,
} from './work-store.ts'

export interface FollowerParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly clock: Clock
  readonly store: WorkStore
  readonly leases: Leases
  readonly notices: Notices
  readonly report: (
    what: 'reaction_parked' | 'process_manager_restarted',
    fields: Readonly<Record<string, string | number>>,
  ) => void
  /** Hears of work that was stored. */
  readonly stored: (work: readonly WorkToStore[]) => void
}

/** All times are real milliseconds. */
export interface FollowerOptions {
  /** Pause before a lease that somebody else holds is tried again; doubles after failures. */
  readonly pollMs: number
  readonly longestBackoffMs: number
  /** How often checkpoints over events without consequences are stored. */
  readonly checkpointMs: number
  readonly pageSize: number
}

/** How parked streams are tried again, in real milliseconds: what failed by its contents fails until somebody mends it. */
const PARKED = { tries: 3, pauseMs: 250, lookMs: 500, leaseMs: 10_000, atOnce: 100 }
/** Events of a parked stream that are read at once. */
const REPLAY_PAGE = 100
/** Reading a page of large events takes long: whatever else the process does gets its turn this often. */
const TURN_MS = 5
const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

/**
 * Follows the log for one process manager, under a lease: what a page makes it want is stored together with the
 * checkpoint, all or nothing.
 *
 * An event that cannot be read or reacted to parks its stream: later events of the stream wait behind it, everything
 * else goes on. The stream is one piece of work, tried again from that event on in one pass; after a few tries it is
 * shown as failed and waits for a redrive.
 */
export class Follower {
  readonly #parts: FollowerParts
  readonly #manager: ProcessManager
  readonly #options: FollowerOptions
  readonly #reactions: Reactions
  /** Up to here everything is reacted to, ahead of the stored checkpoint by pages without consequences; only while owned. */
  #position: bigint | null = null

  constructor(parts: FollowerParts, manager: ProcessManager, options: FollowerOptions) {
    this.#parts = parts
    this.#manager = manager
    this.#options = options
    this.#reactions = new Reactions(manager, parts.registry, parts.clock)
  }

  /** Null while this process does not own it. */
  get position(): bigint | null {
    return this.#position
  }

  /** Follows whenever this process holds the lease; resolves when `stopping` aborts. */
  run(stopping: AbortSignal): Promise<void> {
    const { leases, log, report, store } = this.#parts
    const { name } = this.#manager
    return whileOwned({
      ...{ leases, name: leaseOf(name), stopping },
      // a dead predecessor's lease is taken at once, the first time; later owners are alive
      takeOver: log.soleWriter(),
      pauseMs: this.#options.pollMs,
      longestPauseMs: Math.max(this.#options.pollMs, this.#options.longestBackoffMs),
      run: async (lease, ended, progressed) => {
        try {
          await this.#follow(lease, ended, progressed)
        } finally {
          this.#position = null
        }
      },
      failed: async (error, lease) => {
        const why = describeError(error)
        report('process_manager_restarted', { process_manager: name, error: why })
        if (lease && !(error instanceof CheckpointMoved)) {
          await store.setProblem(name, lease.epoch, why).catch(() => undefined)
        }
      },
    })
  }

  async #follow(lease: Lease, ended: AbortSignal, progressed: () => void): Promise<void> {
    const { log, store, notices, stored } = this.#parts
    const { name } = this.#manager
    const { pageSize, checkpointMs } = this.#options
    let saved = await store.takeOver(name, lease.epoch)
    let savedAt = performance.now()
    let position = saved
    // nobody but the owner adds to them or takes from them
    const parked = new Set(await store.keysOf(name, PARKED_STREAM))
    let lookAt = performance.now()
    const save = async (to: bigint, changes: WorkChanges = NO_CHANGES): Promise<void> => {
      await store.advance(name, { position: saved, epoch: lease.epoch }, to, changes)
      saved = to
      savedAt = performance.now()
      stored(changes.store)
    }
    const patience = () => {
      const untilSaved = position === saved ? Number.POSITIVE_INFINITY : savedAt + checkpointMs
      const untilLook = parked.size === 0 ? Number.POSITIVE_INFINITY : lookAt
      const least = Math.min(untilSaved, untilLook)
      return least === Number.POSITIVE_INFINITY ? null : least - performance.now()
    }
    const pages = log.subscribe({ after: saved, types: this.#reactions.types, pageSize, signal: ended })
    for await (const page of pagesInTime(pages, patience)) {
      if (lease.lost.aborted) return
      if (page !== null) {
        const wanted = await this.#react(page.events, parked)
        if (!wanted.isEmpty) await save(page.checkpoint, wanted.changes())
        position = page.checkpoint
        this.#position = position
        notices.wake('progress')
        progressed()
      }
      if (position !== saved && performance.now() - savedAt >= checkpointMs) await save(position)
      if (parked.size > 0 && performance.now() >= lookAt) {
        await this.#retryParked(parked, position, (changes) => save(position, changes))
        lookAt = performance.now() + PARKED.lookMs
      }
    }
    if (position !== saved && !lease.lost.aborted) await save(position)
  }

  /** What a page makes it want; streams that stop at an event of it are parked. */
  async #react(events: readonly StoredEvent[], parked: Set<string>): Promise<Wanted> {
    const wanted = new Wanted()
    let turnAt = performance.now()
    for (const event of events) {
      if (performance.now() - turnAt > TURN_MS) {
        await othersTurn()
        turnAt = performance.now()
      }
      if (parked.has(event.stream)) continue
      try {
        wanted.add(...this.#reactions.to(event))
      } catch (error) {
        parked.add(event.stream)
        wanted.add(this.#reactions.parkedFrom(event))
        this.#reportParked(event, error)
      }
    }
    return wanted
  }

  /**
   * Tries the parked streams that are due, each from its first waiting event up to a position.
   * @param save stores what came out, with the checkpoint: an owner that was replaced frees no stream that its
   *   successor has passed over.
   */
  async #retryParked(
    parked: Set<string>,
    upTo: bigint,
    save: (changes: WorkChanges) => Promise<void>,
  ): Promise<void> {
    const { store, leases, clock } = this.#parts
    const { name: processManager } = this.#manager
    await store.makeDue(clock.now(), leases.owner)
    const claims = await store.claim({
      ...{ owner: leases.owner, leaseMs: PARKED.leaseMs },
      kinds: [{ processManager, kind: PARKED_STREAM, slots: PARKED.atOnce }],
    })
    for (const [index, claim] of claims.entries()) {
      try {
        const { wanted, stop } = await this.#replay(claim, upTo)
        if (!stop) wanted.add(parkedStream(processManager, claim.key))
        // stored anew at its next event, it begins with its tries afresh
        else if (stop.at.revision !== firstWaiting(claim)) wanted.add(this.#reactions.parkedFrom(stop.at))
        if (!wanted.isEmpty) await save(wanted.changes())
        if (!stop) parked.delete(claim.key)
        else await this.#endTry(claim, stop.error)
      } catch (error) {
        // what may pass is no fault of the streams: it costs them no try
        const rest = claims.slice(index)
        await Promise.allSettled(rest.map((each) => store.end(each, { end: 'interrupted' })))
        throw error
      }
    }
  }

  /** Reacts to what waits in a stream. @returns what that made it want, and the event where it stops again. */
  async #replay(
    claim: ClaimedWork,
    upTo: bigint,
  ): Promise<{ wanted: Wanted; stop: { at: StoredEvent; error: unknown } | null }> {
    const wanted = new Wanted()
    for (let from = firstWaiting(claim); ; ) {
      const page = await this.#parts.log.readStream(claim.key, { from, maxCount: REPLAY_PAGE })
      for (const event of page) {
        if (event.position > upTo) return { wanted, stop: null }
        try {
          wanted.add(...this.#reactions.to(event))
        } catch (error) {
          return { wanted, stop: { at: event, error } }
        }
      }
      if (page.length < REPLAY_PAGE) return { wanted, stop: null }
      from = page.at(-1)!.revision + 1
      await othersTurn()
    }
  }

  async #endTry(claim: ClaimedWork, error: unknown): Promise<void> {
    const why = describeError(error)
    const isLast = claim.attempt >= PARKED.tries
    const afterMs = PARKED.pauseMs * claim.attempt
    await this.#parts.store.end(claim, isLast ? { end: 'failed', why } : { end: 'retry', afterMs, why })
  }

  #reportParked({ stream, revision }: StoredEvent, error: unknown): void {
    const fields = { process_manager: this.#manager.name, stream, revision, error: describeError(error) }
    this.#parts.report('reaction_parked', fields)
  }
}

function firstWaiting({ payload }: ClaimedWork): number {
  return Number((payload as { revision: number }).revision)
}
