import type pg from 'pg'
import { mapInTimeSlices } from '../../application/commands/time-slices.ts'
import type { Clock } from '../../application/ports/clock.ts'
import { ERASED, type PersonalData } from '../../application/ports/personal-data.ts'
import { type Sealed, subjectOf } from '../../domain/kernel/sealed.ts'
import { decrypt, encrypt, newKey, OVERHEAD_BYTES } from '../crypto/aes-gcm.ts'
import { Fingerprints } from '../crypto/fingerprints.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import { type DataKey, DataKeys, type DataKeysOptions } from './data-keys.ts'
import { PersonalDataKeys } from './personal-data-keys.ts'
import type { PostgresSecretVault } from './vault.ts'

/** A sealed value cannot be opened; the message carries neither plaintext nor key. */
export class SealedValueError extends Error {
  override readonly name = 'SealedValueError'
}

const PREFIX = 'sld1.'
const SUBJECT = /^[A-Za-z0-9/_:]{1,80}$/
/** Bytes of the number of the subject's data key, in front of the ciphertext. */
const GENERATION_BYTES = 2
/** Where the vault keeps the root of all fingerprints. */
export const FINGERPRINT_ROOT = 'system/fingerprint-root'

/**
 * Personal values under data keys of their subjects:
 * `sld1.<subject>.<base64url(generation 2 | iv 12 | tag 16 | ciphertext)>`, AES-256-GCM, bound to the context.
 *
 * Destroying a subject's key ends that generation for ever. A person that is reported again later, as the law
 * may demand, gets a key of the next generation; values of the destroyed one stay erased.
 */
export class EncryptedPersonalData implements PersonalData {
  readonly #keys: DataKeys
  readonly #fingerprints: Fingerprints

  private constructor(keys: DataKeys, fingerprints: Fingerprints) {
    this.#keys = keys
    this.#fingerprints = fingerprints
  }

  /**
   * Loads what sealing needs; the secret behind the fingerprints is made on the very first start.
   * @throws MasterKeyError when the master keys are not those of this database.
   */
  static async open(
    dependencies: { pool: pg.Pool; vault: PostgresSecretVault; masterKeys: MasterKeys; clock: Clock },
    options: DataKeysOptions = {},
  ): Promise<EncryptedPersonalData> {
    const { pool, vault, masterKeys, clock } = dependencies
    const fingerprints = await openFingerprints(vault)
    const keys = new DataKeys(new PersonalDataKeys(pool), masterKeys, clock, options)
    await keys.start()
    return new EncryptedPersonalData(keys, fingerprints)
  }

  async seal(
    items: readonly { subject: string; context: string; plaintext: string }[],
  ): Promise<readonly Sealed[]> {
    const subjects = new Set<string>()
    for (const { subject } of items) {
      if (!SUBJECT.test(subject)) throw new SealedValueError('The id of the data subject is malformed')
      subjects.add(subject)
    }
    const keys = await this.#keys.forSealing(subjects)
    const bindings = new Bindings()
    return mapInTimeSlices(items, ({ subject, context, plaintext }) =>
      sealWith(keys.get(subject)!, subject, bindings.of(context), plaintext),
    )
  }

  async open(items: readonly { value: Sealed; context: string }[]): Promise<readonly string[]> {
    if (items.length === 0) return []
    const keys = await this.#keys.forOpening([...new Set(items.map(({ value }) => subjectOf(value)))])
    return mapInTimeSlices(items, ({ value, context }) => openWith(keys, value, context))
  }

  keyGeneration(subject: string): Promise<number | null> {
    return this.#keys.generationOf(subject)
  }

  destroyKey(subject: string, generation: number): Promise<void> {
    return this.#keys.destroy(subject, generation)
  }

  subjectId(kind: 'person' | 'employer', identity: string): string {
    return this.#fingerprints.subjectId(kind, identity)
  }

  fingerprint(purpose: string, value: string): string {
    return this.#fingerprints.fingerprint(purpose, value)
  }
}

/**
 * The fingerprints of an installation; their root is made where there is none.
 * @throws MasterKeyError when the master keys are not those of this database.
 */
export async function openFingerprints(vault: PostgresSecretVault): Promise<Fingerprints> {
  return fingerprintsOf(await vault.getOrPut(FINGERPRINT_ROOT, () => newKey().toString('base64')))
}

/** The fingerprints of a root as the vault keeps it. */
export function fingerprintsOf(root: string): Fingerprints {
  return new Fingerprints(Buffer.from(root, 'base64'))
}

/** Contexts as bytes; the values of one batch share few of them. */
class Bindings {
  readonly #bytes = new Map<string, Buffer>()

  of(context: string): Buffer {
    let bytes = this.#bytes.get(context)
    if (!bytes) {
      bytes = Buffer.from(context)
      this.#bytes.set(context, bytes)
    }
    return bytes
  }
}

function sealWith({ key, generation }: DataKey, subject: string, context: Buffer, plaintext: string): Sealed {
  const payload = encrypt(key, context, Buffer.from(plaintext), GENERATION_BYTES)
  payload.writeUInt16BE(generation, 0)
  return `${PREFIX}${subject}.${payload.toString('base64url')}` as Sealed
}

function openWith(
  keys: ReadonlyMap<string, { generation: number; key: Buffer | null }>,
  value: Sealed,
  context: string,
): string {
  const subject = subjectOf(value)
  const current = keys.get(subject)
  if (!current) throw new SealedValueError(`There is no data key of ${subject}`)
  const payload = Buffer.from(value.slice(PREFIX.length + subject.length + 1), 'base64url')
  if (payload.length < GENERATION_BYTES + OVERHEAD_BYTES) {
    throw new SealedValueError(`A sealed value of ${subject} is cut short`)
  }
  const generation = payload.readUInt16BE(0)
  if (generation < current.generation) return ERASED
  if (generation > current.generation) {
    throw new SealedValueError(`A sealed value of ${subject} names a data key that does not exist`)
  }
  if (current.key === null) return ERASED
  try {
    return decrypt(current.key, context, payload.subarray(GENERATION_BYTES)).toString()
  } catch {
    throw new SealedValueError(`A sealed value of ${subject} was changed or belongs elsewhere`)
  }
}
