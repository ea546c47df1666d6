import type { Sealed } from '../../domain/kernel/sealed.ts'

/** Shown in place of a personal value whose data key was destroyed. */
export const ERASED = '(erased)'

/** Seals and opens personal values under one data key per data subject (AES-256-GCM). */
export interface PersonalData {
  /**
   * Seals values. Missing data keys are made and stored (wrapped by the master key) before this
   * returns; all keys of one call are fetched and stored together.
   * @param items.subject data subject id, see {@link subjectId}.
   * @param items.context what the ciphertext is bound to, as its event type declares.
   */
  seal(items: readonly { subject: string; context: string; plaintext: string }[]): Promise<readonly Sealed[]>
  /** Opens values; {@link ERASED} for each whose key was destroyed. @throws when a value was tampered with or bound elsewhere. */
  open(items: readonly { value: Sealed; context: string }[]): Promise<readonly string[]>
  /**
   * Which data key of a subject is its latest, destroyed or not, counted from 1; null when it never
   * had one. A person that is sealed again after a destruction gets the next one.
   */
  keyGeneration(subject: string): Promise<number | null>
  /** Destroys one data key of a subject, for ever, in every process; later ones stay. Idempotent. */
  destroyKey(subject: string, generation: number): Promise<void>
  /**
   * Stable id of a data subject, `<kind>/<24 hex>`, a keyed fingerprint of what identifies it.
   * Synchronous: it needs no key of the subject.
   */
  subjectId(kind: 'person' | 'employer', identity: string): string
  /** Keyed fingerprint (24 hex) of a value, for reservations and look-ups. */
  fingerprint(purpose: string, value: string): string
}

/** Keeps secrets that must be recoverable (HMAC keys), envelope-encrypted, outside the log. */
export interface SecretVault {
  /** Stores a secret under a reference; the same reference again is refused unless the secret is the same. */
  put(ref: string, secret: string): Promise<void>
  /** @returns null when there is no such reference. */
  get(ref: string): Promise<string | null>
  /** The secret under a reference; where there is none, the one that `make` returns is stored. Of two at once the first counts. */
  getOrPut(ref: string, make: () => string): Promise<string>
  /** Forgets a secret that nothing names any more. Idempotent. */
  remove(ref: string): Promise<void>
}
