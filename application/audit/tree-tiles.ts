import { HASH_BYTES, type Hash, type NodeAt, nodeHash } from './merkle.ts'

/** Levels of the tree in a tile, as in C2SP's `tlog-tiles`: a whole one has 256 hashes. */
const HEIGHT = 8
export const TILE_HASHES = 2 ** HEIGHT

/** Where a tile stands: one of level n has the roots of 256 whole tiles of the level below. */
export interface TilePlace {
  readonly level: number
  readonly index: number
}

/** A tile: its hashes one after another, fewer than 256 where the tree ends in it. */
export interface Tile extends TilePlace {
  readonly hashes: Buffer
}

/** Nodes of a tree from its tiles, each of which is read once, and each node worked out once. */
export function nodesOf(readTile: (place: TilePlace) => Promise<Buffer>): NodeAt {
  const read = new Map<string, Promise<Buffer>>()
  const nodes = new Map<string, Hash>()
  const tileAt = (place: TilePlace): Promise<Buffer> => {
    const key = `${place.level}/${place.index}`
    const known = read.get(key) ?? readTile(place)
    read.set(key, known)
    return known
  }
  return async (level, index) => {
    const key = `${level}/${index}`
    const known = nodes.get(key)
    if (known) return known
    const height = level % HEIGHT
    const count = 2 ** height
    const first = index * count
    const hashes = await tileAt({ level: Math.floor(level / HEIGHT), index: Math.floor(first / TILE_HASHES) })
    const from = (first % TILE_HASHES) * HASH_BYTES
    if (hashes.length < from + count * HASH_BYTES) throw new Error(`The tree has no node ${key}`)
    const node = rootOfHashes(hashes.subarray(from, from + count * HASH_BYTES))
    nodes.set(key, node)
    return node
  }
}

/**
 * The tiles that a tree changes or gains by further leaves.
 * @param size leaves so far.
 * @param lastTiles the tiles that are not whole, by level from the bottom; missing where there is none.
 */
export function grown(size: number, lastTiles: ReadonlyMap<number, Buffer>, leaves: readonly Hash[]): Tile[] {
  const tiles: Tile[] = []
  for (let [level, count, added] = [0, size, leaves]; added.length > 0; level += 1) {
    const partial = lastTiles.get(level) ?? Buffer.alloc(0)
    let index = Math.floor(count / TILE_HASHES)
    const all = Buffer.concat([partial, ...added])
    const roots: Hash[] = []
    const whole = TILE_HASHES * HASH_BYTES
    for (let from = 0; from < all.length; from += whole, index += 1) {
      const hashes = all.subarray(from, from + whole)
      tiles.push({ level, index, hashes })
      if (hashes.length === whole) roots.push(rootOfHashes(hashes))
    }
    count = Math.floor(count / TILE_HASHES)
    added = roots
  }
  return tiles
}

/** The root over as many hashes as a power of two. */
function rootOfHashes(hashes: Buffer): Hash {
  let level = Array.from({ length: hashes.length / HASH_BYTES }, (_, n) =>
    hashes.subarray(n * HASH_BYTES, (n + 1) * HASH_BYTES),
  )
  while (level.length > 1) {
    const above: Hash[] = []
    for (let n = 0; n < level.length; n += 2) above.push(nodeHash(level[n]!, level[n + 1]!))
    level = above
  }
  return level[0]!
}
