import { hash } from 'node:crypto'

/**
 * Merkle trees over SHA-256 as in RFC 6962, section 2.1, and RFC 9162: leaf hashes begin with a zero byte, those of
 * inner nodes with a one.
 */

/** 32 bytes. */
export type Hash = Buffer

export const HASH_BYTES = 32
/** Of a tree without leaves. */
export const EMPTY_ROOT: Hash = hash('sha256', '', 'buffer')

const LEAF = Buffer.from([0])
const NODE = Buffer.from([1])

export function leafHash(content: string | Buffer): Hash {
  const bytes = typeof content === 'string' ? `\0${content}` : Buffer.concat([LEAF, content])
  return hash('sha256', bytes, 'buffer')
}

export function nodeHash(left: Hash, right: Hash): Hash {
  return hash('sha256', Buffer.concat([NODE, left, right]), 'buffer')
}

/** The root of a tree whose leaves come one after the other. */
export class GrowingRoot {
  /** Roots of the largest complete subtrees so far, from the left. */
  readonly #roots: { hash: Hash; leaves: number }[] = []
  #size = 0

  add(leaf: Hash): void {
    this.#size += 1
    let node = { hash: leaf, leaves: 1 }
    for (let left = this.#roots.at(-1); left?.leaves === node.leaves; left = this.#roots.at(-1)) {
      this.#roots.pop()
      node = { hash: nodeHash(left.hash, node.hash), leaves: 2 * node.leaves }
    }
    this.#roots.push(node)
  }

  /** Leaves so far. */
  get size(): number {
    return this.#size
  }

  /** Of all leaves so far. */
  get root(): Hash {
    const [last, ...before] = [...this.#roots].reverse().map(({ hash }) => hash)
    return before.reduce((right, left) => nodeHash(left, right), last ?? EMPTY_ROOT)
  }
}

/** The hash of a complete subtree: of the 2^level leaves from index × 2^level on. */
export type NodeAt = (level: number, index: number) => Promise<Hash>

/** The root of a tree of so many leaves. */
export async function rootOf(size: number, nodeAt: NodeAt): Promise<Hash> {
  return size === 0 ? EMPTY_ROOT : rangeHash(0, size, nodeAt)
}

/** Hashes that lead from a leaf to the root of a tree, from the bottom up (RFC 6962, 2.1.1). */
export async function inclusionProof(index: number, size: number, nodeAt: NodeAt): Promise<readonly Hash[]> {
  const path: Hash[] = []
  for (let [start, count] = [0, size]; count > 1; ) {
    const left = largestPowerBelow(count)
    if (index - start < left) {
      path.push(await rangeHash(start + left, count - left, nodeAt))
      count = left
    } else {
      path.push(await rangeHash(start, left, nodeAt))
      start += left
      count -= left
    }
  }
  return path.reverse()
}

/** Hashes that show that a tree is the beginning of a larger one (RFC 6962, 2.1.2). */
export async function consistencyProof(from: number, to: number, nodeAt: NodeAt): Promise<readonly Hash[]> {
  if (from === 0 || from === to) return []
  const proof: Hash[] = []
  let [start, count, isWhole] = [0, to, true]
  while (from - start !== count) {
    const left = largestPowerBelow(count)
    if (from - start <= left) {
      proof.push(await rangeHash(start + left, count - left, nodeAt))
      count = left
    } else {
      proof.push(await rangeHash(start, left, nodeAt))
      start += left
      count -= left
      isWhole = false
    }
  }
  if (!isWhole) proof.push(await rangeHash(start, count, nodeAt))
  return proof.reverse()
}

/** Whether a leaf stands at an index of the tree with a root (RFC 9162, 2.1.3.2). */
export function isIncluded(
  proof: readonly Hash[],
  { index, size, root, leaf }: { index: number; size: number; root: Hash; leaf: Hash },
): boolean {
  if (index < 0 || index >= size) return false
  let [node, last] = [index, size - 1]
  let hash = leaf
  for (const other of proof) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      hash = nodeHash(other, hash)
      while (node % 2 === 0 && node !== 0) {
        node = Math.floor(node / 2)
        last = Math.floor(last / 2)
      }
    } else hash = nodeHash(hash, other)
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && hash.equals(root)
}

/** Whether the tree with one root is the beginning of that with another (RFC 9162, 2.1.4.2). */
export function isConsistent(
  proof: readonly Hash[],
  from: { readonly size: number; readonly root: Hash },
  to: { readonly size: number; readonly root: Hash },
): boolean {
  if (from.size > to.size) return false
  if (from.size === to.size) return proof.length === 0 && from.root.equals(to.root)
  if (from.size === 0) return proof.length === 0 && from.root.equals(EMPTY_ROOT)
  const path = Number.isInteger(Math.log2(from.size)) ? [from.root, ...proof] : [...proof]
  let [node, last] = [from.size - 1, to.size - 1]
  while (node % 2 === 1) {
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  const [first, ...rest] = path
  if (!first) return false
  let [old, young] = [first, first]
  for (const hash of rest) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      old = nodeHash(hash, old)
      young = nodeHash(hash, young)
      while (node % 2 === 0 && node !== 0) {
        node = Math.floor(node / 2)
        last = Math.floor(last / 2)
      }
    } else young = nodeHash(young, hash)
    node = Math.floor(node / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && old.equals(from.root) && young.equals(to.root)
}

/** The hash over a range that a tree or a subtree covers; it begins at a multiple of the largest power of two in it. */
async function rangeHash(start: number, count: number, nodeAt: NodeAt): Promise<Hash> {
  const level = Math.log2(count)
  if (Number.isInteger(level)) return nodeAt(level, start / count)
  const left = largestPowerBelow(count)
  const [one, other] = await Promise.all([
    rangeHash(start, left, nodeAt),
    rangeHash(start + left, count - left, nodeAt),
  ])
  return nodeHash(one, other)
}

/** The largest power of two that is smaller than a count above 1. */
function largestPowerBelow(count: number): number {
  return 2 ** (Math.ceil(Math.log2(count)) - 1)
}
