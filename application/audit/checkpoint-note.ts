import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { HASH_BYTES, type Hash } from './merkle.ts'

/**
 * Signed checkpoints of a log in the forms of C2SP: `tlog-checkpoint` within a `signed-note` by Ed25519. The text is
 * the origin, the number of leaves and the root in base64, a line each; a signature is a line of its own behind an empty one.
 * Witnesses sign beside the log, by `tlog-cosignature`.
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

/** Types of signatures, by `signed-note`: of the text, and of witnesses, with a time. */
const ED25519 = 1
const COSIGNATURE = 4
/** What stands before the 32 bytes of an Ed25519 key in PKCS #8 and in SPKI (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
const KEY_HASH_BYTES = 4
const TIME_BYTES = 8
/** The end of the year 9999, the last that a date of ISO 8601 shows, in seconds. */
const LAST_SECOND = 253_402_300_799n
/** How far the clock of a witness may be ahead, in milliseconds. */
const AHEAD_MS = 300_000
const SIGNATURE_LINE = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/

/** @param seed 32 bytes. */
export function signerOf(name: string, seed: Buffer): Signer {
  const key = Buffer.concat([PRIVATE_PREFIX, seed])
  return { name, privateKey: createPrivateKey({ key, format: 'der', type: 'pkcs8' }) }
}

/** The public half of a signer, as `signed-note` writes verifier keys: `name+hash+key`. */
export function verifierKey({ name, privateKey }: Signer): string {
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-HASH_BYTES)
  const key = Buffer.concat([Buffer.from([ED25519]), publicKey])
  return `${name}+${keyHash(name, key).toString('hex')}+${key.toString('base64')}`
}

/** A checkpoint as a signed note. */
export function signedNote({ origin, size, root }: Checkpoint, signer: Signer): string {
  const text = `${origin}\n${size}\n${root.toString('base64')}\n`
  const [, hash] = verifierKey(signer).split('+') as [string, string]
  const signature = sign(null, Buffer.from(text), signer.privateKey)
  return `${text}\n${lineOf({ name: signer.name, hash: Buffer.from(hash, 'hex'), bytes: signature })}`
}

/** The checkpoint that a note states; its signatures are not checked. @returns null where it states none. */
export function readNote(note: string): Checkpoint | null {
  const [origin = '', count = '', hash = ''] = note.split('\n')
  const root = Buffer.from(hash, 'base64')
  const isCheckpoint = origin !== '' && /^(0|[1-9]\d{0,15})$/.test(count) && root.length === HASH_BYTES
  return isCheckpoint ? { origin, size: Number(count), root } : null
}

/** A public key, as signatures are checked with it. */
export interface Verifier {
  readonly name: string
  /** What its signatures begin with. */
  readonly hash: Buffer
  /** Whether it is a witness's, which signs that it saw the checkpoint, and when. */
  readonly isWitness: boolean
  readonly publicKey: KeyObject
}

/** That a witness saw a checkpoint, and none of the same log that contradicts it. */
export interface Cosignature {
  /** Name of its key. */
  readonly witness: string
  /** Hex: what tells keys of one name apart. */
  readonly key_id: string
  /** By the witness's clock, in ISO 8601. */
  readonly signed_at: string
}

/** That a witness saw the checkpoint of so many events. */
export interface Witnessed extends Cosignature {
  readonly size: number
}

/** Who signed a note. */
export interface Signatures {
  /** Name of the log's key; null: none that is trusted. */
  readonly signer: string | null
  readonly cosignatures: readonly Cosignature[]
}

/**
 * Whose signatures of these keys a note has; those of other keys are ignored.
 * @returns null where the note cannot be read, or one of these keys did not make what stands there as its signature.
 */
export function signaturesOn(note: string, verifiers: readonly Verifier[]): Signatures | null {
  const { isSound, ...signatures } = soundnessOf(note, verifiers)
  return isSound ? signatures : null
}

/** Whose signatures of these keys a note has, and whether {@link signaturesOn} takes it: what holds on one that it does not. */
export function soundnessOf(
  note: string,
  verifiers: readonly Verifier[],
): Signatures & { readonly isSound: boolean } {
  const { text, lines } = partsOf(note)
  let isSound = true
  let signer: string | null = null
  const cosignatures: Cosignature[] = []
  const seen = new Set<Verifier>()
  for (const line of lines) {
    const signature = signatureIn(line)
    const by = signature && verifiers.find((verifier) => isOf(signature, verifier))
    if (!by) {
      isSound &&= signature !== null
      continue
    }
    // of one key the first counts
    if (seen.has(by)) continue
    const signed_at = cosignedAt(text, signature, by)
    if (signed_at !== null) {
      cosignatures.push({ witness: by.name, key_id: by.hash.toString('hex'), signed_at })
    } else if (!by.isWitness && verify(null, Buffer.from(text), by.publicKey, signature.bytes)) {
      signer ??= by.name
    } else {
      isSound = false
      continue
    }
    seen.add(by)
  }
  return { signer, cosignatures, isSound }
}

/**
 * Whether a note has a signature of one of these keys.
 * @returns the name of the key that signed it, null where none did.
 */
export function signedBy(note: string, verifiers: readonly Verifier[]): string | null {
  return signaturesOn(note, verifiers)?.signer ?? null
}

/** Whether others than the log have signed a note; their signatures are not checked. */
export function isCosigned(note: string): boolean {
  return (note.match(/^— /gm) ?? []).length > 1
}

/**
 * Whether a note is another one with other signatures, of the same keys or of more; none is checked. A line of the other
 * one that cannot be read has to stay.
 */
export function isSignedFurther(note: string, other: string): boolean {
  const [one, before] = [partsOf(note), partsOf(other)]
  const keys = new Set(one.lines.map(keyOf))
  return note !== other && one.text === before.text && before.lines.every((line) => keys.has(keyOf(line)))
}

/** A cosignature that is not attached. */
export class CosignatureRefused extends Error {
  readonly reason: 'unreadable' | 'unknown_witness' | 'wrong_cosignature'
  constructor(reason: CosignatureRefused['reason'], message: string) {
    super(message)
    this.name = 'CosignatureRefused'
    this.reason = reason
  }
}

/**
 * A note with cosignatures of witnesses behind what it has. Of each witness the latest stays; lines of unknown keys among
 * those that come are ignored. What nobody can read, or a witness did not make, is gone from the note then.
 * @param lines as witnesses answer them: `— name base64`, one or more.
 * @param witnesses keys that are trusted.
 * @param now epoch milliseconds.
 * @throws CosignatureRefused
 */
export function cosigned(note: string, lines: string, witnesses: readonly Verifier[], now: number): string {
  const { text, lines: before } = partsOf(note)
  const signed = (line: string) => {
    const signature = signatureIn(line)
    const by = signature && witnesses.find((one) => isOf(signature, one))
    const signed_at = by ? cosignedAt(text, signature, by) : null
    return { signature, by, at: signed_at === null ? null : Date.parse(signed_at) }
  }
  const given = lines.trim().split(/\r?\n/).map(signed)
  if (given.some(({ signature }) => !signature)) {
    throw new CosignatureRefused('unreadable', 'must be lines of a signed note: `— <name> <base64>`')
  }
  const taken = given.filter(({ by }) => by)
  if (taken.length === 0) {
    throw new CosignatureRefused('unknown_witness', 'is by a key that is not in AUDIT_WITNESS_KEYS')
  }
  for (const { by, at } of taken) refuseWrong(by!, at, now)
  const all = [...before.map(signed), ...taken]
  const latest = new Map<Verifier, (typeof all)[number]>()
  for (const one of all) {
    if (one.by && one.at !== null && one.at > (latest.get(one.by)?.at ?? -1)) latest.set(one.by, one)
  }
  const kept = all.flatMap((one) =>
    one.signature && (!one.by || latest.get(one.by) === one) ? one.signature : [],
  )
  return `${text}\n${kept.map(lineOf).join('')}`
}

/** @param at when the witness signed, null: it did not. Epoch milliseconds, as `now`. @throws CosignatureRefused */
function refuseWrong({ name }: Verifier, at: number | null, now: number): void {
  const refused = (why: string) => new CosignatureRefused('wrong_cosignature', why)
  if (at === null) throw refused(`is not what ${name} makes of this checkpoint`)
  if (at === 0) throw refused(`of ${name} has no time`)
  if (at > now + AHEAD_MS) throw refused(`of ${name} is of a time ahead of the clock`)
}

/** The text of a checkpoint, and the lines of its signatures; one of these is empty where the note does not end as it should. */
function partsOf(note: string): { readonly text: string; readonly lines: readonly string[] } {
  // the text of a checkpoint has no empty line
  const end = note.indexOf('\n\n')
  if (end < 0) return { text: note, lines: [''] }
  const lines = note.slice(end + 2).split('\n')
  return { text: note.slice(0, end + 1), lines: lines.at(-1) === '' ? lines.slice(0, -1) : [...lines, ''] }
}

interface SignatureLine {
  readonly name: string
  readonly hash: Buffer
  readonly bytes: Buffer
}

function signatureIn(line: string): SignatureLine | null {
  const [, name, encoded = ''] = SIGNATURE_LINE.exec(line) ?? []
  const signed = Buffer.from(encoded, 'base64')
  if (name === undefined || signed.length <= KEY_HASH_BYTES) return null
  return { name, hash: signed.subarray(0, KEY_HASH_BYTES), bytes: signed.subarray(KEY_HASH_BYTES) }
}

function lineOf({ name, hash, bytes }: SignatureLine): string {
  return `— ${name} ${Buffer.concat([hash, bytes]).toString('base64')}\n`
}

/** What tells whose a line is; one that cannot be read is nobody's but itself. */
function keyOf(line: string): string {
  const signature = signatureIn(line)
  return signature ? `${signature.name} ${signature.hash.toString('hex')}` : line
}

function isOf({ name, hash }: SignatureLine, verifier: Verifier): boolean {
  return name === verifier.name && hash.equals(verifier.hash)
}

/** When a witness signed a text, in ISO 8601; null where it did not. */
function cosignedAt(
  text: string,
  { bytes }: SignatureLine,
  { publicKey, isWitness }: Verifier,
): string | null {
  if (!isWitness || bytes.length <= TIME_BYTES) return null
  const seconds = bytes.readBigUInt64BE()
  const message = Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`)
  if (seconds > LAST_SECOND || !verify(null, message, publicKey, bytes.subarray(TIME_BYTES))) return null
  return new Date(Number(seconds) * 1_000).toISOString()
}

/** A verifier key in the form of `signed-note`, of a log or of a witness. @returns null where a text is none of Ed25519. */
export function verifierOf(text: string): Verifier | null {
  const [, name = '', hash = '', encoded = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? []
  const key = Buffer.from(encoded, 'base64')
  const isKey = key.length === 1 + HASH_BYTES && (key[0] === ED25519 || key[0] === COSIGNATURE)
  if (!isKey || keyHash(name, key).toString('hex') !== hash) return null
  const der = Buffer.concat([PUBLIC_PREFIX, key.subarray(1)])
  return {
    name,
    hash: Buffer.from(hash, 'hex'),
    isWitness: key[0] === COSIGNATURE,
    publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }),
  }
}

function keyHash(name: string, key: Buffer): Buffer {
  return createHash('sha256').update(`${name}\n`).update(key).digest().subarray(0, KEY_HASH_BYTES)
}
