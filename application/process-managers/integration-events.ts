import { setTimeout as delay } from 'node:timers/promises'
import type { CommandHandler } from '../command-handling/command-handler.ts'
import type { EventRegistry } from '../event-store.ts'
import { INTEGRATION_SOURCES, integrationEventOf } from '../integration-events.ts'
import { pagesInTime } from '../pages-in-time.ts'
import { type EventLog, EventLogUnavailable, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import {
  type IntegrationEvent,
  type IntegrationEventChannel,
  IntegrationEventRefused,
} from '../ports/integration-events.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import { isAway } from '../ports/unavailable.ts'
import { describeError } from './describe-error.ts'
import { leaseOf } from './process-manager.ts'
import {
  CheckpointMoved,
  type ClaimedWork,
  PARKED_STREAM,
  type WorkChanges,
  type WorkEnd,
  type WorkKey,
  type WorkStore,
  type WorkToStore,
} from './work-store.ts'

export const INTEGRATION_EVENTS_NAME = 'integration-events'

/** Events of the log in one page: published together, then the checkpoint moves. */
const PAGE = 500
/** How often a checkpoint that moved over events of no concern is stored, in real milliseconds. */
const CHECKPOINT_MS = 1_000
const RETRY_MS = { first: 250, most: 5_000 }
const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

/** How often parked streams are looked at, in real milliseconds: whether one is to be tried again. */
const PARKED_MS = 500
const PARKED_LEASE_MS = 10_000
/** Parked streams tried in one look, and events of one read at once. */
const PARKED_PAGE = 100
/** Tries of a parked stream before it waits for a redrive. */
const ATTEMPTS = 3

export interface IntegrationEventsParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly commands: Pick<CommandHandler, 'load'>
  readonly leases: Leases
  readonly store: Pick<
    WorkStore,
    'takeOver' | 'advance' | 'setProblem' | 'checkpoints' | 'makeDue' | 'claim' | 'end' | 'keysOf' | 'counts'
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
interface IntegrationEventsStatus {
  /** `idle`: no process publishes; `problem`: see there. */
  readonly state: 'active' | 'idle' | 'problem'
  readonly position: bigint
  readonly problem: string | null
  /** Streams that wait behind an event that cannot be published. */
  readonly parkedStreams: number
}

/** Where a stream cannot be published on, and why. */
interface Stop {
  readonly at: Pick<StoredEvent, 'stream' | 'revision' | 'type' | 'eventId'>
  readonly error: unknown
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
        lease = await leases.acquire(leaseOf(INTEGRATION_EVENTS_NAME), { takeOver })
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
        const parked = await store.keysOf(INTEGRATION_EVENTS_NAME, PARKED_STREAM)
        // what stood before their first waiting event is to be published again, too
        const changes = { store: [], cancel: parked.map(parkedStream) }
        if (from !== LOG_START || parked.length > 0) await checkpoint.save(LOG_START, changes)
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
    const { log, store } = this.#parts
    const pages = log.subscribe({
      ...{ after: checkpoint.saved, types: INTEGRATION_SOURCES, pageSize: PAGE, signal: ended },
    })
    // nobody but the owner of the checkpoint adds to them or takes from them
    const parked = new Set(await store.keysOf(INTEGRATION_EVENTS_NAME, PARKED_STREAM))
    let position = checkpoint.saved
    let lookAt = performance.now()
    const patience = () => {
      const untilSaved = position === checkpoint.saved ? Number.POSITIVE_INFINITY : CHECKPOINT_MS
      const untilLook = parked.size === 0 ? Number.POSITIVE_INFINITY : lookAt - performance.now()
      const least = Math.min(untilSaved, untilLook)
      return least === Number.POSITIVE_INFINITY ? null : least
    }
    for await (const page of pagesInTime(pages, patience)) {
      if (ended.aborted) return
      if (page === null) {
        if (position !== checkpoint.saved) await checkpoint.save(position)
      } else {
        const stops = await this.#publish(page.events.filter(({ stream }) => !parked.has(stream)))
        position = page.checkpoint
        if (page.events.length > 0)
          await checkpoint.save(position, { store: stops.map(parkedBy), cancel: [] })
        for (const stop of stops) this.#park(stop, parked)
        onProgress()
      }
      if (parked.size > 0 && performance.now() >= lookAt) {
        await this.#retry(checkpoint, position, parked)
        lookAt = performance.now() + PARKED_MS
      }
    }
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

  #park({ at, error }: Stop, parked: Set<string>): void {
    parked.add(at.stream)
    this.#parts.report('integration_events_parked', { stream: at.stream, error: describeError(error) })
  }

  /** Tries parked streams that are due, each from its first waiting event up to `upTo`. */
  async #retry(checkpoint: Checkpoint, upTo: bigint, parked: Set<string>): Promise<void> {
    const { store, leases } = this.#parts
    await store.makeDue(ALWAYS_DUE, leases.owner)
    const claims = await store.claim({
      ...{ owner: leases.owner, leaseMs: PARKED_LEASE_MS },
      kinds: [{ processManager: INTEGRATION_EVENTS_NAME, kind: PARKED_STREAM, slots: PARKED_PAGE }],
    })
    const inHand = new Set(claims)
    try {
      for (const claim of claims) {
        await this.#retryOne(claim, checkpoint, upTo, parked)
        inHand.delete(claim)
      }
    } catch (error) {
      // what may pass is no fault of the streams: it costs them no try
      await Promise.allSettled([...inHand].map((claim) => store.end(claim, { end: 'interrupted' })))
      throw error
    }
  }

  async #retryOne(
    claim: ClaimedWork,
    checkpoint: Checkpoint,
    upTo: bigint,
    parked: Set<string>,
  ): Promise<void> {
    const first = Number((claim.payload as { revision: number }).revision)
    const stop = await this.#publishParked(claim.key, first, upTo)
    if (!stop) {
      // with the checkpoint, so that an owner that was replaced cannot free what its successor passed over
      await checkpoint.save(upTo, { store: [], cancel: [claim] })
      parked.delete(claim.key)
      return
    }
    // stored anew at its next event, it begins with its tries afresh
    if (stop.at.revision !== first) await checkpoint.save(upTo, { store: [parkedBy(stop)], cancel: [] })
    await this.#parts.store.end(claim, endOf(claim, stop))
  }

  async #publishParked(stream: string, first: number, upTo: bigint): Promise<Stop | null> {
    const { log } = this.#parts
    for (let from = first; ; ) {
      const page = await log.readStream(stream, { from, maxCount: PARKED_PAGE })
      const waiting = page.filter(
        ({ type, position }) => position <= upTo && INTEGRATION_SOURCES.includes(type),
      )
      const stop = await this.#publishStream(waiting)
      if (stop || page.length < PARKED_PAGE || page.at(-1)!.position > upTo) return stop
      from = page.at(-1)!.revision + 1
    }
  }
}

/** The service's clock has no say in when a parked stream is tried. */
const ALWAYS_DUE = 0

function parkedStream(stream: string): WorkKey {
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
  return attempt >= ATTEMPTS
    ? { end: 'failed', why }
    : { end: 'retry', afterMs: RETRY_MS.first * attempt, why }
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

  /** Moves the checkpoint and changes what is parked, all or nothing. @throws CheckpointMoved */
  async save(position: bigint, changes: WorkChanges = NO_CHANGES): Promise<void> {
    const from = { position: this.saved, epoch: this.#epoch }
    await this.#store.advance(INTEGRATION_EVENTS_NAME, from, position, changes)
    this.saved = position
  }
}
