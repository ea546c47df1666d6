import { LOG_START, type StoredEvent } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveRefused } from '../../../application/ports/movable-log.ts'
import { LogCursor } from './log-cursor.ts'
import { LogProof, nameOf } from './log-proof.ts'

/** What has to be the same, and what it is called. */
const PARTS = [
  ['stream', 'stream'],
  ['revision', 'revision'],
  ['eventId', 'event id'],
  ['type', 'type'],
  ['data', 'bytes of the data'],
  ['metadata', 'bytes of the metadata'],
] as const satisfies readonly (readonly [keyof StoredEvent, string])[]

/**
 * Holds two logs against each other from their beginning, event by event in the order of the whole log, and finds
 * out which position of the one is which of the other.
 */
export class Comparison {
  readonly #source: MovableLog
  readonly #target: MovableLog
  /** What the target was found to be; equal to the source as far as it goes. */
  readonly proof: LogProof
  /** Position in the source up to which they are equal. */
  sourcePosition = LOG_START
  /** Positions of the source that are not translated yet, ascending. */
  readonly #untranslated: bigint[]
  readonly #wanted: ReadonlySet<bigint>
  /** For each wanted position of the source: where the last event up to it stands in the target. */
  readonly #translated = new Map<bigint, bigint>()
  /** How many of the wanted positions are those of events in the source, and in the target. */
  readonly exact = { source: 0, target: 0 }

  /** @param wanted positions of the source that are to be translated, each once and ascending. */
  constructor(source: MovableLog, target: MovableLog, wanted: readonly bigint[]) {
    this.#source = source
    this.#target = target
    this.proof = new LogProof(target)
    this.#untranslated = [...wanted]
    this.#wanted = new Set(wanted)
  }

  /**
   * Goes on to the end of the target. After a failure it can be called again.
   * @param report hears of every stretch that was found equal.
   * @throws MoveRefused, naming the first event that differs or was changed; MoveInterrupted
   */
  async run(report: () => void, signal: AbortSignal): Promise<void> {
    const theirs = new LogCursor(this.#target, this.proof.position)
    const ours = new LogCursor(this.#source, this.sourcePosition)
    for (;;) {
      signal.throwIfAborted()
      const ready = await theirs.ready()
      if (ready.length === 0) return
      await this.proof.prepare(ready)
      const both = Math.min(ready.length, (await ours.ready()).length)
      if (both === 0) throw this.#differs(`it goes on after the source's end with ${nameOf(theirs.next())}`)
      for (let n = 0; n < both; n += 1) this.#take(ours.next(), theirs.next())
      report()
    }
  }

  #take(ours: StoredEvent, theirs: StoredEvent): void {
    const part = PARTS.find(([key]) => ours[key] !== theirs[key])
    if (part) {
      const which = part[0] === 'data' || part[0] === 'metadata' ? `in the ${part[1]}` : `by its ${part[1]}`
      throw this.#differs(
        `event ${this.proof.events + 1} differs ${which}: it is ${nameOf(theirs)}, in the source ${nameOf(ours)}`,
      )
    }
    const before = this.proof.position
    this.proof.take(theirs)
    this.sourcePosition = ours.position
    this.#translate(before, ours.position, theirs.position)
  }

  /** @param before where the event before stands in the target. */
  #translate(before: bigint, source: bigint, target: bigint): void {
    const wanted = this.#untranslated
    while (wanted.length > 0 && wanted[0]! < source) this.#translated.set(wanted.shift()!, before)
    if (this.#wanted.has(source)) this.exact.source += 1
    if (this.#wanted.has(target)) this.exact.target += 1
  }

  /** The wanted positions of the source and their translations; when both logs have come to their end. */
  translated(): ReadonlyMap<bigint, bigint> {
    for (const position of this.#untranslated) this.#translated.set(position, this.proof.position)
    return this.#translated
  }

  #differs(why: string): MoveRefused {
    return new MoveRefused(`${this.#target.name} does not hold a beginning of ${this.#source.name}: ${why}`)
  }
}
