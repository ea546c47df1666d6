import { describe, expect, test } from 'vitest'
import {
  consistencyProof,
  EMPTY_ROOT,
  type Hash,
  inclusionProof,
  isConsistent,
  isIncluded,
  leafHash,
  nodeHash,
  rootOf,
} from '../../../application/audit/merkle.ts'
import { grown, nodesOf } from '../../../application/audit/tree-tiles.ts'

/** A tree that takes so many leaves at a time, as its tiles. */
function treeOf(leaves: readonly Hash[], atOnce: number) {
  const tiles = new Map<string, Buffer>()
  for (let size = 0; size < leaves.length; size += atOnce) {
    const last = new Map<number, Buffer>()
    for (let [level, count] = [0, size]; count > 0; level += 1, count = Math.floor(count / 256)) {
      if (count % 256 > 0) last.set(level, tiles.get(`${level}/${Math.floor(count / 256)}`)!)
    }
    for (const { level, index, hashes } of grown(size, last, leaves.slice(size, size + atOnce))) {
      tiles.set(`${level}/${index}`, Buffer.from(hashes))
    }
  }
  return nodesOf(async ({ level, index }) => tiles.get(`${level}/${index}`) ?? Buffer.alloc(0))
}

/** The root as RFC 6962 defines it. */
function defined(leaves: readonly Hash[]): Hash {
  if (leaves.length === 0) return EMPTY_ROOT
  if (leaves.length === 1) return leaves[0]!
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  return nodeHash(defined(leaves.slice(0, left)), defined(leaves.slice(left)))
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => leafHash(`event ${n}`))

describe('the Merkle tree over the log', () => {
  test('has the roots that the test vectors of Certificate Transparency have', async () => {
    const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657']
    const leaves = [...inputs, '606162636465666768696a6b6c6d6e6f'].map((hex) =>
      leafHash(Buffer.from(hex, 'hex')),
    )
    const roots = await Promise.all(
      [1, 2, 3, 8].map(async (size) =>
        (await rootOf(size, treeOf(leaves.slice(0, size), 3))).toString('hex'),
      ),
    )
    expect(roots).toEqual([
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    ])
    expect(await rootOf(0, treeOf([], 1))).toEqual(EMPTY_ROOT)
  })

  test.each([
    { size: 255, atOnce: 100 },
    { size: 256, atOnce: 256 },
    { size: 257, atOnce: 1 },
    { size: 700, atOnce: 129 },
    { size: 66_000, atOnce: 1_000 },
  ])('has the defined root of $size leaves, taken $atOnce at a time', async ({ size, atOnce }) => {
    const leaves = numbered(size)
    expect(await rootOf(size, treeOf(leaves, atOnce))).toEqual(defined(leaves))
  })

  test('proves each leaf of each tree, and no other', async () => {
    const leaves = numbered(20)
    const nodes = treeOf(leaves, 7)
    for (let size = 1; size <= leaves.length; size += 1) {
      const root = defined(leaves.slice(0, size))
      for (let index = 0; index < size; index += 1) {
        const proof = await inclusionProof(index, size, nodes)
        const leaf = leaves[index]!
        expect(isIncluded(proof, { index, size, root, leaf })).toBe(true)
        expect(isIncluded(proof, { index, size, root, leaf: leafHash('another') })).toBe(false)
        expect(isIncluded(proof, { index: (index + 1) % size, size, root, leaf })).toBe(size === 1)
        expect(isIncluded([...proof, root], { index, size, root, leaf })).toBe(false)
        if (proof.length > 0) expect(isIncluded(proof.slice(1), { index, size, root, leaf })).toBe(false)
      }
    }
  })

  test('proves that each tree is the beginning of each later one, and of no other', async () => {
    const leaves = numbered(20)
    const nodes = treeOf(leaves, 7)
    const roots = [...leaves.keys(), leaves.length].map((size) => defined(leaves.slice(0, size)))
    for (let to = 1; to <= leaves.length; to += 1) {
      for (let from = 1; from <= to; from += 1) {
        const proof = await consistencyProof(from, to, nodes)
        const [one, other] = [
          { size: from, root: roots[from]! },
          { size: to, root: roots[to]! },
        ]
        expect(isConsistent(proof, one, other)).toBe(true)
        expect(isConsistent(proof, { size: from, root: leafHash('another') }, other)).toBe(false)
        expect(isConsistent(proof, one, { size: to, root: leafHash('another') })).toBe(false)
        expect(isConsistent([...proof, roots[1]!], one, other)).toBe(false)
      }
    }
  })
})
