import {
  type Checkpoint,
  readNote,
  signaturesOn,
  type Verifier,
  verifierOf,
  type Witnessed,
} from './checkpoint-note.ts'
import type { ConsistencyProof, InclusionProof } from './log-tree.ts'
import { isConsistent, isIncluded, leafHash } from './merkle.ts'

/** What a proof shows, once it was checked. */
export type CheckedProof =
  | {
      readonly kind: 'inclusion'
      readonly event_id: string
      readonly stream: string
      readonly revision: number
      readonly type: string
      readonly leaf_index: number
      readonly size: number
      readonly signed_by: string
      /** Of those that are trusted. */
      readonly witnesses: readonly Witnessed[]
    }
  | {
      readonly kind: 'consistency'
      readonly from: number
      readonly to: number
      readonly signed_by: string
      readonly witnesses: readonly Witnessed[]
    }

/** A proof that proves nothing; the message says why. */
export class ProofFails extends Error {}

/**
 * Checks a proof with nothing but itself and keys.
 * @param keys verifier keys that are trusted, of the log, and of witnesses.
 * @throws ProofFails; Error where a text is no verifier key.
 */
export function checkProof(proof: InclusionProof | ConsistencyProof, keys: readonly string[]): CheckedProof {
  const path = proof.path.map((hash) => Buffer.from(hash, 'base64'))
  if (proof.kind === 'consistency') {
    if (proof.from === null) {
      throw new ProofFails('The earlier checkpoint is not in it: put the note that you kept there, as `from`')
    }
    const [from, to] = [checkedNote(proof.from, keys), checkedNote(proof.to, keys)]
    if (from.origin !== to.origin) throw new ProofFails('The two checkpoints are of different logs')
    if (!isConsistent(path, from, to)) {
      throw new ProofFails(`The log of ${from.size} events is not the beginning of that of ${to.size}`)
    }
    const witnesses = from.size === to.size ? to.witnesses : [...from.witnesses, ...to.witnesses]
    return { kind: 'consistency', from: from.size, to: to.size, signed_by: to.signedBy, witnesses }
  }
  const { size, root, signedBy: signed_by, witnesses } = checkedNote(proof.checkpoint, keys)
  const { event_id, leaf_index } = proof
  const leaf = Buffer.from(proof.leaf, 'base64')
  const [stream = '', revision, eventId, type = ''] = leaf.toString().split('\0')
  if (eventId !== event_id) throw new ProofFails(`The leaf is not that of event ${event_id}`)
  if (!isIncluded(path, { index: leaf_index, size, root, leaf: leafHash(leaf) })) {
    throw new ProofFails(`The event is not at index ${leaf_index} of the log of ${size} events`)
  }
  return {
    kind: 'inclusion',
    event_id,
    stream,
    revision: Number(revision),
    type,
    leaf_index,
    size,
    signed_by,
    witnesses,
  }
}

function verifierIn(text: string): Verifier {
  const verifier = verifierOf(text)
  if (!verifier) throw new Error(`${text} is no verifier key`)
  return verifier
}

/**
 * The checkpoint that a note states, the name of the log's key that signed it, and the witnesses that did.
 * @param keys verifier keys that are trusted, of the log, and of witnesses.
 * @throws ProofFails; Error where a text is no verifier key.
 */
export function checkedNote(
  note: string,
  keys: readonly string[],
): Checkpoint & { readonly signedBy: string; readonly witnesses: readonly Witnessed[] } {
  const verifiers = keys.map(verifierIn)
  const checkpoint = readNote(note)
  if (!checkpoint) throw new ProofFails('The checkpoint cannot be read')
  const signatures = signaturesOn(note, verifiers)
  if (!signatures) throw new ProofFails('A signature of the checkpoint does not fit it')
  if (signatures.signer === null) {
    throw new ProofFails('No key that is trusted has signed the checkpoint')
  }
  const witnesses = signatures.cosignatures.map((one) => ({ ...one, size: checkpoint.size }))
  return { ...checkpoint, signedBy: signatures.signer, witnesses }
}
