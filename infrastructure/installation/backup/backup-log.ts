import type { EventPlace, LogPage, StoredEvent } from '../../../application/ports/event-log.ts'
import type { MovableLog } from '../../../application/ports/movable-log.ts'
import type { BackupFiles } from './backup-files.ts'

/** Stored size of data after which a page ends although it has fewer events than asked for. */
const PAGE_BYTES = 4 * 1024 * 1024
/** Readers that are kept where they are: who compares and who copies go on from different places. */
const MOST_READERS = 3

/** The log of a backup, read page after page. */
export class BackupLog implements MovableLog {
  readonly name: string
  readonly isGapless = true
  /** Where it is asked for earlier events: the log that it is restored to has all of those. */
  readonly #target: Pick<MovableLog, 'eventsAt'>
  readonly #files: BackupFiles
  /** By the position that they have come to. */
  readonly #readers = new Map<bigint, EventReader>()

  constructor(files: BackupFiles, target: Pick<MovableLog, 'eventsAt'>) {
    this.name = `the backup in ${files.folder}`
    this.#files = files
    this.#target = target
  }

  async readPage({ after, maxCount }: { after: bigint; maxCount: number }): Promise<LogPage> {
    const reader = this.#readers.get(after) ?? (await EventReader.open(this.#files, after))
    this.#readers.delete(after)
    const events = await reader.take(maxCount)
    const checkpoint = events.at(-1)?.position ?? after
    await this.#keep(checkpoint, reader)
    return { events, checkpoint, atHead: checkpoint >= (await this.head()) }
  }

  async #keep(position: bigint, reader: EventReader): Promise<void> {
    const before = this.#readers.get(position)
    this.#readers.delete(position)
    this.#readers.set(position, reader)
    const [oldest, least] = [...this.#readers][0]!
    if (this.#readers.size > MOST_READERS) {
      this.#readers.delete(oldest)
      await least.close()
    }
    await before?.close()
  }

  eventsAt(places: readonly EventPlace[]): Promise<readonly StoredEvent[]> {
    return this.#target.eventsAt(places)
  }

  async findCut(): Promise<null> {
    return null
  }

  async head(): Promise<bigint> {
    return BigInt(this.#files.manifest.log.events)
  }

  write(): Promise<void> {
    return Promise.reject(new Error('A backup takes no events'))
  }

  async close(): Promise<void> {
    for (const reader of this.#readers.values()) await reader.close()
    this.#readers.clear()
  }
}

/** Reads the events of a backup from a position on. */
class EventReader {
  readonly #batches: AsyncGenerator<readonly StoredEvent[]>
  #events: readonly StoredEvent[] = []
  #at = 0

  private constructor(files: BackupFiles) {
    this.#batches = files.events()
  }

  static async open(files: BackupFiles, after: bigint): Promise<EventReader> {
    const reader = new EventReader(files)
    for (let left = Number(after); left > 0 && (await reader.#ready()); ) {
      const skipped = Math.min(left, reader.#events.length - reader.#at)
      reader.#at += skipped
      left -= skipped
    }
    return reader
  }

  async take(maxCount: number): Promise<readonly StoredEvent[]> {
    const taken: StoredEvent[] = []
    for (let bytes = 0; taken.length < maxCount && bytes < PAGE_BYTES && (await this.#ready()); ) {
      const event = this.#events[this.#at++]!
      taken.push(event)
      bytes += event.data.length
    }
    return taken
  }

  /** @returns whether there is another event. */
  async #ready(): Promise<boolean> {
    while (this.#at === this.#events.length) {
      const { done, value } = await this.#batches.next()
      if (done) return false
      this.#events = value
      this.#at = 0
    }
    return true
  }

  async close(): Promise<void> {
    await this.#batches.return(undefined)
  }
}
