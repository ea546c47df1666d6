import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { fromBech32, toBech32 } from './bech32.ts'
import { SealBroken, seal, unseal } from './sealed-stream.ts'

/**
 * Files of age (age-encryption.org/v1) for one X25519 recipient: whoever holds the identity opens them with any program for
 * age, and without this service.
 */

const CIPHER = 'chacha20-poly1305'
const VERSION = 'age-encryption.org/v1'
const RECIPIENT = 'age'
const IDENTITY = 'AGE-SECRET-KEY-'
const WRAP_INFO = 'age-encryption.org/v1/X25519'
const KEY_BYTES = 32
const FILE_KEY_BYTES = 16
const NONCE_BYTES = 16
const MAC_BYTES = 32
const TAG_BYTES = 16
/** Bytes of a header at the most: ours has about 200, one for a hundred recipients about 12,000. */
const MOST_HEADER_BYTES = 64 * 1024
const NO_SALT = Buffer.alloc(0)
/** A wrapping key wraps one file key only. */
const NO_NONCE = Buffer.alloc(12)
/** What is in front of the bytes of a key in its DER form. */
const DER_PUBLIC = Buffer.from('302a300506032b656e032100', 'hex')
const DER_PRIVATE = Buffer.from('302e020100300506032b656e04220420', 'hex')

/** A file is no file of age, or none that this identity opens. The message says which, and nothing of the keys. */
export class AgeRefused extends Error {
  override readonly name = 'AgeRefused'
}

/** A pair of keys: files are sealed for the recipient, and only the identity opens them. */
export interface AgeKeys {
  /** Public: `age1…`. */
  readonly recipient: string
  /** Secret: `AGE-SECRET-KEY-1…`. */
  readonly identity: string
}

/** A new pair of keys. */
export function newAgeKeys(): AgeKeys {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  return {
    recipient: toBech32(RECIPIENT, rawOf(publicKey)),
    identity: toBech32(IDENTITY.toLowerCase(), rawOf(privateKey)).toUpperCase(),
  }
}

/** Whether a text is a recipient that files can be sealed for. */
export function isAgeRecipient(text: string): boolean {
  const bytes = fromBech32(RECIPIENT, text)
  if (bytes?.length !== KEY_BYTES) return false
  try {
    // a point of low order would make every secret the same
    sharedSecret(generateKeyPairSync('x25519').privateKey, publicKeyOf(bytes))
    return true
  } catch {
    return false
  }
}

/**
 * Seals a stream for a recipient.
 * @param recipient for which {@link isAgeRecipient} holds.
 * @throws AgeRefused
 */
export async function* sealForRecipient(
  recipient: string,
  plain: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const theirs = fromBech32(RECIPIENT, recipient)
  if (theirs?.length !== KEY_BYTES) throw new AgeRefused('The recipient is none')
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  const share = rawOf(publicKey)
  const fileKey = randomBytes(FILE_KEY_BYTES)
  const wrapKey = wrapKeyOf(sharedSecret(privateKey, publicKeyOf(theirs)), share, theirs)
  const wrapped = wrap(wrapKey, fileKey)
  const stanza = `-> X25519 ${base64(share)}\n${base64(wrapped)}\n`
  const head = `${VERSION}\n${stanza}---`
  const nonce = randomBytes(NONCE_BYTES)
  yield Buffer.concat([Buffer.from(`${head} ${base64(macOf(fileKey, head))}\n`), nonce])
  yield* seal(payloadKey(fileKey, nonce), plain, CIPHER)
}

/**
 * Opens what was sealed for the recipient of an identity; only at its end is it known to be all.
 * @throws AgeRefused where it is no such file; SealBroken where it was changed or cut.
 */
export async function* openWithIdentity(
  identity: string,
  sealed: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const text = identity.trim()
  // age writes keys in capitals, and takes no others
  const secret = text === text.toUpperCase() ? fromBech32(IDENTITY.toLowerCase(), text.toLowerCase()) : null
  if (secret?.length !== KEY_BYTES) throw new AgeRefused(`The key is none: it begins with ${IDENTITY}1`)
  const own = privateKeyOf(secret)
  const source = sealed[Symbol.asyncIterator]()
  const { head, mac, stanzas, rest } = await headerOf(source)
  const fileKey = fileKeyOf(own, stanzas)
  if (fileKey === null) throw new AgeRefused('The file is sealed for another key')
  if (mac.length !== MAC_BYTES || !timingSafeEqual(mac, macOf(fileKey, head))) throw new SealBroken()
  let held = rest
  while (held.length < NONCE_BYTES) {
    const next = await source.next()
    if (next.done) throw new SealBroken()
    held = Buffer.concat([held, next.value])
  }
  const payload = restOf(held.subarray(NONCE_BYTES), source)
  yield* unseal(payloadKey(fileKey, held.subarray(0, NONCE_BYTES)), payload, CIPHER)
}

interface Stanza {
  readonly args: readonly string[]
  readonly body: Buffer
}

/** The header of a file, and what came with it. @throws AgeRefused */
async function headerOf(source: AsyncIterator<Buffer>) {
  let bytes: Buffer = NO_SALT
  for (;;) {
    const end = /\n--- ([A-Za-z0-9+/]{43})\n/.exec(bytes.subarray(0, MOST_HEADER_BYTES).toString('latin1'))
    if (end) {
      const head = bytes.subarray(0, end.index + 4).toString('latin1')
      const lines = head.split('\n')
      if (lines[0] !== VERSION) break
      const stanzas: Stanza[] = []
      for (const line of lines.slice(1, -1)) {
        if (line.startsWith('-> ')) stanzas.push({ args: line.slice(3).split(' '), body: NO_SALT })
        else {
          const last = stanzas.pop()
          if (last) stanzas.push({ ...last, body: Buffer.concat([last.body, Buffer.from(line, 'base64')]) })
        }
      }
      const rest = bytes.subarray(end.index + end[0].length)
      return { head, mac: Buffer.from(end[1]!, 'base64'), stanzas, rest }
    }
    if (bytes.length > MOST_HEADER_BYTES) break
    const next = await source.next()
    if (next.done) break
    bytes = Buffer.concat([bytes, next.value])
  }
  throw new AgeRefused('The file is no sealed file (age-encryption.org/v1)')
}

function fileKeyOf(own: KeyObject, stanzas: readonly Stanza[]): Buffer | null {
  const recipient = rawOf(createPublicKey(own))
  for (const { args, body } of stanzas) {
    const share = Buffer.from(args[1] ?? '', 'base64')
    if (args[0] !== 'X25519' || share.length !== KEY_BYTES) continue
    try {
      const wrapKey = wrapKeyOf(sharedSecret(own, publicKeyOf(share)), share, recipient)
      if (body.length === FILE_KEY_BYTES + TAG_BYTES) return unwrap(wrapKey, body)
    } catch {
      // it is for somebody else
    }
  }
  return null
}

function wrapKeyOf(secret: Buffer, share: Buffer, recipient: Buffer): KeyObject {
  return derived(secret, Buffer.concat([share, recipient]), WRAP_INFO)
}

function payloadKey(fileKey: Buffer, nonce: Buffer): KeyObject {
  return derived(fileKey, nonce, 'payload')
}

function macOf(fileKey: Buffer, head: string): Buffer {
  return createHmac('sha256', derived(fileKey, NO_SALT, 'header'))
    .update(head)
    .digest()
}

function derived(secret: Buffer, salt: Buffer, info: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret, salt, info, KEY_BYTES)))
}

function sharedSecret(privateKey: KeyObject, publicKey: KeyObject): Buffer {
  return diffieHellman({ privateKey, publicKey })
}

function rawOf(key: KeyObject): Buffer {
  const der = key.export({ format: 'der', type: key.type === 'private' ? 'pkcs8' : 'spki' } as never)
  return (der as unknown as Buffer).subarray(-KEY_BYTES)
}

function publicKeyOf(bytes: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([DER_PUBLIC, bytes]), format: 'der', type: 'spki' })
}

function privateKeyOf(bytes: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([DER_PRIVATE, bytes]), format: 'der', type: 'pkcs8' })
}

function wrap(key: KeyObject, fileKey: Buffer): Buffer {
  const cipher = createCipheriv(CIPHER, key, NO_NONCE, { authTagLength: TAG_BYTES })
  return Buffer.concat([cipher.update(fileKey), cipher.final(), cipher.getAuthTag()])
}

/** @throws where it was wrapped under another key. */
function unwrap(key: KeyObject, wrapped: Buffer): Buffer {
  const decipher = createDecipheriv(CIPHER, key, NO_NONCE, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(wrapped.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(wrapped.subarray(0, -TAG_BYTES)), decipher.final()])
}

async function* restOf(first: Buffer, source: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first
  for (let next = await source.next(); !next.done; next = await source.next()) yield next.value
}

/** Base64 without its padding, as age writes it. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
