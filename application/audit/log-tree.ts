import { randomBytes } from 'node:crypto'
import { mapInTimeSlices, TimeSlice } from '../commands/time-slices.ts'
import type { Clock } from '../ports/clock.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import type { LogTreeStore, StoredCheckpoint, StoredTile, TreeEnd } from '../ports/log-tree-store.ts'
import type { SecretVault } from '../ports/personal-data.ts'
import {
  type Cosignature,
  cosigned,
  readNote,
  type Signer,
  signaturesOn,
  signedBy,
  signedNote,
  signerOf,
  type Verifier,
  verifierKey,
  verifierOf,
} from './checkpoint-note.ts'
import { ID_BYTES, idAt, idBytes } from './event-ids.ts'
import { leafOf } from './leaf.ts'
import {
  consistencyProof,
  HASH_BYTES,
  type Hash,
  inclusionProof,
  leafHash,
  type NodeAt,
  rootOf,
} from './merkle.ts'
import type { ShownEvent } from './streams.ts'
import { TreeCheck } from './tree-check.ts'
import { grown, nodesOf, TILE_HASHES } from './tree-tiles.ts'

/** What keeps signed checkpoints outside the database as well. */
export interface CheckpointCopies {
  /** Keeps the larger one, where it has another; of one, what was signed further. One at a time. @throws what the folder fails by. */
  keep(checkpoint: StoredCheckpoint): Promise<void>
  /** The notes that it has. @throws the same. */
  kept(): Promise<readonly string[]>
  /** Of these the newest, null where it has none. @throws the same. */
  newest(): Promise<string | null>
  /** Every verifier key that signed one. @throws the same. */
  keys(): Promise<readonly string[]>
}

export interface LogTreeParts {
  readonly log: EventLog
  readonly store: LogTreeStore
  readonly vault: SecretVault
  readonly clock: Clock
  readonly copies: CheckpointCopies | null
  /** Keys of witnesses that are trusted. */
  readonly witnesses: readonly Verifier[]
}

/** The log no longer begins with the events of an earlier checkpoint; nothing is signed. */
export class LogDiffers extends Error {
  readonly size: number
  constructor(size: number) {
    super(`The first ${size} events of the log are no longer those of its checkpoint`)
    this.name = 'LogDiffers'
    this.size = size
  }
}

/** No key that is trusted has signed a checkpoint, or its copy: somebody else put it there. Nothing is signed, or proven by it. */
export class UnknownSignature extends Error {
  constructor() {
    super(
      'The checkpoint, or its copy, is not signed by the key of this installation or by one that it keeps',
    )
    this.name = 'UnknownSignature'
  }
}

/** Tiles are gone that the tree over the log goes on from. */
export class TreeDamaged extends Error {
  constructor(size: number) {
    super(
      `runtime.log_tree_tiles lacks tiles of the ${size} events in runtime.log_tree: DELETE FROM both has the tree made anew`,
    )
    this.name = 'TreeDamaged'
  }
}

/** An event in the tree, with what proves it. */
export interface InclusionProof {
  readonly kind: 'inclusion'
  readonly event_id: string
  /** The bytes whose hash is the leaf, see {@link leafOf}, in base64. */
  readonly leaf: string
  readonly leaf_index: number
  /** Base64, from the bottom up. */
  readonly path: readonly string[]
  readonly checkpoint: string
  /** Verifier key of who signed the checkpoint. */
  readonly key: string
}

/** Where an event stands in a tree, and what leads from its leaf to the root. */
export interface EventProof {
  readonly leaf_index: number
  /** Base64, from the bottom up. */
  readonly path: readonly string[]
}

/** That a log is the beginning of a later one. */
export interface ConsistencyProof {
  readonly kind: 'consistency'
  readonly path: readonly string[]
  /** Null: the service no longer keeps it. */
  readonly from: string | null
  readonly to: string
  readonly key: string
}

const PAGE = 1_000
const SIGNING_KEY = 'audit/signing-key'
const NO_EVENTS = Buffer.alloc(0)

/** The Merkle tree over the events of the log, in log order, and its signed checkpoints. */
export class LogTree {
  readonly #parts: LogTreeParts

  constructor(parts: LogTreeParts) {
    this.#parts = parts
  }

  /**
   * Takes in what the log has beyond the tree. Several processes may do so at once: each step counts once. Where the log was
   * moved, or went back, the tree begins anew.
   * @returns how far it reaches then.
   */
  async grow(signal?: AbortSignal): Promise<TreeEnd> {
    const { log, store } = this.#parts
    let end = await store.end()
    if (end.size > 0 && (await log.idAt(end.position)) !== end.eventId) {
      await store.clear(end)
      end = await store.end()
    }
    const slice = new TimeSlice()
    for (;;) {
      signal?.throwIfAborted()
      const { events, atHead } = await log.readAll({ after: end.position, maxCount: PAGE })
      if (events.length > 0) {
        const to = endAfter(end, events)
        const tiles = await this.#tilesWith(end, events)
        if (tiles && (await store.grow(end, to, tiles))) end = to
        else {
          // another process was faster, or began anew
          const now = await store.end()
          if (!tiles && now.size === end.size && now.position === end.position)
            throw new TreeDamaged(end.size)
          end = now
        }
      }
      if (atHead) return end
      await slice.over()
    }
  }

  /** The tiles that events change or begin; null where the tree lacks those that are not whole. */
  async #tilesWith(end: TreeEnd, events: readonly StoredEvent[]): Promise<readonly StoredTile[] | null> {
    const last = await this.#lastTiles(end.size)
    if (last === null) return null
    const leaves = await mapInTimeSlices(events, (event) => leafHash(leafOf(event)))
    const hashes = new Map([...last].map(([level, tile]) => [level, tile.hashes]))
    const before = last.get(0)
    const ids = Buffer.concat([
      before?.eventIds ?? NO_EVENTS,
      ...events.map(({ eventId }) => idBytes(eventId)),
    ])
    const firstIndex = Math.floor(end.size / TILE_HASHES)
    const skipped = end.size - firstIndex * TILE_HASHES
    return grown(end.size, hashes, leaves).map(({ level, index, hashes }) => {
      if (level > 0) return { level, index, hashes, after: null, eventIds: null }
      // of the events that are new, those before the tile
      const ahead = (index - firstIndex) * TILE_HASHES - skipped
      const after = ahead > 0 ? events[ahead - 1]!.position : (before?.after ?? end.position)
      const from = (index - firstIndex) * TILE_HASHES * ID_BYTES
      const eventIds = ids.subarray(from, from + (hashes.length / HASH_BYTES) * ID_BYTES)
      return { level, index, hashes, after, eventIds }
    })
  }

  /**
   * The tiles that are not whole, by level, as they were at a size: another process may have gone on.
   * @returns null where one is missing, or shorter.
   */
  async #lastTiles(size: number): Promise<ReadonlyMap<number, StoredTile> | null> {
    const counts = new Map<number, number>()
    const places: { level: number; index: number }[] = []
    for (let [level, count] = [0, size]; count > 0; level += 1) {
      counts.set(level, count % TILE_HASHES)
      if (count % TILE_HASHES > 0) places.push({ level, index: Math.floor(count / TILE_HASHES) })
      count = Math.floor(count / TILE_HASHES)
    }
    const tiles = new Map<number, StoredTile>()
    for (const tile of await this.#parts.store.tiles(places)) {
      const count = counts.get(tile.level)!
      const hashes = tile.hashes.subarray(0, count * HASH_BYTES)
      const eventIds = tile.eventIds?.subarray(0, count * ID_BYTES) ?? null
      if (hashes.length === count * HASH_BYTES) tiles.set(tile.level, { ...tile, hashes, eventIds })
    }
    return tiles.size === places.length ? tiles : null
  }

  /** Nodes of the tree as it is stored. */
  nodes(): NodeAt {
    return nodesOf(async (place) => {
      const [tile] = await this.#parts.store.tiles([place])
      return tile?.hashes ?? NO_EVENTS
    })
  }

  /**
   * Signs how the log stands, where it has gone on since the last checkpoint.
   * @returns the newest checkpoint; null of a log without events.
   * @throws LogDiffers when the log does not begin with what the last checkpoint says, or its newest copy; UnknownSignature.
   */
  async checkpoint(signal?: AbortSignal): Promise<StoredCheckpoint | null> {
    const { store, clock, copies } = this.#parts
    // before the tree grows: what another process signs meanwhile may reach further
    const [last] = await store.checkpoints(1)
    const copy = (await copies?.newest()) ?? null
    const { size } = await this.grow(signal)
    const copied = copy === null ? [] : [{ size: readNote(copy)?.size ?? 0, note: copy }]
    const signer = await this.#hold([...(last ? [last] : []), ...copied], size)
    if (signer === null) return null
    let newest = last
    if (newest?.size !== size) {
      const root = await rootOf(size, this.nodes())
      const note = signedNote({ origin: signer.name, size, root }, signer)
      newest = { size, note, key: verifierKey(signer), madeAt: clock.now() }
      await store.addCheckpoint(newest)
    }
    // again, where it failed or there was no folder
    await this.#copy(size)
    return newest
  }

  /**
   * Holds the tree against checkpoints.
   * @param size of the tree.
   * @returns who signs the next one, null of a log without events.
   * @throws LogDiffers when the log does not begin with what one of them says; UnknownSignature.
   */
  async #hold(
    checkpoints: readonly Pick<StoredCheckpoint, 'size' | 'note'>[],
    size: number,
  ): Promise<Signer | null> {
    const nodes = this.nodes()
    const signer = size === 0 ? null : await this.#signing()
    const verifiers = await this.#verifiers(signer, [])
    for (const { size: covered, note } of checkpoints) {
      const signed = readNote(note)
      const isHeld =
        !signed ||
        (signed.size === covered && covered <= size && (await rootOf(covered, nodes)).equals(signed.root))
      if (!isHeld) throw new LogDiffers(covered)
      if (signedBy(note, verifiers) === null) throw new UnknownSignature()
    }
    return signer
  }

  /** Copies a checkpoint, unless something stands on it that its witness did not make. */
  async #copy(size: number): Promise<void> {
    const { store, copies, witnesses } = this.#parts
    if (!copies) return
    // two that read the folder and then write would undo each other's
    await store.inTurn(size, async (checkpoint) => {
      if (signaturesOn(checkpoint.note, witnesses)) await copies.keep(checkpoint)
    })
  }

  /** Checkpoints that were signed, newest first. */
  checkpoints(limit: number): Promise<readonly StoredCheckpoint[]> {
    return this.#parts.store.checkpoints(limit)
  }

  /**
   * Attaches cosignatures of witnesses to a checkpoint, of each its latest.
   * @param lines as witnesses answer them.
   * @returns the checkpoint with them, null where there is none of that size. @throws CosignatureRefused
   */
  async cosign(size: number, lines: string): Promise<StoredCheckpoint | null> {
    const { store, clock, witnesses } = this.#parts
    for (;;) {
      const checkpoint = await store.checkpoint(size)
      if (!checkpoint) return null
      const note = cosigned(checkpoint.note, lines, witnesses, clock.now())
      // else somebody attached another one meanwhile
      if (note === checkpoint.note || (await store.replaceNote(size, checkpoint.note, note))) {
        await this.#copy(size)
        return { ...checkpoint, note }
      }
    }
  }

  /** The cosignatures on a note, of witnesses that are trusted. */
  cosignaturesOn(note: string): readonly Cosignature[] {
    return signaturesOn(note, this.#parts.witnesses)?.cosignatures ?? []
  }

  /** A log is known by its first event. */
  async #origin(): Promise<string> {
    const { events } = await this.#parts.log.readAll({ after: LOG_START, maxCount: 1 })
    return `compstream/${events[0]!.eventId}`
  }

  async #signing(): Promise<Signer> {
    const seed = await this.#parts.vault.getOrPut(SIGNING_KEY, () =>
      randomBytes(HASH_BYTES).toString('base64'),
    )
    return signerOf(await this.#origin(), Buffer.from(seed, 'base64'))
  }

  /**
   * Keys that are trusted: that of the installation, and those that are kept beside the copies; others signed nothing here.
   * @param signer null of a log without events.
   */
  async #verifiers(signer: Signer | null, further: readonly string[]): Promise<readonly Verifier[]> {
    const kept = (await this.#parts.copies?.keys()) ?? []
    const own = signer ? [verifierKey(signer)] : []
    return [...new Set([...own, ...kept, ...further])].flatMap((key) => verifierOf(key) ?? [])
  }

  /** What a check of the log is held against. A key in the database has the log held against more, never against less. */
  check(): Promise<TreeCheck> {
    const { log, store, copies } = this.#parts
    return TreeCheck.open({
      log,
      store,
      verifiers: async () => {
        const signer = (await log.head()) === LOG_START ? null : await this.#signing()
        return [...(await this.#verifiers(signer, await store.keys())), ...this.#parts.witnesses]
      },
      copies: async () => (await copies?.kept()) ?? [],
    })
  }

  /**
   * Proves that an event is in the log as of a checkpoint.
   * @param of size of the checkpoint, null: a new one.
   * @returns null where the log has no such event, or there is no such checkpoint.
   * @throws LogDiffers, UnknownSignature: as {@link checkpoint}.
   */
  async prove(eventId: string, of: number | null = null): Promise<InclusionProof | null> {
    const { store } = this.#parts
    const checkpoint = of === null ? await this.checkpoint() : await store.checkpoint(of)
    // the tree may be made anew just now
    if (of !== null && checkpoint) await this.#hold([checkpoint], (await this.grow()).size)
    const index = await store.indexOf(eventId)
    if (checkpoint === null || index === null || index >= checkpoint.size) return null
    const event = await this.#eventAt(index)
    // the event that the tree has there is gone, or is another one
    if (event?.eventId !== eventId) throw new LogDiffers(checkpoint.size)
    const path = await inclusionProof(index, checkpoint.size, this.nodes())
    return {
      kind: 'inclusion',
      event_id: eventId,
      leaf: Buffer.from(leafOf(event)).toString('base64'),
      leaf_index: index,
      path: path.map((hash) => hash.toString('base64')),
      checkpoint: checkpoint.note,
      key: checkpoint.key,
    }
  }

  /**
   * Proves events in the tree of so many events.
   * @param events as they are shown.
   * @returns for each its proof, null where it comes behind; null altogether where the log has fewer events.
   * @throws LogDiffers where one is not the event that the tree has there.
   */
  async proofs(
    events: readonly Pick<ShownEvent, 'position' | 'event_id' | 'leaf_hash'>[],
    size: number,
  ): Promise<readonly (EventProof | null)[] | null> {
    const { store } = this.#parts
    let end = await store.end()
    if (end.size < size) end = await this.grow()
    if (end.size < size) return null
    const positions = events.map(({ position }) => BigInt(position))
    const slice = new TimeSlice()
    const leaves = new Map<string, { readonly index: number; readonly hash: Hash }>()
    for (const { index, hashes, eventIds } of await store.leafTiles(positions)) {
      for (let place = 0; place < eventIds!.length / ID_BYTES; place += 1) {
        const hash = hashes.subarray(place * HASH_BYTES, (place + 1) * HASH_BYTES)
        leaves.set(idAt(eventIds!, place), { index: index * TILE_HASHES + place, hash })
      }
      await slice.over()
    }
    const nodes = this.nodes()
    const proofs: (EventProof | null)[] = []
    for (const [n, { event_id, leaf_hash }] of events.entries()) {
      const leaf = leaves.get(event_id)
      if (leaf ? leaf.hash.toString('base64') !== leaf_hash : positions[n]! <= end.position) {
        throw new LogDiffers(size)
      }
      if (!leaf || leaf.index >= size) proofs.push(null)
      else {
        const path = await inclusionProof(leaf.index, size, nodes)
        proofs.push({ leaf_index: leaf.index, path: path.map((hash) => hash.toString('base64')) })
      }
      await slice.over()
    }
    return proofs
  }

  /** The event of a leaf, page by page from the beginning of its tile. */
  async #eventAt(index: number): Promise<StoredEvent | undefined> {
    const [tile] = await this.#parts.store.tiles([{ level: 0, index: Math.floor(index / TILE_HASHES) }])
    let ahead = index % TILE_HASHES
    for (let after = tile!.after!; ; ) {
      const page = await this.#parts.log.readAll({ after, maxCount: ahead + 1 })
      if (page.events.length > ahead || page.atHead) return page.events[ahead]
      ahead -= page.events.length
      after = page.checkpoint
    }
  }

  /**
   * Proves that the log of so many events is the beginning of that of a checkpoint.
   * @param from events, null: of the oldest checkpoint. @param to size of the checkpoint, null: the newest.
   * @returns null where there is no such checkpoint, or the earlier log is the larger one.
   * @throws LogDiffers, UnknownSignature: of both checkpoints, as {@link checkpoint}.
   */
  async proveConsistency(from: number | null, to: number | null): Promise<ConsistencyProof | null> {
    const { store } = this.#parts
    const one = await store.checkpoint(from)
    const other = to === null ? (await store.checkpoints(1))[0] : await store.checkpoint(to)
    const size = from ?? one?.size
    if (size === undefined || !other || size > other.size) return null
    // the tree may be made anew just now
    await this.#hold(one ? [one, other] : [other], (await this.grow()).size)
    const path = await consistencyProof(size, other.size, this.nodes())
    return {
      kind: 'consistency',
      path: path.map((hash) => hash.toString('base64')),
      from: one?.note ?? null,
      to: other.note,
      key: other.key,
    }
  }
}

function endAfter(end: TreeEnd, events: readonly StoredEvent[]): TreeEnd {
  const { position, eventId } = events.at(-1)!
  return { size: end.size + events.length, position, eventId }
}
