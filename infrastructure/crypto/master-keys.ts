import { createHash, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { ConfigError } from '../config-error.ts'
import { decrypt, encrypt, KEY_BYTES, OVERHEAD_BYTES } from './aes-gcm.ts'

/** Bytes of a data key wrapped by a master key. */
export const WRAPPED_BYTES = OVERHEAD_BYTES + KEY_BYTES

/** A data key, encrypted under a master key. */
export interface WrappedKey {
  readonly wrapped: Buffer
  readonly masterKeyId: string
}

/** The master keys given do not fit what is stored; the message is one line without secrets. */
export class MasterKeyError extends ConfigError {
  override readonly name = 'MasterKeyError'
}

/** The keys that wrap data keys: the first wraps, the others only unwrap what was wrapped before a rotation. */
export class MasterKeys {
  readonly #keys = new Map<string, KeyObject>()
  /** Id of the key that wraps. */
  readonly currentId: string

  /** @param keys 32 bytes each, the current one first, at least one. */
  constructor(keys: readonly Buffer[]) {
    for (const key of keys) {
      if (key.length !== KEY_BYTES) throw new MasterKeyError(`A master key has ${KEY_BYTES} bytes`)
      this.#keys.set(keyId(key), createSecretKey(key))
    }
    const [first] = this.#keys.keys()
    if (first === undefined) throw new MasterKeyError('There is no master key')
    this.currentId = first
  }

  /** Encrypts a data key under the current master key, bound to what it is for. */
  wrap(dataKey: Buffer, purpose: string): WrappedKey {
    return {
      wrapped: encrypt(this.#keys.get(this.currentId)!, purpose, dataKey),
      masterKeyId: this.currentId,
    }
  }

  /** @throws MasterKeyError when its master key is not among the keys, or it was changed or moved. */
  unwrap({ wrapped, masterKeyId }: WrappedKey, purpose: string): Buffer {
    const key = this.#keys.get(masterKeyId)
    if (!key) {
      throw new MasterKeyError(
        `MASTER_KEY does not contain the key ${masterKeyId} that ${purpose} is wrapped with`,
      )
    }
    try {
      return decrypt(key, purpose, wrapped)
    } catch {
      throw new MasterKeyError(`The stored key of ${purpose} was changed, it cannot be unwrapped`)
    }
  }

  /** Whether a key is among them. */
  has(masterKeyId: string): boolean {
    return this.#keys.has(masterKeyId)
  }

  /**
   * A key of 32 bytes for one use, by HKDF-SHA256: it tells nothing of the master key.
   * @param salt what makes it another one than all others for the same use.
   * @throws MasterKeyError when the master key is not among the keys.
   */
  derive(masterKeyId: string, salt: Buffer, use: string): KeyObject {
    const key = this.#keys.get(masterKeyId)
    if (!key) throw new MasterKeyError(`MASTER_KEY does not contain the key ${masterKeyId} of the ${use}`)
    return createSecretKey(Buffer.from(hkdfSync('sha256', key, salt, `compstream ${use}`, KEY_BYTES)))
  }
}

/** Names a master key without telling anything about it. */
function keyId(key: Buffer): string {
  return createHash('sha256').update('compstream master key id').update(key).digest('hex').slice(0, 16)
}
