import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'

/** Bytes that are encrypted together. */
const CHUNK_BYTES = 64 * 1024
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SEALED_BYTES = CHUNK_BYTES + TAG_BYTES
const NOTHING = Buffer.alloc(0)

/** Bytes are not those that were sealed: changed, cut, out of order, more than there were, or under another key. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken'
}

/** Ciphers that a stream is sealed by. Both take 32 bytes of key, 12 of nonce, and add a tag of 16. */
export type StreamCipher = 'aes-256-gcm' | 'chacha20-poly1305'

// the types of Node.js have no name of a cipher with a tag but these: both take the same options
const named = (cipher: StreamCipher) => cipher as 'aes-256-gcm'

/**
 * Encrypts a stream of any length in chunks of 64 KiB (the STREAM construction, as age has it). A nonce is the number of
 * the chunk, and whether it is the last one: so none can be changed, left out, moved or added.
 * @param key 32 bytes, for this one stream: under one key, a nonce may come once.
 */
export async function* seal(
  key: KeyObject,
  plain: AsyncIterable<Buffer>,
  cipherName: StreamCipher = 'aes-256-gcm',
): AsyncGenerator<Buffer> {
  for await (const { number, isLast, bytes } of chunksOf(plain, CHUNK_BYTES)) {
    const cipher = createCipheriv(named(cipherName), key, nonceOf(number, isLast), {
      authTagLength: TAG_BYTES,
    })
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/** Reverses {@link seal}; what it has yielded is as it was sealed, but only at its end is it known to be all. @throws SealBroken */
export async function* unseal(
  key: KeyObject,
  sealed: AsyncIterable<Buffer>,
  cipherName: StreamCipher = 'aes-256-gcm',
): AsyncGenerator<Buffer> {
  for await (const { number, isLast, bytes } of chunksOf(sealed, SEALED_BYTES)) {
    // nothing is sealed alone where something stands before it
    if (bytes.length < TAG_BYTES || (number > 0 && bytes.length === TAG_BYTES)) throw new SealBroken()
    const decipher = createDecipheriv(named(cipherName), key, nonceOf(number, isLast), {
      authTagLength: TAG_BYTES,
    })
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    let plain: Buffer
    try {
      plain = Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()])
    } catch {
      throw new SealBroken()
    }
    yield plain
  }
}

/** Cuts a stream into chunks of a size; the last one may be smaller, and is empty only where nothing came at all. */
async function* chunksOf(source: AsyncIterable<Buffer>, size: number) {
  let held: Buffer = NOTHING
  let number = 0
  for await (const piece of source) {
    held = held.length === 0 ? piece : Buffer.concat([held, piece])
    let at = 0
    for (; held.length - at > size; at += size) {
      yield { number, isLast: false, bytes: held.subarray(at, at + size) }
      number += 1
    }
    held = held.subarray(at)
  }
  yield { number, isLast: true, bytes: held }
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeUIntBE(number, 5, 6)
  nonce[NONCE_BYTES - 1] = isLast ? 1 : 0
  return nonce
}
