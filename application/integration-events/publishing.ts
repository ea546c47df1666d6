import type { CommandHandler } from '../command-handling/command-handler.ts'
import type { EventRegistry } from '../event-store.ts'
import { Follower } from '../following/follower.ts'
import { waitingEvents } from '../following/waiting-events.ts'
import { type EventLog, EventLogUnavailable, type LogPage, type StoredEvent } from '../ports/event-log.ts'
import {
  type IntegrationEvent,
  type IntegrationEventChannel,
  IntegrationEventRefused,
} from '../ports/integration-events.ts'
import type { Leases } from '../ports/leases.ts'
import { isAway } from '../ports/unavailable.ts'
import { describeError } from '../process-managers/describe-error.ts'
import type {
  ClaimedWork,
  WorkChanges,
  WorkEnd,
  WorkKey,
  WorkStore,
  WorkToStore,
} from '../process-managers/work-store.ts'
import { INTEGRATION_SOURCES, integrationEventOf } from './messages.ts'

export const INTEGRATION_EVENTS_NAME = 'integration-events'
/** Kind of work by which a parked stream waits: its key is the stream, its payload the first event not published. */
export const PARKED_STREAM = '$stream'
/** The service's clock has no say in when a parked stream is tried. */
export const ALWAYS_DUE = 0

/** Events of the log in one page: published together, then the checkpoint moves. */
const PAGE = 500
/** How often a checkpoint that moved over events of no concern is stored, in real milliseconds. */
const CHECKPOINT_MS = 1_000
/** How often parked streams are looked at, in real milliseconds: whether one is to be tried again. */
const PARKED_MS = 500
const PARKED_LEASE_MS = 10_000
/** Parked streams tried in one look, and events of one read at once. */
const PARKED_PAGE = 100
/** Tries of a parked stream before it waits for a redrive, and the pause after the first, in real milliseconds. */
const ATTEMPTS = 3
const RETRY_MS = 250
const NO_CHANGES: WorkChanges = { store: [], cancel: [] }
const SOURCES: ReadonlySet<string> = new Set(INTEGRATION_SOURCES)

export interface PublishingParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly commands: Pick<CommandHandler, 'load'>
  readonly leases: Leases
  readonly store: Pick<WorkStore, 'advance' | 'claim' | 'end'>
  readonly channel: IntegrationEventChannel
  /** Hears of every event that was published. */
  readonly published?: (type: string) => void
  /** Hears of failures; the text holds no values of events. */
  readonly report: (
    what: 'integration_events_interrupted' | 'integration_events_parked',
    fields: Readonly<Record<string, string>>,
  ) => void
}

/** Where a stream cannot be published on, and why. */
interface Stop {
  readonly at: Pick<StoredEvent, 'stream' | 'revision' | 'type' | 'eventId'>
  readonly error: unknown
}

/** Publishes from the log under one lease: another owner's epoch makes every later move of the checkpoint fail. */
export class Publishing {
  readonly #parts: PublishingParts
  readonly #follower: Follower
  /** Nobody but the owner of the checkpoint adds to them or takes from them. */
  readonly #parked: Set<string>
  /** Stored with the next move of the checkpoint. */
  #changes = NO_CHANGES
  #lookAt = performance.now()

  constructor(
    parts: PublishingParts,
    owned: {
      readonly epoch: number
      readonly from: bigint
      /** Streams that are parked. */
      readonly parked: readonly string[]
      readonly progressed: () => void
    },
  ) {
    this.#parts = parts
    this.#parked = new Set(owned.parked)
    const { epoch, from, progressed } = owned
    this.#follower = new Follower({
      ...{
        log: parts.log,
        types: INTEGRATION_SOURCES,
        pageSize: PAGE,
        from,
        checkpointMs: () => CHECKPOINT_MS,
      },
      take: (page) => this.#take(page),
      store: async (before, to) => {
        const changes = this.#changes
        this.#changes = NO_CHANGES
        await parts.store.advance(INTEGRATION_EVENTS_NAME, { position: before, epoch }, to, changes)
      },
      taken: progressed,
      between: {
        dueMs: () => (this.#parked.size === 0 ? null : this.#lookAt - performance.now()),
        run: () => this.#retry(),
      },
    })
  }

  /** Publishes until `ended` aborts. @throws what may pass. */
  run(ended: AbortSignal): Promise<void> {
    return this.#follower.run(ended)
  }

  /** Moves the checkpoint and changes what is parked, all or nothing. @throws CheckpointMoved */
  async #store(changes: WorkChanges): Promise<void> {
    this.#changes = changes
    await this.#follower.store()
  }

  async #take({ events }: LogPage): Promise<boolean> {
    const stops = await this.#publish(events.filter(({ stream }) => !this.#parked.has(stream)))
    this.#changes = { store: stops.map(parkedBy), cancel: [] }
    for (const { at, error } of stops) {
      this.#parked.add(at.stream)
      this.#parts.report('integration_events_parked', { stream: at.stream, error: describeError(error) })
    }
    return events.length > 0
  }

  /** All events of a page: those of one stream in order, different streams side by side. @returns where streams stop. */
  async #publish(events: readonly StoredEvent[]): Promise<readonly Stop[]> {
    const streams = new Map<string, StoredEvent[]>()
    for (const event of events) {
      const stream = streams.get(event.stream)
      if (stream) stream.push(event)
      else streams.set(event.stream, [event])
    }
    const outcomes = await Promise.allSettled(
      [...streams.values()].map((stream) => this.#publishStream(stream)),
    )
    const stops: Stop[] = []
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason
      if (outcome.value) stops.push(outcome.value)
    }
    return stops
  }

  /** Events of one stream in order. @returns the first that cannot be read or published. @throws what may pass. */
  async #publishStream(events: readonly StoredEvent[]): Promise<Stop | null> {
    const { registry, commands, channel, published } = this.#parts
    for (const stored of events) {
      let event: IntegrationEvent | null
      try {
        event = await integrationEventOf(registry.decode(stored), commands)
      } catch (error) {
        if (isAway(error) || error instanceof EventLogUnavailable) throw error
        return { at: stored, error }
      }
      if (!event) continue
      try {
        await channel.publish(event)
      } catch (error) {
        if (!(error instanceof IntegrationEventRefused)) throw error
        return { at: stored, error }
      }
      published?.(event.type)
    }
    return null
  }

  /** Tries parked streams that are due, each from its first waiting event up to the checkpoint. */
  async #retry(): Promise<void> {
    const { store, leases } = this.#parts
    const claims = await store.claim({
      processManagers: [INTEGRATION_EVENTS_NAME],
      ...{ owner: leases.owner, leaseMs: PARKED_LEASE_MS, limit: PARKED_PAGE },
      ...{ now: ALWAYS_DUE, holds: [] },
    })
    const inHand = new Set(claims)
    try {
      for (const claim of claims) {
        await this.#retryOne(claim)
        inHand.delete(claim)
      }
    } catch (error) {
      // what may pass is no fault of the streams: it costs them no try
      await Promise.allSettled([...inHand].map((claim) => store.end(claim, { end: 'interrupted' })))
      throw error
    }
    this.#lookAt = performance.now() + PARKED_MS
  }

  async #retryOne(claim: ClaimedWork): Promise<void> {
    const first = Number(claim.payload.revision)
    const stop = await this.#replay(claim.key, first)
    if (!stop) {
      // with the checkpoint, so that an owner that was replaced cannot free what its successor passed over
      await this.#store({ store: [], cancel: [claim] })
      this.#parked.delete(claim.key)
      return
    }
    // stored anew at its next event, it begins with its tries afresh
    if (stop.at.revision !== first) await this.#store({ store: [parkedBy(stop)], cancel: [] })
    await this.#parts.store.end(claim, endOf(claim, stop))
  }

  async #replay(stream: string, first: number): Promise<Stop | null> {
    const part = { upTo: this.#follower.seen, types: SOURCES, maxCount: PARKED_PAGE }
    for (let from = first; ; ) {
      const page = await waitingEvents(this.#parts.log, stream, { from, ...part })
      const stop = await this.#publishStream(page)
      if (stop || page.length < PARKED_PAGE) return stop
      from = page.at(-1)!.revision + 1
    }
  }
}

export function parkedStream(stream: string): WorkKey {
  return { processManager: INTEGRATION_EVENTS_NAME, kind: PARKED_STREAM, key: stream }
}

/** A parked stream as work; the event's metadata may be unreadable too, so nothing is taken from it. */
function parkedBy({ at }: Stop): WorkToStore {
  return {
    ...parkedStream(at.stream),
    payload: { revision: at.revision, type: at.type },
    dueAt: ALWAYS_DUE,
    correlationId: at.eventId,
    causationId: at.eventId,
    tenantId: null,
    environment: null,
  }
}

function endOf({ attempt }: ClaimedWork, { error }: Stop): WorkEnd {
  const why = describeError(error)
  return attempt >= ATTEMPTS ? { end: 'failed', why } : { end: 'retry', afterMs: RETRY_MS * attempt, why }
}
