import type { CommandHandler } from '../command-handling/command-handler.ts'
import type { EventRegistry } from '../event-registry.ts'
import { whileOwned } from '../ownership/while-owned.ts'
import { type EventLog, EventLogUnavailable, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import {
  type IntegrationEvent,
  type IntegrationEventChannel,
  IntegrationEventRefused,
} from '../ports/integration-events.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import { isAway } from '../ports/unavailable.ts'
import { describeError } from '../process-managers/describe-error.ts'
import {
  ALWAYS_DUE,
  type Handled,
  NO_CHANGES,
  ParkingFollower,
  parkedStream,
  type Stop,
} from '../process-managers/parking-follower.ts'
import { leaseOf } from '../process-managers/process-manager.ts'
import { CheckpointMoved, PARKED_STREAM, type WorkStore } from '../process-managers/work-store.ts'
import { INTEGRATION_SOURCES, integrationEventOf } from './messages.ts'

export const INTEGRATION_EVENTS_NAME = 'integration-events'

/** Events of the log in one page: published together, then the checkpoint moves. */
const PAGE = 500
/** How often a checkpoint that moved over events of no concern is stored, in real milliseconds. */
const CHECKPOINT_MS = 1_000
const RETRY_MS = { first: 250, most: 5_000 }

export interface PublisherParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly commands: Pick<CommandHandler, 'load'>
  readonly leases: Leases
  readonly store: Pick<
    WorkStore,
    'takeOver' | 'advance' | 'makeDue' | 'setProblem' | 'checkpoints' | 'claim' | 'end' | 'keysOf' | 'counts'
  >
  readonly channel: IntegrationEventChannel
  /** Hears of every event that was published. */
  readonly published?: (type: string) => void
  /** Hears of failures; the text holds no values of events. */
  readonly report: (
    what: 'integration_events_interrupted' | 'integration_events_parked',
    fields: Readonly<Record<string, string>>,
  ) => void
}

/** How far publishing is. */
interface PublisherStatus {
  /** `idle`: no process publishes; `problem`: see there. */
  readonly state: 'active' | 'idle' | 'problem'
  readonly position: bigint
  readonly problem: string | null
  /** Streams that wait behind an event that cannot be published. */
  readonly parkedStreams: number
}

/**
 * Publishes integration events from the log, in one process at a time, under a lease. The checkpoint
 * is a process manager's: no rebuild of a read model publishes anything again. It moves when a page
 * is published, so that a crash repeats events under their ids and loses none; while the channel is
 * away it stands. A channel that was made anew is filled from the start of the log.
 *
 * Events of one stream are published in order, one after another. An event that cannot be read or published
 * parks its stream: later events of it wait, all others go on. The parked stream is a piece of work that is tried
 * again a few times and then shown as failed; a redrive publishes from its first waiting event on, in one pass.
 */
export class IntegrationPublisher {
  readonly #parts: PublisherParts
  readonly #stopping = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(parts: PublisherParts) {
    this.#parts = parts
  }

  start(): void {
    const { leases, channel, store, log, report } = this.#parts
    const stopping = this.#stopping.signal
    this.#running = whileOwned({
      ...{ leases, name: leaseOf(INTEGRATION_EVENTS_NAME), takeOver: log.isExclusive },
      ...{ pauseMs: RETRY_MS.first, longestPauseMs: RETRY_MS.most, stopping },
      // the lease is for a process that can publish
      mayOwn: async () => {
        await channel.available(stopping)
        return true
      },
      run: (lease, ended, progressed) => this.#follow(lease, ended, progressed),
      failed: async (error, lease, failures) => {
        const why = describeError(error)
        if (failures === 1) report('integration_events_interrupted', { error: why })
        if (lease && !(error instanceof CheckpointMoved)) {
          await store.setProblem(INTEGRATION_EVENTS_NAME, lease.epoch, why).catch(() => undefined)
        }
      },
    })
  }

  /** Finishes the page under way and gives the lease back. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async status(): Promise<PublisherStatus> {
    const { store, leases } = this.#parts
    const lease = leaseOf(INTEGRATION_EVENTS_NAME)
    const [checkpoints, parked, holders] = await Promise.all([
      store.checkpoints([INTEGRATION_EVENTS_NAME]),
      store.keysOf(INTEGRATION_EVENTS_NAME, PARKED_STREAM),
      leases.holders([lease]),
    ])
    const { position = LOG_START, problem = null } = checkpoints.get(INTEGRATION_EVENTS_NAME) ?? {}
    const state = problem !== null ? 'problem' : holders.has(lease) ? 'active' : 'idle'
    return { state, position, problem, parkedStreams: parked.length }
  }

  /**
   * Whether nothing is left to be published up to a position, by whichever process does it, parked streams that are
   * being tried again included. What cannot be published now, because the channel is away or an event cannot be read,
   * is not counted.
   */
  async hasPublished(position: bigint): Promise<boolean> {
    const { channel, log, store } = this.#parts
    if (!channel.isAvailable()) return true
    const status = await this.status()
    if (status.state === 'problem') return true
    const processManagers = [INTEGRATION_EVENTS_NAME]
    const { due, leased } = await store.counts({ now: ALWAYS_DUE, processManagers })
    if (due + leased > 0) return false
    if (status.position >= position) return true
    // the checkpoint rests a while on events of no concern
    for (let after = status.position; after < position; ) {
      const page = await log.readAll({ after, maxCount: 1, types: INTEGRATION_SOURCES })
      if (page.events.length > 0) return page.events[0]!.position > position
      if (page.atHead) break
      after = page.checkpoint
    }
    return true
  }

  async #follow({ epoch }: Lease, ended: AbortSignal, progressed: () => void): Promise<void> {
    const { store, channel, log, leases, report } = this.#parts
    const name = INTEGRATION_EVENTS_NAME
    const lost = new AbortController()
    // when it is back, it is looked at anew
    const stopHearing = channel.onLost(() => lost.abort())
    try {
      let from = await store.takeOver(name, epoch)
      let parked = await store.keysOf(name, PARKED_STREAM)
      if (!(await channel.exists())) {
        // before the channel is made: a crash in between must not lose what an old one held. What stood before the
        // first waiting events is to be published again, too
        const cancel = parked.map((stream) => parkedStream(name, stream))
        await store.advance(name, { position: from, epoch }, LOG_START, { store: [], cancel })
        from = LOG_START
        parked = []
        await channel.create()
      }
      const follower = new ParkingFollower(
        {
          ...{
            name,
            log,
            leases,
            store,
            types: INTEGRATION_SOURCES,
            pageSize: PAGE,
            checkpointMs: CHECKPOINT_MS,
          },
          handle: (events) => this.#publish(events),
          parked: ({ at: { stream }, error }) =>
            report('integration_events_parked', { stream, error: describeError(error) }),
          taken: progressed,
        },
        { epoch, from, parked },
      )
      await follower.run(AbortSignal.any([ended, lost.signal]))
    } finally {
      stopHearing()
    }
  }

  /** Publishes events: those of one stream in order, different streams side by side. @throws what may pass. */
  async #publish(events: readonly StoredEvent[]): Promise<Handled> {
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
    return { changes: events.length > 0 ? NO_CHANGES : null, stops }
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
}
