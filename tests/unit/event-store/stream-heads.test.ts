import { expect, test } from 'vitest'
import { recentHeads } from '../../../infrastructure/event-store/stream-heads.ts'

test('heads of streams are kept while they fit into a number of bytes, whatever the names', () => {
  for (const length of [8, 400]) {
    const mostBytes = 100_000
    const heads = recentHeads(mostBytes)
    const streams = Array.from({ length: 2_000 }, (_, n) => String(n).padStart(length, '0'))
    for (const stream of streams) heads.set(stream, { revision: 0, hash: 'a'.repeat(64) })
    const kept = streams.filter((stream) => heads.get(stream) !== undefined)
    const bytes = kept.length * (length + 64)
    expect(bytes).toBeLessThanOrEqual(mostBytes)
    expect(kept.length).toBeGreaterThan(mostBytes / 2 / (length + 300))
    expect(kept.at(-1)).toBe(streams.at(-1))
  }
})
