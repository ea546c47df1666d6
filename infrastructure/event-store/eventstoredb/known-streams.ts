import { hashOf, NO_PREDECESSOR, splitHash } from '../../../application/ports/hash-chain.ts'
import { StreamTampered } from './errors.ts'

const MAX_STREAMS = 50_000
const MAX_IDS = 1_000_000

/** What was seen of a stream, from its beginning. */
export class KnownStream {
  /** Of the last event that was seen, -1 while there is none. */
  get revision(): number {
    return this.#ids.length - 1
  }
  /** Of the last event that was seen. */
  hash = NO_PREDECESSOR
  position = 0n
  readonly #ids: number[] = []

  /** Takes the next event in; any other changes nothing. @throws StreamTampered when it carries no hash. */
  add(event: {
    readonly stream: string
    readonly revision: number
    readonly position: bigint
    readonly eventId: string
    readonly metadata: string
  }): void {
    if (event.revision !== this.#ids.length) return
    if (!splitHash(event.metadata)) {
      throw new StreamTampered(event.stream, `revision ${event.revision} carries no hash`)
    }
    this.hash = hashOf(event.metadata)
    this.position = event.position
    this.#ids.push(keyOf(event.eventId))
  }

  /** Revision of the event with that id, -1 when it was not seen. Next to certain: 48 bits of the id are compared. */
  find(eventId: string): number {
    return this.#ids.indexOf(keyOf(eventId))
  }
}

/**
 * Streams as far as they were read or written here. That can never be wrong, because what stands in a stream stays;
 * but the stream may have gone on. Bounded, those used least lately go first.
 */
export class KnownStreams {
  #young = new Map<string, KnownStream>()
  #old = new Map<string, KnownStream>()
  #youngIds = 0

  get(stream: string): KnownStream | undefined {
    const young = this.#young.get(stream)
    if (young) return young
    const old = this.#old.get(stream)
    if (old) this.#keep(stream, old)
    return old
  }

  /** The stream, to be added to. */
  open(stream: string): KnownStream {
    const known = this.get(stream)
    if (known) return known
    const fresh = new KnownStream()
    this.#keep(stream, fresh)
    return fresh
  }

  /** Notes that a stream grew. */
  grew(events: number): void {
    this.#youngIds += events
    if (this.#youngIds >= MAX_IDS / 2) this.#age()
  }

  #keep(stream: string, known: KnownStream): void {
    this.#young.set(stream, known)
    this.#youngIds += known.revision + 1
    if (this.#young.size >= MAX_STREAMS / 2 || this.#youngIds >= MAX_IDS / 2) this.#age()
  }

  #age(): void {
    this.#old = this.#young
    this.#young = new Map()
    this.#youngIds = 0
  }
}

function keyOf(eventId: string): number {
  return Number.parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16)
}
