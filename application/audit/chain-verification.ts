import { NO_PREDECESSOR, splitHash, verifyEvent } from '../commands/hash-chain.ts'
import { RecentlyUsed } from '../commands/recently-used.ts'
import type { EventPlace, StoredEvent } from '../ports/event-log.ts'

/** `no_hash`, `hash_mismatch` (event or predecessor changed), or `missing_events` before this one. */
export type ChainProblem = 'no_hash' | 'hash_mismatch' | 'missing_events'

/** The last checked event of a stream. */
export interface ChainLink {
  readonly revision: number
  readonly hash: string
}

/** Streams whose last hash is kept at hand; the predecessor of others is read from the log. */
const STREAMS_AT_HAND = 50_000

/** Before the first event of a stream. */
export const CHAIN_START: ChainLink = { revision: -1, hash: NO_PREDECESSOR }

export function linkOf(event: Pick<StoredEvent, 'revision' | 'metadata'>): ChainLink {
  return { revision: event.revision, hash: splitHash(event.metadata)?.hash ?? '' }
}

/** Checks an event against its predecessor in the stream. @returns what is wrong, or null. */
export function checkLink(before: ChainLink, event: StoredEvent): ChainProblem | null {
  if (event.revision !== before.revision + 1) return 'missing_events'
  if (splitHash(event.metadata) === null) return 'no_hash'
  return verifyEvent(before.hash, event) ? null : 'hash_mismatch'
}

/** Checks the hash chains of all streams while pages of events pass in log order. Memory does not grow with the log. */
export class HashChains {
  readonly #links = new RecentlyUsed<string, ChainLink>(STREAMS_AT_HAND)
  readonly #eventsAt: (places: readonly EventPlace[]) => Promise<readonly StoredEvent[]>

  /** @param eventsAt reads events that were checked earlier and are no longer at hand. */
  constructor(eventsAt: (places: readonly EventPlace[]) => Promise<readonly StoredEvent[]>) {
    this.#eventsAt = eventsAt
  }

  /** Brings to hand what the events of the next page follow. Many streams in turn cost a read for each page, not for each event. */
  async prepare(page: readonly StoredEvent[]): Promise<void> {
    const places = new Map<string, EventPlace>()
    for (const { stream, revision } of page) {
      if (!places.has(stream)) places.set(stream, { stream, revision: revision - 1 })
    }
    const missing = [...places.values()].filter(
      ({ stream, revision }) => revision >= 0 && this.#links.get(stream) === undefined,
    )
    if (missing.length === 0) return
    for (const event of await this.#eventsAt(missing)) this.#links.set(event.stream, linkOf(event))
  }

  /** @param event of a page that was prepared. @returns what is wrong with it, or null. */
  check(event: StoredEvent): ChainProblem | null {
    const problem = checkLink(this.#links.get(event.stream) ?? CHAIN_START, event)
    if (!problem) this.#links.set(event.stream, linkOf(event))
    return problem
  }
}
