import type { CommandHandler } from '../commands/command-handler.ts'
import type { EventRegistry } from '../commands/event-registry.ts'
import { groupBy } from '../commands/group-by.ts'
import { type EventLog, EventLogUnavailable, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import {
  type IntegrationEvent,
  type IntegrationEventChannel,
  IntegrationEventRefused,
} from '../ports/integration-events.ts'
import type { Leases } from '../ports/leases.ts'
import { traced } from '../ports/tracing.ts'
import { isAway } from '../ports/unavailable.ts'
import type { Stop } from './consumer.ts'
import { describeError } from './describe-error.ts'
import { INTEGRATION_SOURCES, integrationEventOf } from './integration-messages.ts'
import {
  ALWAYS_DUE,
  type Beginning,
  deadLetteredStream,
  type FollowerStatus,
  type Handled,
  NO_CHANGES,
  OwnedFollower,
  statusOfFollowers,
} from './owned-follower.ts'
import { DEAD_LETTERED_STREAM, type KindOfWork, type WorkStore } from './work-store.ts'

export const INTEGRATION_EVENTS_NAME = 'integration-events'
/** The only work of the publisher: streams that wait behind an event that cannot be published. */
export const UNPUBLISHED_STREAM: KindOfWork = {
  processManager: INTEGRATION_EVENTS_NAME,
  kind: DEAD_LETTERED_STREAM,
}

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

/**
 * Publishes integration events from the log, in one process at a time, under a lease. The checkpoint
 * is a process manager's: no rebuild of a read model publishes anything again. It moves when a page
 * is published, so that a crash repeats events under their ids and loses none; while the channel is
 * away it stands. A channel that was made anew is filled from the start of the log.
 *
 * Events of one stream are published in order, one after another. An event that cannot be read or published
 * dead-letters its stream: later events of it wait, all others go on. The dead-lettered stream is a piece of work that
 * is tried again a few times and then shown as failed; a redrive publishes from its first waiting event on, in one
 * pass.
 */
export class IntegrationPublisher {
  readonly #parts: PublisherParts
  readonly #follower: OwnedFollower
  readonly #stopping = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(parts: PublisherParts) {
    this.#parts = parts
    const { log, leases, store, channel, report } = parts
    this.#follower = new OwnedFollower({
      name: INTEGRATION_EVENTS_NAME,
      log,
      leases,
      store,
      types: INTEGRATION_SOURCES,
      pageSize: PAGE,
      checkpointMs: CHECKPOINT_MS,
      pauseMs: RETRY_MS.first,
      longestPauseMs: RETRY_MS.most,
      // the lease is for a process that can publish
      mayOwn: async () => {
        await channel.available(this.#stopping.signal)
        return true
      },
      begin: (beginning) => this.#findChannel(beginning),
      handle: (events) => this.#publish(events),
      deadLettered: ({ at: { stream }, error }) =>
        report('integration_events_parked', { stream, reason: describeError(error) }),
      failed: (error, failures) => {
        if (failures === 1) report('integration_events_interrupted', { reason: error })
      },
    })
  }

  start(): void {
    // when the channel is back, it is looked at anew
    const stopHearing = this.#parts.channel.onLost(() => this.#follower.restart())
    this.#running = this.#follower.run(this.#stopping.signal).finally(stopHearing)
  }

  /** Finishes the page under way and gives the lease back. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async status(): Promise<FollowerStatus> {
    return (await statusOfFollowers(this.#parts, [INTEGRATION_EVENTS_NAME]))[0]!
  }

  /**
   * Whether nothing is left to be published up to a position, by whichever process does it, dead-lettered streams that
   * are being tried again included. What cannot be published now, because the channel is away or an event cannot be
   * read, is not counted.
   */
  async hasPublished(position: bigint): Promise<boolean> {
    const { channel, log, store } = this.#parts
    if (!channel.isAvailable()) return true
    const status = await this.status()
    if (status.state === 'problem') return true
    const { due, leased } = await store.counts({ now: ALWAYS_DUE, kinds: [UNPUBLISHED_STREAM] })
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

  /** Makes the channel where there is none, and then begins at the start of the log. */
  async #findChannel(beginning: Beginning): Promise<Beginning> {
    const { store, channel } = this.#parts
    if (await channel.exists()) return beginning
    const { epoch, from: position, deadLettered } = beginning
    // before the channel is made: a crash in between must not lose what an old one held. What stood before the
    // first waiting events is to be published again, too
    const cancel = deadLettered.map((stream) => deadLetteredStream(INTEGRATION_EVENTS_NAME, stream))
    await store.advance(INTEGRATION_EVENTS_NAME, { position, epoch }, LOG_START, { store: [], cancel })
    await channel.create()
    return { epoch, from: LOG_START, deadLettered: [] }
  }

  /** Publishes events: those of one stream in order, different streams side by side. @throws what may pass. */
  async #publish(events: readonly StoredEvent[]): Promise<Handled> {
    const streams = groupBy(events, ({ stream }) => stream)
    const outcomes = await Promise.allSettled(
      [...streams.values()].map((stream) => this.#publishStream(stream)),
    )
    const stops: Stop[] = []
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason
      if (outcome.value) stops.push(outcome.value)
    }
    return { changes: NO_CHANGES, stops }
  }

  /** Events of one stream in order. @returns the first that cannot be read or published. @throws what may pass. */
  async #publishStream(events: readonly StoredEvent[]): Promise<Stop | null> {
    const { registry, commands, channel, published } = this.#parts
    for (const stored of events) {
      let event: IntegrationEvent | null
      let causedBy: string | null
      try {
        const recorded = registry.decode(stored)
        causedBy = recorded.metadata.traceparent ?? null
        event = await integrationEventOf(recorded, commands)
      } catch (error) {
        if (isAway(error) || error instanceof EventLogUnavailable) throw error
        return { at: stored, error }
      }
      if (!event) continue
      try {
        await publishTraced(channel, event, causedBy)
      } catch (error) {
        if (!(error instanceof IntegrationEventRefused)) throw error
        return { at: stored, error }
      }
      published?.(event.type)
    }
    return null
  }
}

function publishTraced(
  channel: IntegrationEventChannel,
  event: IntegrationEvent,
  causedBy: string | null,
): Promise<void> {
  const attributes = {
    'messaging.system': 'nats',
    'messaging.message.id': event.id,
    tenant_id: event.tenantId,
  }
  const step = { name: `publish ${event.type}`, kind: 'producer', causedBy, attributes } as const
  return traced(step, () => channel.publish(event))
}
