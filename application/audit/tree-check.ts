import { mapInTimeSlices } from '../commands/time-slices.ts'
import type { EventLog, StoredEvent } from '../ports/event-log.ts'
import type { LogTreeStore, TreeEnd } from '../ports/log-tree-store.ts'
import {
  type Checkpoint,
  type Cosignature,
  readNote,
  soundnessOf,
  type Verifier,
  type Witnessed,
} from './checkpoint-note.ts'
import { idAt } from './event-ids.ts'
import { leafOf } from './leaf.ts'
import { GrowingRoot, HASH_BYTES, type Hash, leafHash } from './merkle.ts'
import { TILE_HASHES } from './tree-tiles.ts'

/**
 * How the log differs from the tree that was made of it: an event was changed, put in, taken out, or stands in another place;
 * `differs_from_checkpoint`: somewhere before the end of a checkpoint; `damaged_tree`: the tree was changed, not the log.
 */
export type TreeProblem =
  | 'changed_event'
  | 'inserted_event'
  | 'removed_event'
  | 'reordered_events'
  | 'differs_from_checkpoint'
  | 'damaged_tree'

/** Where the log differs, and by which event. */
export interface TreeDifference {
  readonly problem: TreeProblem
  readonly at: Pick<StoredEvent, 'position' | 'stream' | 'revision'>
  /** Of the event that is another, new or gone; null where that is not known. */
  readonly eventId: string | null
}

/** What is known of the tree beside the log. */
export interface TreeEvidence {
  readonly log: EventLog
  readonly store: Pick<LogTreeStore, 'end' | 'tiles' | 'checkpoints'>
  /** Keys that are trusted, of witnesses as well. */
  verifiers(): Promise<readonly Verifier[]>
  /** Signed notes that are kept outside the database. */
  copies(): Promise<readonly string[]>
}

/** A checkpoint that a trusted key signed, and the witnesses that signed it as well. */
interface Trusted extends Checkpoint {
  readonly cosignatures: readonly Cosignature[]
}

/** Holds the events of the log, in order, against the tree that was made of it and all checkpoints. */
export class TreeCheck {
  readonly #evidence: TreeEvidence
  /** How far the stored tree can be compared. */
  readonly #end: TreeEnd
  /** Ascending. */
  readonly #checkpoints: readonly Trusted[]
  readonly #areAllSound: boolean
  #next = 0
  readonly #read = new GrowingRoot()
  #tile: { readonly index: number; readonly hashes: Buffer; readonly eventIds: Buffer } | undefined
  #suspect: TreeDifference | null = null

  private constructor(
    evidence: TreeEvidence,
    end: TreeEnd,
    signed: readonly Trusted[],
    areAllSound: boolean,
  ) {
    this.#evidence = evidence
    this.#end = end
    this.#checkpoints = signed.toSorted((one, other) => one.size - other.size)
    this.#areAllSound = areAllSound
  }

  /** Recalls what there is, before the log is read. */
  static async open(evidence: TreeEvidence): Promise<TreeCheck> {
    const { log, store } = evidence
    const end = await store.end()
    const verifiers = await evidence.verifiers()
    const kept = await store.checkpoints(Number.MAX_SAFE_INTEGER)
    const notes = [...kept.map(({ note }) => note), ...(await evidence.copies())]
    const read = await mapInTimeSlices(notes, (note) => ({
      checkpoint: readNote(note),
      ...soundnessOf(note, verifiers),
    }))
    // what the log signed holds, whatever somebody wrote behind
    const signed = read.flatMap(({ checkpoint, signer, isSound, cosignatures }) =>
      checkpoint && signer !== null ? [{ ...checkpoint, cosignatures: isSound ? cosignatures : [] }] : [],
    )
    const areAllSound = signed.length === read.length && read.every(({ isSound }) => isSound)
    // a tree of before the log was moved is made anew
    const isOfLog = end.size > 0 && (await log.idAt(end.position)) === end.eventId
    return new TreeCheck(evidence, isOfLog ? end : { ...end, size: 0 }, signed, areAllSound)
  }

  /** Signed checkpoints that the log was held against. */
  get compared(): number {
    return this.#next
  }

  /** Of each witness the last checkpoint among these. */
  get witnesses(): readonly Witnessed[] {
    const signed = this.#checkpoints
      .slice(0, this.#next)
      .flatMap(({ size, cosignatures }) => cosignatures.map((one) => ({ ...one, size })))
    return [...new Map(signed.map((one) => [`${one.witness} ${one.key_id}`, one])).values()]
  }

  /** Of all events so far. */
  get root(): Hash {
    return this.#read.root
  }

  /** Takes the next event; most are compared at once. @returns how the log differs, once that is certain. */
  take(event: StoredEvent): TreeDifference | null | Promise<TreeDifference | null> {
    const leaf = leafHash(leafOf(event))
    const index = this.#read.size
    this.#read.add(leaf)
    const isAlike = this.#suspect !== null || index >= this.#end.size || this.#leafAtHand(index)?.equals(leaf)
    const isSigned = (this.#checkpoints[this.#next]?.size ?? Number.POSITIVE_INFINITY) <= this.#read.size
    return isAlike && !isSigned ? null : this.#compare(index, leaf, event)
  }

  async #compare(index: number, leaf: Hash, event: StoredEvent): Promise<TreeDifference | null> {
    if (!this.#suspect && index < this.#end.size && !(await this.#storedLeaf(index))?.equals(leaf)) {
      this.#suspect = await this.#differenceAt(index, leaf, event)
    }
    for (let found = this.#checkpoints[this.#next]; found && found.size <= this.#read.size; ) {
      if (!found.root.equals(this.root)) {
        return this.#suspect ?? { problem: 'differs_from_checkpoint', at: event, eventId: null }
      }
      // the log is as it was signed
      if (this.#suspect) return { ...this.#suspect, problem: 'damaged_tree' }
      found = this.#checkpoints[++this.#next]
    }
    return null
  }

  /**
   * Ends with the last event.
   * @returns how the log differs; `missing` where events are gone that were in the tree, or covered by a checkpoint;
   *   `unknown_signature` where it does not, and a checkpoint is not signed by a key that is trusted, or a witness did
   *   not make what stands there as its signature.
   */
  async finish(): Promise<TreeDifference | { readonly missing: string | null } | 'unknown_signature' | null> {
    if (this.#suspect) return this.#suspect
    const most = Math.max(this.#end.size, this.#checkpoints.at(-1)?.size ?? 0)
    if (most > this.#read.size) return { missing: await this.#storedId(this.#read.size) }
    return this.#areAllSound ? null : 'unknown_signature'
  }

  async #differenceAt(index: number, leaf: Hash, event: StoredEvent): Promise<TreeDifference> {
    const { position, stream, revision, eventId } = event
    const at = { position, stream, revision }
    const { events } = await this.#evidence.log.readAll({ after: position, maxCount: 1 })
    const following = events[0] && leafHash(leafOf(events[0]))
    const [here, after] = [await this.#storedLeaf(index), await this.#storedLeaf(index + 1)]
    const isNext = after?.equals(leaf) ?? false
    if (following && here?.equals(following)) {
      return { problem: isNext ? 'reordered_events' : 'inserted_event', at, eventId }
    }
    if (isNext) return { problem: 'removed_event', at, eventId: await this.#storedId(index) }
    return { problem: 'changed_event', at, eventId }
  }

  async #storedLeaf(index: number): Promise<Hash | null> {
    if (index >= this.#end.size) return null
    await this.#tileOf(index)
    return this.#leafAtHand(index)
  }

  #leafAtHand(index: number): Hash | null {
    if (this.#tile?.index !== Math.floor(index / TILE_HASHES)) return null
    const from = (index % TILE_HASHES) * HASH_BYTES
    return this.#tile.hashes.subarray(from, from + HASH_BYTES)
  }

  async #storedId(index: number): Promise<string | null> {
    if (index >= this.#end.size) return null
    const { eventIds } = await this.#tileOf(index)
    return idAt(eventIds, index % TILE_HASHES)
  }

  async #tileOf(leaf: number) {
    const index = Math.floor(leaf / TILE_HASHES)
    if (this.#tile?.index !== index) {
      const [tile] = await this.#evidence.store.tiles([{ level: 0, index }])
      const nothing = Buffer.alloc(0)
      this.#tile = { index, hashes: tile?.hashes ?? nothing, eventIds: tile?.eventIds ?? nothing }
    }
    return this.#tile
  }
}
