import { whileOwned } from '../ownership/while-owned.ts'
import { LOG_START } from '../ports/event-log.ts'
import type { Lease } from '../ports/leases.ts'
import { describeError } from '../process-managers/describe-error.ts'
import { leaseOf } from '../process-managers/process-manager.ts'
import { CheckpointMoved, type WorkStore } from '../process-managers/work-store.ts'
import { INTEGRATION_SOURCES } from './messages.ts'
import {
  ALWAYS_DUE,
  INTEGRATION_EVENTS_NAME,
  PARKED_STREAM,
  Publishing,
  type PublishingParts,
  parkedStream,
} from './publishing.ts'

const RETRY_MS = { first: 250, most: 5_000 }

export interface PublisherParts extends PublishingParts {
  readonly store: Pick<
    WorkStore,
    'takeOver' | 'advance' | 'setProblem' | 'checkpoints' | 'claim' | 'end' | 'keysOf' | 'counts'
  >
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
      ...{ leases, name: leaseOf(INTEGRATION_EVENTS_NAME), takeOver: log.soleWriter() },
      ...{ pauseMs: RETRY_MS.first, longestPauseMs: RETRY_MS.most, stopping },
      // the lease is for a process that can publish
      mayOwn: async () => {
        await channel.available(stopping)
        return true
      },
      run: (lease, ended, progressed) => this.#publish(lease, ended, progressed),
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
    const { due, leased } = await store.counts({ now: ALWAYS_DUE, holds: [], processManagers })
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

  async #publish({ epoch }: Lease, ended: AbortSignal, progressed: () => void): Promise<void> {
    const { store, channel } = this.#parts
    const lost = new AbortController()
    // when it is back, it is looked at anew
    const stopHearing = channel.onLost(() => lost.abort())
    try {
      let from = await store.takeOver(INTEGRATION_EVENTS_NAME, epoch)
      let parked = await store.keysOf(INTEGRATION_EVENTS_NAME, PARKED_STREAM)
      if (!(await channel.exists())) {
        // before the channel is made: a crash in between must not lose what an old one held. What stood before the
        // first waiting events is to be published again, too
        const changes = { store: [], cancel: parked.map(parkedStream) }
        await store.advance(INTEGRATION_EVENTS_NAME, { position: from, epoch }, LOG_START, changes)
        from = LOG_START
        parked = []
        await channel.create()
      }
      const publishing = new Publishing(this.#parts, { epoch, from, parked, progressed })
      await publishing.run(AbortSignal.any([ended, lost.signal]))
    } finally {
      stopHearing()
    }
  }
}
