import { type Checkpoint, readNote, signedBy, type Verifier, verifierOf } from './checkpoint-note.ts'
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
    }
  | { readonly kind: 'consistency'; readonly from: number; readonly to: number; readonly signed_by: string }

/** A proof that proves nothing; the message says why. */
export class ProofFails extends Error {}

/**
 * Checks a proof with nothing but itself and keys.
 * @param keys verifier keys that are trusted, at least one.
 * @throws ProofFails; Error where a text is no verifier key.
 */
export function checkProof(proof: InclusionProof | ConsistencyProof, keys: readonly string[]): CheckedProof {
  const path = proof.path.map((hash) => Buffer.from(hash, 'base64'))
  if (proof.kind === 'consistency') {
    const [from, to] = [checkedNote(proof.from, keys), checkedNote(proof.to, keys)]
    if (from.origin !== to.origin) throw new ProofFails('The two checkpoints are of different logs')
    if (!isConsistent(path, from, to)) {
      throw new ProofFails(`The log of ${from.size} events is not the beginning of that of ${to.size}`)
    }
    return { kind: 'consistency', from: from.size, to: to.size, signed_by: to.signedBy }
  }
  const { size, root, signedBy: signed_by } = checkedNote(proof.checkpoint, keys)
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
  }
}

function verifierIn(text: string): Verifier {
  const verifier = verifierOf(text)
  if (!verifier) throw new Error(`${text} is no verifier key`)
  return verifier
}

/**
 * The checkpoint that a note states, and the name of the key that signed it.
 * @param keys verifier keys that are trusted, at least one.
 * @throws ProofFails; Error where a text is no verifier key.
 */
export function checkedNote(
  note: string,
  keys: readonly string[],
): Checkpoint & { readonly signedBy: string } {
  const verifiers = keys.map(verifierIn)
  const checkpoint = readNote(note)
  if (!checkpoint) throw new ProofFails('The checkpoint cannot be read')
  const name = signedBy(note, verifiers)
  if (name === null) throw new ProofFails('No key that is trusted has signed the checkpoint')
  return { ...checkpoint, signedBy: name }
}
