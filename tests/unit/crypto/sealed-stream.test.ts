import { createCipheriv, createSecretKey, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SealBroken, seal, unseal } from '../../../infrastructure/crypto/sealed-stream.ts'

const CHUNK = 64 * 1024
const SEALED = CHUNK + 16
const key = createSecretKey(randomBytes(32))

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function all(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const piece of pieces) parts.push(piece)
  return Buffer.concat(parts)
}

const sealed = (plain: Buffer) => all(seal(key, inPieces(plain, 50_000)))
const opened = (bytes: Buffer, by = key) => all(unseal(by, inPieces(bytes, 70_000)))

describe('a sealed stream', () => {
  test('comes out as it went in, in pieces of any size', async () => {
    const length = fc.oneof(fc.constantFrom(0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK), fc.nat(3 * CHUNK))
    const size = fc.integer({ min: 1_000, max: 2 * CHUNK })
    await fc.assert(
      fc.asyncProperty(length, size, size, async (count, one, other) => {
        const plain = randomBytes(count)
        const bytes = await all(seal(key, inPieces(plain, one)))
        expect((await all(unseal(key, inPieces(bytes, other)))).equals(plain)).toBe(true)
      }),
      { numRuns: 25 },
    )
  })

  test('is refused when any byte of it was changed', async () => {
    const bytes = await sealed(randomBytes(CHUNK + 100))
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const changed = Buffer.from(bytes)
        changed[at]! ^= change
        await expect(opened(changed)).rejects.toThrow(SealBroken)
      }),
      { numRuns: 25 },
    )
  })

  test.each<[string, (bytes: Buffer) => Buffer]>([
    ['nothing is left of it', () => Buffer.alloc(0)],
    ['its end is missing', (bytes) => bytes.subarray(0, -1)],
    ['its last chunk is missing', (bytes) => bytes.subarray(0, 2 * SEALED)],
    ['its first chunk is missing', (bytes) => bytes.subarray(SEALED)],
    [
      'two chunks have changed places',
      (bytes) =>
        Buffer.concat([
          bytes.subarray(SEALED, 2 * SEALED),
          bytes.subarray(0, SEALED),
          bytes.subarray(2 * SEALED),
        ]),
    ],
    ['a chunk comes twice', (bytes) => Buffer.concat([bytes.subarray(0, SEALED), bytes])],
    ['something follows it', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)])],
    ['it follows itself', (bytes) => Buffer.concat([bytes, bytes])],
  ])('is refused when %s', async (_, change) => {
    const bytes = await sealed(randomBytes(2 * CHUNK + 100))
    await expect(opened(change(bytes))).rejects.toThrow(SealBroken)
  })

  test('is refused when an empty chunk ends it behind a full one', async () => {
    const chunk = (number: number, isLast: boolean, bytes: Buffer) => {
      const nonce = Buffer.alloc(12)
      nonce[10] = number
      nonce[11] = isLast ? 1 : 0
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
    }
    const empty = Buffer.alloc(0)
    expect((await opened(chunk(0, true, empty))).length).toBe(0)
    const bytes = Buffer.concat([chunk(0, false, randomBytes(CHUNK)), chunk(1, true, empty)])
    await expect(opened(bytes)).rejects.toThrow(SealBroken)
  })

  test('is refused under another key', async () => {
    await expect(opened(await sealed(Buffer.from('x')), createSecretKey(randomBytes(32)))).rejects.toThrow(
      SealBroken,
    )
  })
})
