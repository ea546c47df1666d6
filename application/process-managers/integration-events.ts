import { setTimeout as delay } from 'node:timers/promises'
import type { CommandHandler } from '../command-handling/command-handler.ts'
import type { EventRegistry } from '../event-store.ts'
import { INTEGRATION_SOURCES, integrationEventOf } from '../integration-events.ts'
import { pagesInTime } from '../pages-in-time.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import type { IntegrationEventChannel } from '../ports/integration-events.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import { describeError } from './describe-error.ts'
import { CheckpointMoved, type WorkChanges, type WorkStore } from './work-store.ts'

export const INTEGRATION_EVENTS_NAME = 'integration-events'
const LEASE = `process-manager/${INTEGRATION_EVENTS_NAME}`

/** Events of the log in one page: published together, then the checkpoint moves. */
const PAGE = 500
/** How often a checkpoint that moved over events of no concern is stored, in real milliseconds. */
const CHECKPOINT_MS = 1_000
const RETRY_MS = { first: 250, most: 5_000 }
const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

export interface IntegrationEventsParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly commands: Pick<CommandHandler, 'load'>
  readonly leases: Leases
  readonly store: Pick<WorkStore, 'takeOver' | 'advance' | 'setProblem' | 'checkpoints'>
  readonly channel: IntegrationEventChannel
  /** Hears of every event that was published. */
  readonly published?: (type: string) => void
  /** Hears of failures; the text holds no values of events. */
  readonly report: (what: 'integration_events_interrupted', fields: Readonly<Record<string, string>>) => void
}

/** How far publishing is. */
export interface IntegrationEventsStatus {
  /** `idle`: no process has ever published; `problem`: see there. */
  readonly state: 'active' | 'idle' | 'problem'
  readonly position: bigint
  readonly problem: string | null
}

/**
 * Publishes integration events from the log, in one process at a time, under a lease. The checkpoint
 * is a process manager's: no rebuild of a read model publishes anything again. It moves when a page
 * is published, so that a crash repeats events under their ids and loses none; while the channel is
 * away it stands. A channel that was made anew is filled from the start of the log.
 *
 * Events of one stream are published in order, one after another. An event that cannot be read stops
 * publishing, visibly, rather than leave a gap.
 */
export class IntegrationEvents {
  readonly #parts: IntegrationEventsParts
  readonly #stopping = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(parts: IntegrationEventsParts) {
    this.#parts = parts
  }

  start(): void {
    this.#running = this.#own()
  }

  /** Finishes the page under way and gives the lease back. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async status(): Promise<IntegrationEventsStatus> {
    const stored = (await this.#parts.store.checkpoints([INTEGRATION_EVENTS_NAME])).get(
      INTEGRATION_EVENTS_NAME,
    )
    if (!stored) return { state: 'idle', position: LOG_START, problem: null }
    const { position, problem } = stored
    return { state: problem === null ? 'active' : 'problem', position, problem }
  }

  /**
   * Whether nothing is left to be published up to a position, by whichever process does it. What cannot be published
   * now, because the channel is away or an event cannot be read, is not counted.
   */
  async hasPublished(position: bigint): Promise<boolean> {
    const { channel, log } = this.#parts
    if (!channel.isAvailable()) return true
    const status = await this.status()
    if (status.state === 'problem' || status.position >= position) return true
    // the checkpoint rests a while on events of no concern
    for (let after = status.position; after < position; ) {
      const page = await log.readAll({ after, maxCount: 1, types: INTEGRATION_SOURCES })
      if (page.events.length > 0) return page.events[0]!.position > position
      if (page.atHead) break
      after = page.checkpoint
    }
    return true
  }

  async #own(): Promise<void> {
    const { leases, channel, store, log, report } = this.#parts
    const stopping = this.#stopping.signal
    // whoever held the lease before is dead, the first time
    let takeOver = log.soleWriter()
    let failures = 0
    while (!stopping.aborted) {
      let lease: Lease | null = null
      try {
        // the lease is for a process that can publish
        await channel.available(stopping)
        if (stopping.aborted) return
        lease = await leases.acquire(LEASE, { takeOver })
        takeOver = false
        if (lease) {
          await this.#follow(lease, () => {
            failures = 0
          })
        }
      } catch (error) {
        failures += 1
        const why = describeError(error)
        if (failures === 1) report('integration_events_interrupted', { error: why })
        if (lease && !(error instanceof CheckpointMoved)) {
          await store.setProblem(INTEGRATION_EVENTS_NAME, lease.epoch, why).catch(() => undefined)
        }
      } finally {
        await lease?.release().catch(() => undefined)
      }
      const pause = Math.min(RETRY_MS.first * 2 ** Math.max(0, failures - 1), RETRY_MS.most)
      await delay(pause, null, { signal: stopping }).catch(() => undefined)
    }
  }

  async #follow(lease: Lease, onProgress: () => void): Promise<void> {
    const { store, channel } = this.#parts
    const ended = new AbortController()
    const end = () => ended.abort()
    const signals = [this.#stopping.signal, lease.lost]
    for (const signal of signals) signal.addEventListener('abort', end)
    if (signals.some(({ aborted }) => aborted)) end()
    // when it is back, it is looked at anew
    const stopHearing = channel.onLost(end)
    try {
      const from = await store.takeOver(INTEGRATION_EVENTS_NAME, lease.epoch)
      const checkpoint = new Checkpoint(store, lease.epoch, from)
      if (!(await channel.exists())) {
        // before the channel is made: a crash in between must not lose what an old one held
        if (from !== LOG_START) await checkpoint.save(LOG_START)
        await channel.create()
      }
      await this.#publishFrom(checkpoint, ended.signal, onProgress)
    } finally {
      stopHearing()
      for (const signal of signals) signal.removeEventListener('abort', end)
      end()
    }
  }

  async #publishFrom(checkpoint: Checkpoint, ended: AbortSignal, onProgress: () => void): Promise<void> {
    const pages = this.#parts.log.subscribe({
      ...{ after: checkpoint.saved, types: INTEGRATION_SOURCES, pageSize: PAGE, signal: ended },
    })
    let position = checkpoint.saved
    const untilSaved = () => (position === checkpoint.saved ? null : CHECKPOINT_MS)
    for await (const page of pagesInTime(pages, untilSaved)) {
      if (page === null) {
        await checkpoint.save(position)
        continue
      }
      if (ended.aborted) return
      await this.#publish(page.events)
      position = page.checkpoint
      if (page.events.length > 0) await checkpoint.save(position)
      onProgress()
    }
  }

  /** All events of a page: those of one stream in order, different streams side by side. */
  async #publish(events: readonly StoredEvent[]): Promise<void> {
    const streams = new Map<string, StoredEvent[]>()
    for (const event of events) {
      const stream = streams.get(event.stream)
      if (stream) stream.push(event)
      else streams.set(event.stream, [event])
    }
    const outcomes = await Promise.allSettled(
      [...streams.values()].map((stream) => this.#publishStream(stream)),
    )
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  async #publishStream(events: readonly StoredEvent[]): Promise<void> {
    const { registry, commands, channel, published } = this.#parts
    for (const stored of events) {
      const event = await integrationEventOf(registry.decode(stored), commands)
      if (!event) continue
      await channel.publish(event)
      published?.(event.type)
    }
  }
}

/** The checkpoint under one lease: another owner's epoch makes every later move fail. */
class Checkpoint {
  readonly #store: IntegrationEventsParts['store']
  readonly #epoch: number
  saved: bigint

  constructor(store: IntegrationEventsParts['store'], epoch: number, saved: bigint) {
    this.#store = store
    this.#epoch = epoch
    this.saved = saved
  }

  /** @throws CheckpointMoved */
  async save(position: bigint): Promise<void> {
    const from = { position: this.saved, epoch: this.#epoch }
    await this.#store.advance(INTEGRATION_EVENTS_NAME, from, position, NO_CHANGES)
    this.saved = position
  }
}
