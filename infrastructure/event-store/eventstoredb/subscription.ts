import {
  type AllStreamSubscription,
  END,
  EVENT_TYPE,
  type EventStoreDBClient,
  type Filter,
  type Position,
  type ResolvedEvent,
  START,
  STREAM_NAME,
} from '@eventstore/db-client'
import { LOG_START, type StoredEvent } from '../../../application/ports/event-log.ts'
import { storedEvent } from './stored-texts.ts'

/** Size of the data and metadata, in characters, from which on the server is held back. */
const READY_CHARACTERS = 8 * 1024 * 1024
/** Events that may be ready, for the same. */
const READY_EVENTS = 2_000
/** Messages that the client's stream holds beyond those. */
const CLIENT_BUFFER = 64
/** Events that the server looks at in one go while a reader catches up, and such goes between two checkpoints. */
const FAR = { maxSearchWindow: 1_000, checkpointInterval: 10 }
/** Live readers hear at once of every event that passed them by. */
const NEAR = { maxSearchWindow: 1, checkpointInterval: 1 }

/** What a subscription has had since the last time. */
export interface Stretch {
  readonly events: readonly StoredEvent[]
  /** Everything wanted up to here has been delivered. */
  readonly checkpoint: bigint
  /** Everything wanted before here has been delivered; what stands here has not, unless that is the checkpoint. */
  readonly before: bigint
}

/**
 * A subscription to the log at the server, from after a position on, first catching up and then live. It holds the
 * server back while nobody takes what has arrived; one that is live and too slow is cut off by servers before 24.10. It ends with
 * the first failure: its reader subscribes again, from the last checkpoint.
 */
export class Subscription {
  /** `catching up` until everything was told that was in the log at the start, then `live`. */
  #state: 'catching up' | 'live' | 'failed' | 'ended' = 'catching up'
  readonly #subscription: AllStreamSubscription
  readonly #stored: (event: ResolvedEvent) => StoredEvent
  readonly #after: bigint
  #events: StoredEvent[] = []
  #characters = 0
  #checkpoint: bigint
  /** Where the server last said that it is before, or `after`. */
  #before: bigint
  /** As of the last time that something was taken. */
  #delivered: bigint
  #deliveredBefore: bigint
  #deliveredState: 'catching up' | 'live' = 'catching up'
  /** What the server said behind events that the client still holds: after how many it is to be heard. */
  #marks: { left: number; readonly hear: () => void }[] = []
  #failure: unknown
  #wake: () => void = () => undefined

  /**
   * @param options.from where the server begins: at the start or after an event before `after`, as the reader finds it.
   * @param options.types all where none are given; the server's own events are left out.
   * @param options.near whether to hear of every event that passes by, for readers near the head.
   * @param options.stored what is made of an event.
   */
  constructor(
    client: EventStoreDBClient,
    options: {
      after: bigint
      from: bigint
      types?: readonly string[] | undefined
      near?: boolean
      stored?: (event: ResolvedEvent) => StoredEvent
    },
  ) {
    const { after, from, types, near = false } = options
    this.#after = after
    this.#checkpoint = after
    this.#before = after
    this.#delivered = after
    this.#deliveredBefore = after
    this.#stored = options.stored ?? storedEvent
    const filter: Filter = {
      ...(types
        ? { filterOn: EVENT_TYPE, regex: anyOf(types) }
        : // by stream: the server's settings are events of a type like any other
          { filterOn: STREAM_NAME, regex: '^[^\\$]' }),
      ...(near ? NEAR : FAR),
      checkpointReached: (_, place) => this.#inOrder(() => this.#hear(place)),
    }
    this.#subscription = client.subscribeToAll(
      { fromPosition: placeOf(from), filter, requiresLeader: true },
      { highWaterMark: CLIENT_BUFFER },
    )
    this.#subscription
      .on('data', (event: ResolvedEvent) => this.#take(event))
      .on('caughtUp', () => this.#inOrder(() => this.#catchUp()))
      .on('error', (error: unknown) => this.#fail(error))
      .on('end', () => this.#fail(new Error('the subscription ended')))
  }

  /** Whether everything that stood in the log at the start was among what {@link next} has told. */
  get isLive(): boolean {
    return this.#deliveredState === 'live'
  }

  /**
   * What has arrived, as soon as there is something: events, a checkpoint, or having caught up.
   * @param maxCount events at the most.
   * @returns undefined when it was ended.
   * @throws what the client failed with; everything that arrived before has been told then.
   */
  async next(maxCount: number): Promise<Stretch | undefined> {
    while (this.#state !== 'ended') {
      const isNews =
        this.#checkpoint > this.#delivered ||
        this.#before > this.#deliveredBefore ||
        (this.#state === 'live' && !this.isLive)
      if (this.#events.length > 0 || isNews) return this.#stretch(maxCount)
      if (this.#state === 'failed') throw this.#failure
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      // what arrives in one go is told as one stretch
      await new Promise((resolve) => setImmediate(resolve))
    }
    return undefined
  }

  /** Ends it; what {@link next} waits for comes to nothing. */
  end(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#events = []
    this.#subscription.resume()
    this.#subscription.unsubscribe().catch(() => undefined)
    this.#wake()
  }

  #stretch(maxCount: number): Stretch {
    const isAll = this.#events.length <= maxCount
    const events = isAll ? this.#events : this.#events.slice(0, maxCount)
    this.#events = isAll ? [] : this.#events.slice(maxCount)
    for (const event of events) this.#characters -= sizeOf(event)
    this.#delivered = isAll ? this.#checkpoint : events.at(-1)!.position
    if (isAll && this.#state === 'live') this.#deliveredState = 'live'
    if (this.#subscription.isPaused() && !this.#isFull()) this.#subscription.resume()
    if (isAll) this.#deliveredBefore = this.#before
    return { events, checkpoint: this.#delivered, before: isAll ? this.#before : this.#delivered }
  }

  #take(resolved: ResolvedEvent): void {
    if (this.#state === 'ended') return
    // the server begins before it
    if (resolved.event!.position!.commit > this.#after) this.#keep(this.#stored(resolved))
    if (this.#marks.length === 0) return
    for (const mark of this.#marks) {
      mark.left -= 1
      if (mark.left === 0) mark.hear()
    }
    this.#marks = this.#marks.filter(({ left }) => left > 0)
  }

  #keep(event: StoredEvent): void {
    this.#events.push(event)
    this.#characters += sizeOf(event)
    this.#reach(event.position)
    if (this.#isFull()) this.#subscription.pause()
  }

  /** Hears what the server said when the events before it have been taken. */
  #inOrder(hear: () => void): void {
    const left = this.#subscription.readableLength
    if (left === 0) hear()
    else this.#marks.push({ left, hear })
  }

  /**
   * A checkpoint whose prepare is not its commit is before what stands there, which may be wanted: some servers tell one
   * at the end of the log, where the next event comes to stand. What stood at the one before it has been told.
   */
  #hear({ commit, prepare }: Position): void {
    if (prepare === commit) this.#reach(commit)
    else if (commit > this.#before) {
      this.#reach(this.#before)
      this.#before = commit
      this.#wake()
    }
  }

  #reach(position: bigint): void {
    if (position > this.#checkpoint) this.#checkpoint = position
    this.#wake()
  }

  #catchUp(): void {
    if (this.#state === 'catching up') this.#state = 'live'
    this.#wake()
  }

  #fail(error: unknown): void {
    if (this.#state === 'ended' || this.#state === 'failed') return
    this.#state = 'failed'
    this.#failure = error
    this.#wake()
  }

  #isFull(): boolean {
    return this.#events.length >= READY_EVENTS || this.#characters >= READY_CHARACTERS
  }
}

/** Where the server begins to read. */
export function placeOf(position: bigint | 'end'): typeof START | typeof END | Position {
  if (position === 'end') return END
  return position === LOG_START ? START : { commit: position, prepare: position }
}

function sizeOf({ data, metadata }: StoredEvent): number {
  return data.length + metadata.length
}

/** A regular expression of the server's that matches exactly these texts. */
function anyOf(texts: readonly string[]): string {
  return `^(?:${texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|#\s-]/g, '\\$&')).join('|')})$`
}
