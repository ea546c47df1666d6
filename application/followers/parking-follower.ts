import type { EventLog, StoredEvent } from '../ports/event-log.ts'
import type { Leases } from '../ports/leases.ts'
import { describeError } from './describe-error.ts'
import { Follower } from './follower.ts'
import { waitingEvents } from './waiting-events.ts'
import {
  type ClaimedWork,
  PARKED_STREAM,
  type WorkChanges,
  type WorkKey,
  type WorkStore,
  type WorkToStore,
} from './work-store.ts'

/** The service's clock has no say in when a parked stream is tried. */
export const ALWAYS_DUE = 0
export const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

/** How parked streams are tried again, in real milliseconds: what failed by its contents fails until somebody mends it. */
const PARKED = { tries: 3, pauseMs: 250, lookMs: 500, leaseMs: 10_000, atOnce: 100 }
/** Events of a parked stream that are replayed before what they came to is stored. */
const REPLAY_PAGE = 100

/** Where a stream stops, and why. */
export interface Stop {
  readonly at: StoredEvent
  readonly error: unknown
}

/** What events came to. */
export interface Handled {
  /** What is to be stored with the checkpoint; null when the checkpoint has time. */
  readonly changes: WorkChanges | null
  /** Streams that stop; what follows in them was left alone. */
  readonly stops: readonly Stop[]
}

/** What a {@link ParkingFollower} follows, and what it does with it. */
export interface ParkingFollowed {
  /** Its name in the work store. */
  readonly name: string
  readonly log: EventLog
  readonly leases: Leases
  readonly store: Pick<WorkStore, 'advance' | 'makeDue' | 'claim' | 'end'>
  readonly types: readonly string[]
  /** Events in a page at the most. */
  readonly pageSize: number
  /** How often a checkpoint that moved over events without consequences is stored, in real milliseconds. */
  readonly checkpointMs: number
  /** Handles events, those of one stream in order. @throws what may pass. */
  readonly handle: (events: readonly StoredEvent[]) => Promise<Handled>
  /** Hears of a stream that was parked. */
  readonly parked: (stop: Stop) => void
  /** Hears of work that was stored. */
  readonly stored?: (work: readonly WorkToStore[]) => void
  /** Hears of each page how far everything is handled. */
  readonly taken: (position: bigint) => void
}

/** A stream that waits behind an event, as a piece of work. */
export function parkedStream(processManager: string, stream: string): WorkKey {
  return { processManager, kind: PARKED_STREAM, key: stream }
}

/**
 * Follows the log under one lease and stores what events come to together with the checkpoint: another owner's epoch
 * makes every later move fail.
 *
 * An event that cannot be handled parks its stream: later events of the stream wait behind it, everything else goes on.
 * The stream is one piece of work, replayed from that event on in one pass; after a few tries it is shown as failed and
 * waits for a redrive.
 */
export class ParkingFollower {
  readonly #followed: ParkingFollowed
  readonly #follower: Follower
  /** Nobody but the owner of the checkpoint adds to them or takes from them. */
  readonly #parked: Set<string>
  /** Stored with the next move of the checkpoint. */
  #changes = NO_CHANGES
  #lookAt = performance.now()

  /** @param owned the lease's epoch, the checkpoint, and the streams that are parked. */
  constructor(
    followed: ParkingFollowed,
    owned: { readonly epoch: number; readonly from: bigint; readonly parked: readonly string[] },
  ) {
    this.#followed = followed
    this.#parked = new Set(owned.parked)
    const { name, log, types, pageSize, checkpointMs, store, stored, taken } = followed
    const { from, epoch } = owned
    this.#follower = new Follower({
      log,
      types,
      pageSize,
      from,
      checkpointMs: () => checkpointMs,
      take: ({ events }) => this.#take(events),
      store: async (position, to) => {
        const changes = this.#changes
        this.#changes = NO_CHANGES
        await store.advance(name, { position, epoch }, to, changes)
        stored?.(changes.store)
      },
      taken: ({ checkpoint }) => taken(checkpoint),
      between: {
        dueMs: () => (this.#parked.size === 0 ? null : this.#lookAt - performance.now()),
        run: () => this.#retryParked(),
      },
    })
  }

  /** Follows until `ended` aborts. @throws what may pass, and CheckpointMoved. */
  run(ended: AbortSignal): Promise<void> {
    return this.#follower.run(ended)
  }

  /** Stores the checkpoint where it moved over events without consequences. @throws CheckpointMoved */
  storeRest(): Promise<void> {
    return this.#follower.storeRest()
  }

  async #take(events: readonly StoredEvent[]): Promise<boolean> {
    const { handle, parked } = this.#followed
    const { changes, stops } = await handle(events.filter(({ stream }) => !this.#parked.has(stream)))
    if (changes === null && stops.length === 0) return false
    const { store, cancel } = changes ?? NO_CHANGES
    const waiting = stops.map(({ at }) => this.#parkedFrom(at, at.revision))
    this.#changes = { store: [...store, ...waiting], cancel }
    for (const stop of stops) {
      this.#parked.add(stop.at.stream)
      parked(stop)
    }
    return true
  }

  /** Tries parked streams that are due, each from its first waiting event up to where everything else is. */
  async #retryParked(): Promise<void> {
    const { store, leases, name } = this.#followed
    await store.makeDue(ALWAYS_DUE, leases.owner)
    const claims = await store.claim({
      owner: leases.owner,
      leaseMs: PARKED.leaseMs,
      kinds: [{ processManager: name, kind: PARKED_STREAM, slots: PARKED.atOnce }],
    })
    for (const [index, claim] of claims.entries()) {
      try {
        await this.#replay(claim)
      } catch (error) {
        // what may pass is no fault of the streams: it costs them no try
        const rest = claims.slice(index)
        await Promise.allSettled(rest.map((each) => store.end(each, { end: 'interrupted' })))
        throw error
      }
    }
    this.#lookAt = performance.now() + PARKED.lookMs
  }

  /** Replays a stream in one pass, page by page: where it goes on is stored with what a page came to. */
  async #replay(claim: ClaimedWork): Promise<void> {
    const { name, log, types, handle } = this.#followed
    const stream = claim.key
    const first = Number((claim.payload as { revision: number }).revision)
    const part = { upTo: this.#follower.seen, types: new Set(types), maxCount: REPLAY_PAGE }
    for (let from = first; ; ) {
      const events = await waitingEvents(log, stream, { from, ...part })
      const { changes, stops } = await handle(events)
      const { store, cancel } = changes ?? NO_CHANGES
      const [stop] = stops
      if (!stop && events.length < REPLAY_PAGE) {
        // with the checkpoint, so that an owner that was replaced frees no stream that its successor passed over
        await this.#save({ store, cancel: [...cancel, parkedStream(name, stream)] })
        this.#parked.delete(stream)
        return
      }
      const next = stop ? stop.at.revision : events.at(-1)!.revision + 1
      // stored anew where it goes on, it begins with its tries afresh
      if (next !== from) {
        await this.#save({ store: [...store, this.#parkedFrom(events.at(-1)!, next)], cancel })
      }
      if (stop) return this.#endTry(claim, stop)
      from = next
    }
  }

  async #save(changes: WorkChanges): Promise<void> {
    this.#changes = changes
    await this.#follower.store()
  }

  async #endTry(claim: ClaimedWork, { error }: Stop): Promise<void> {
    const why = describeError(error)
    const afterMs = PARKED.pauseMs * claim.attempt
    const isLast = claim.attempt >= PARKED.tries
    await this.#followed.store.end(claim, isLast ? { end: 'failed', why } : { end: 'retry', afterMs, why })
  }

  /** A stream that waits from a revision on; metadata may be unreadable too, so nothing is taken from there. */
  #parkedFrom({ stream, eventId }: StoredEvent, revision: number): WorkToStore {
    return {
      ...parkedStream(this.#followed.name, stream),
      payload: { revision },
      dueAt: ALWAYS_DUE,
      correlationId: eventId,
      causationId: eventId,
      tenantId: null,
      environment: null,
    }
  }
}
