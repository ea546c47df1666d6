import { createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto'
import { RandomPool } from '../randomness.ts'

export const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
/** Bytes that encryption adds to a plaintext. */
export const OVERHEAD_BYTES = IV_BYTES + TAG_BYTES

const random = new RandomPool()

/** A new random 256-bit key. */
export function newKey(): Buffer {
  const key = Buffer.allocUnsafe(KEY_BYTES)
  random.fill(key, 0, KEY_BYTES)
  return key
}

/**
 * AES-256-GCM under a fresh random initialization vector: `iv 12 | tag 16 | ciphertext`.
 * @param aad what the ciphertext is bound to; decryption needs the same.
 * @param headroom bytes to leave free in front of the result, for a header of the caller.
 */
export function encrypt(
  key: Buffer | KeyObject,
  aad: string | Buffer,
  plaintext: Buffer,
  headroom = 0,
): Buffer {
  const out = Buffer.allocUnsafe(headroom + OVERHEAD_BYTES + plaintext.length)
  const tagAt = headroom + IV_BYTES
  random.fill(out, headroom, IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, out.subarray(headroom, tagAt))
  cipher.setAAD(typeof aad === 'string' ? Buffer.from(aad) : aad)
  out.set(cipher.update(plaintext), tagAt + TAG_BYTES)
  cipher.final()
  out.set(cipher.getAuthTag(), tagAt)
  return out
}

/** Reverses {@link encrypt}. @throws when a byte was changed, or key or aad is not the one used then. */
export function decrypt(key: Buffer | KeyObject, aad: string, sealed: Buffer): Buffer {
  if (sealed.length < OVERHEAD_BYTES) throw new Error('The ciphertext is too short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(typeof aad === 'string' ? Buffer.from(aad) : aad)
  decipher.setAuthTag(sealed.subarray(IV_BYTES, OVERHEAD_BYTES))
  const head = decipher.update(sealed.subarray(OVERHEAD_BYTES))
  const tail = decipher.final()
  return tail.length === 0 ? head : Buffer.concat([head, tail])
}
