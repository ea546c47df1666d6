import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/**
 * Keyed fingerprints (HMAC-SHA256) of identifying values, under keys derived from one secret that
 * never changes: fingerprints stand in the log for ever, so they must survive rotations of the master key.
 */
export class Fingerprints {
  readonly #subjects: KeyObject
  readonly #values: KeyObject
  /** Key check value, 24 hex characters: tells roots apart, and nothing about them. */
  readonly keyCheckValue: string

  /** @param root 32 secret bytes, the same in every process for the life of the data. */
  constructor(root: Buffer) {
    this.#subjects = derive(root, 'data subjects')
    this.#values = derive(root, 'values')
    this.keyCheckValue = digest(derive(root, 'key check values'), 'root', '')
  }

  /** `<kind>/<24 hex>`. */
  subjectId(kind: string, identity: string): string {
    return `${kind}/${digest(this.#subjects, kind, identity)}`
  }

  /** 24 hex characters; the same value under another purpose looks unrelated. */
  fingerprint(purpose: string, value: string): string {
    return digest(this.#values, purpose, value)
  }
}

function derive(root: Buffer, use: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', root, '', `compstream fingerprints of ${use}`, 32)))
}

function digest(key: KeyObject, scope: string, value: string): string {
  return createHmac('sha256', key).update(`${scope}\0${value}`).digest('hex').slice(0, 24)
}
