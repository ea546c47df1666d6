import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { HASH_BYTES, type Hash } from './merkle.ts'

/**
 * Signed checkpoints of a log in the forms of C2SP: `tlog-checkpoint` within a `signed-note` by Ed25519. The text is
 * the origin, the number of leaves and the root in base64, a line each; a signature is a line of its own behind an empty one.
 */

/** How a log stood. */
export interface Checkpoint {
  /** Whose log it is. */
  readonly origin: string
  /** Events. */
  readonly size: number
  readonly root: Hash
}

/** A key that signs checkpoints, and its name in signatures. */
export interface Signer {
  readonly name: string
  readonly privateKey: KeyObject
}

const ED25519 = Buffer.from([1])
/** What stands before the 32 bytes of an Ed25519 key in PKCS #8 and in SPKI (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
const KEY_HASH_BYTES = 4
const SIGNATURE_LINE = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/

/** @param seed 32 bytes. */
export function signerOf(name: string, seed: Buffer): Signer {
  const key = Buffer.concat([PRIVATE_PREFIX, seed])
  return { name, privateKey: createPrivateKey({ key, format: 'der', type: 'pkcs8' }) }
}

/** The public half of a signer, as `signed-note` writes verifier keys: `name+hash+key`. */
export function verifierKey({ name, privateKey }: Signer): string {
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-HASH_BYTES)
  const key = Buffer.concat([ED25519, publicKey])
  return `${name}+${keyHash(name, key).toString('hex')}+${key.toString('base64')}`
}

/** A checkpoint as a signed note. */
export function signedNote({ origin, size, root }: Checkpoint, signer: Signer): string {
  const text = `${origin}\n${size}\n${root.toString('base64')}\n`
  const [, hash] = verifierKey(signer).split('+') as [string, string]
  const signature = sign(null, Buffer.from(text), signer.privateKey)
  const line = Buffer.concat([Buffer.from(hash, 'hex'), signature]).toString('base64')
  return `${text}\n— ${signer.name} ${line}\n`
}

/** The checkpoint that a note states; its signatures are not checked. @returns null where it states none. */
export function readNote(note: string): Checkpoint | null {
  const [origin = '', count = '', hash = ''] = note.split('\n')
  const root = Buffer.from(hash, 'base64')
  const isCheckpoint = origin !== '' && /^(0|[1-9]\d{0,15})$/.test(count) && root.length === HASH_BYTES
  return isCheckpoint ? { origin, size: Number(count), root } : null
}

/** The public half of a signer, as signatures are checked with it. */
export interface Verifier {
  readonly name: string
  /** What its signatures begin with. */
  readonly hash: Buffer
  readonly publicKey: KeyObject
}

/**
 * Whether a note has a signature of one of these keys.
 * @returns the name of the key that signed it, null where none did.
 */
export function signedBy(note: string, verifiers: readonly Verifier[]): string | null {
  const end = note.lastIndexOf('\n\n')
  if (end < 0 || !note.endsWith('\n')) return null
  const text = Buffer.from(note.slice(0, end + 1))
  for (const line of note.slice(end + 2, -1).split('\n')) {
    const [, signer, encoded = ''] = SIGNATURE_LINE.exec(line) ?? []
    const signed = Buffer.from(encoded, 'base64')
    for (const { name, hash, publicKey } of verifiers) {
      const isOfKey = signer === name && signed.subarray(0, KEY_HASH_BYTES).equals(hash)
      if (isOfKey && verify(null, text, publicKey, signed.subarray(KEY_HASH_BYTES))) return name
    }
  }
  return null
}

/** A verifier key in the form of `signed-note`. @returns null where a text is none of Ed25519. */
export function verifierOf(text: string): Verifier | null {
  const [, name = '', hash = '', encoded = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? []
  const key = Buffer.from(encoded, 'base64')
  const isKey = key.length === 1 + HASH_BYTES && key[0] === ED25519[0]
  if (!isKey || keyHash(name, key).toString('hex') !== hash) return null
  const der = Buffer.concat([PUBLIC_PREFIX, key.subarray(1)])
  return {
    name,
    hash: Buffer.from(hash, 'hex'),
    publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }),
  }
}

function keyHash(name: string, key: Buffer): Buffer {
  return createHash('sha256').update(`${name}\n`).update(key).digest().subarray(0, KEY_HASH_BYTES)
}
