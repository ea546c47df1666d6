import { RecentlyUsed } from '../../application/commands/recently-used.ts'

/** Where a stream ends, or once ended. */
export interface StreamHead {
  readonly revision: number
  readonly hash: string
}

const MOST_BYTES = 8 * 1024 * 1024
/** What a head takes in memory beside the name of its stream: the hash, and its places in maps. */
const HEAD_BYTES = 200

/**
 * Heads of streams as they once were for certain, those that were used lately: what hashes to a head does so for ever,
 * but the stream may have gone on. Bounded in bytes, to about 30,000 streams.
 */
export function recentHeads(mostBytes = MOST_BYTES): RecentlyUsed<string, StreamHead> {
  return new RecentlyUsed(mostBytes, (_, stream) => HEAD_BYTES + stream.length)
}
