import { type EventLog, LOG_START } from '../ports/event-log.ts'

/** Streams that are remembered to have gone on. */
const MOST_STREAMS = 50_000

/** What a reader saw of a stream. */
export interface Seen {
  /** Of the last event, -1 for none. */
  readonly revision: number
  /** How far the log was known ({@link KnownLog.reached}) when the read, or the append, began. */
  readonly asOf: bigint
}

/** How far a process knows the log, and which streams have gone on: so what it keeps of a stream is the present, or is not. */
export class KnownLog {
  #reached = LOG_START
  /** Streams with events behind here are among those that have gone on. */
  #since = LOG_START
  readonly #revisions = new Map<string, number>()
  readonly #wentBack: () => void

  /** @param wentBack hears that the log has lost its newest events, such as at a fail-over: what was seen may be gone. */
  constructor(wentBack: () => void) {
    this.#wentBack = wentBack
  }

  /** The process knows of every append up to this position. */
  get reached(): bigint {
    return this.#reached
  }

  /** Whether a stream has no event behind what was seen, as far as the log is known. */
  isCurrent(stream: string, { revision, asOf }: Seen): boolean {
    return asOf >= this.#since && (this.#revisions.get(stream) ?? -1) <= revision
  }

  /** Learns of everything that any process was told to be stored before the call. */
  async catchUp(log: Pick<EventLog, 'changes'>): Promise<void> {
    const after = this.#reached
    const { upTo, revisions } = await log.changes(after)
    const isBack = upTo < after
    // others may have learnt more meanwhile, or the same
    if (isBack ? this.#reached !== after : upTo <= this.#reached) return
    this.#reached = upTo
    if (isBack) this.#wentBack()
    for (const [stream, revision] of revisions ?? []) this.#goneOn(stream, revision)
    if (isBack || revisions === null) this.#forget()
  }

  /** Learns of an append of this process. @param before position of the log's last event before it; null: not known. */
  appended(stream: string, revision: number, position: bigint, before: bigint | null): void {
    if (before === this.#reached) this.#reached = position
    this.#goneOn(stream, revision)
  }

  #goneOn(stream: string, revision: number): void {
    if ((this.#revisions.get(stream) ?? -1) < revision) this.#revisions.set(stream, revision)
    if (this.#revisions.size > MOST_STREAMS) this.#forget()
  }

  /** What was seen before is looked at again. */
  #forget(): void {
    this.#revisions.clear()
    this.#since = this.#reached
  }
}
