import { NO_PREDECESSOR, splitHash, verifyEvent } from '../commands/hash-chain.ts'
import { RecentlyUsed } from '../commands/recently-used.ts'
import type { StoredEvent } from '../ports/event-log.ts'

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

/** Checks the hash chains of all streams while events pass in log order. Memory does not grow with the log. */
export class HashChains {
  readonly #links = new RecentlyUsed<string, ChainLink>(STREAMS_AT_HAND)
  readonly #eventAt: (stream: string, revision: number) => Promise<StoredEvent | null | undefined>

  /** @param eventAt reads an event that was checked earlier and is no longer at hand. */
  constructor(eventAt: (stream: string, revision: number) => Promise<StoredEvent | null | undefined>) {
    this.#eventAt = eventAt
  }

  /** @returns what is wrong with the event, or null; at once where its predecessor is at hand. */
  check(event: StoredEvent): ChainProblem | null | Promise<ChainProblem | null> {
    const { stream, revision } = event
    const before = this.#links.get(stream) ?? (revision === 0 ? CHAIN_START : null)
    return before ? this.#checkBehind(before, event) : this.#readAndCheck(event)
  }

  async #readAndCheck(event: StoredEvent): Promise<ChainProblem | null> {
    const { stream, revision } = event
    const before = await this.#eventAt(stream, revision - 1)
    return this.#checkBehind(before ? linkOf(before) : CHAIN_START, event)
  }

  #checkBehind(before: ChainLink, event: StoredEvent): ChainProblem | null {
    const problem = checkLink(before, event)
    if (!problem) this.#links.set(event.stream, linkOf(event))
    return problem
  }
}
