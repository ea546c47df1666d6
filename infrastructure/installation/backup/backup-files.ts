import type { KeyObject } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import type { StoredEvent } from '../../../application/ports/event-log.ts'
import { MoveRefused } from '../../../application/ports/movable-log.ts'
import type { MasterKeys } from '../../crypto/master-keys.ts'
import { SealBroken, seal, unseal } from '../../crypto/sealed-stream.ts'
import { errorCode } from '../../error-code.ts'
import { CARRIED_TABLES, type CarriedRows, type Row } from '../carried-tables.ts'
import { keyOf, type Manifest } from './manifest.ts'

/** The files of a backup beside its manifest: JSON lines, sealed. An event is a line; so is the head of a table, and a row. */
export const EVENTS = 'events.sealed'
export const TABLES = 'tables.sealed'

const READ_BYTES = 1024 * 1024

type EventLine = [
  stream: string,
  revision: number,
  eventId: string,
  type: string,
  data: string,
  metadata: string,
]

export function eventLine({ stream, revision, eventId, type, data, metadata }: StoredEvent): string {
  return JSON.stringify([stream, revision, eventId, type, data, metadata] satisfies EventLine)
}

/** Writes lines into a new file, sealed, and onto the disk. @param lines without their ends. */
export async function writeLines(
  path: string,
  key: KeyObject,
  lines: AsyncIterable<readonly string[]>,
): Promise<void> {
  const bytes = async function* () {
    for await (const some of lines) yield Buffer.from(some.map((line) => `${line}\n`).join(''))
  }
  await pipeline(seal(key, bytes()), createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }))
}

/** The lines of batches of rows; the first batch of a table begins with its head. */
export async function* tableLines(batches: AsyncIterable<CarriedRows>): AsyncGenerator<string[]> {
  let last = ''
  for await (const { table, columns, rows } of batches) {
    const lines = rows.map((row) => JSON.stringify(columns.map((column) => row[column])))
    yield table === last ? lines : [JSON.stringify({ table, columns }), ...lines]
    last = table
  }
}

/** A backup whose manifest was read, to be read from its beginning any number of times. Memory does not grow with it. */
export class BackupFiles {
  readonly folder: string
  readonly manifest: Manifest
  readonly #masterKeys: MasterKeys

  constructor(folder: string, manifest: Manifest, masterKeys: MasterKeys) {
    this.folder = folder
    this.manifest = manifest
    this.#masterKeys = masterKeys
  }

  /** The events in order, numbered from 1 as PostgreSQL numbers them. @throws MoveRefused where the file is damaged. */
  async *events(): AsyncGenerator<readonly StoredEvent[]> {
    let position = 0n
    for await (const lines of this.#lines(EVENTS, 'events')) {
      yield lines.map((line) => {
        const [stream, revision, eventId, type, data, metadata] = JSON.parse(line) as EventLine
        position += 1n
        return { position, stream, revision, eventId, type, data, metadata }
      })
    }
  }

  /** The rows beside the log, table by table; of one without rows comes one batch without rows. @throws the same. */
  async *tables(): AsyncGenerator<CarriedRows> {
    let [table, columns]: [string, readonly string[]] = ['', []]
    for await (const lines of this.#lines(TABLES, 'tables')) {
      let rows: Row[] = []
      for (const line of lines) {
        const value = JSON.parse(line) as { table: string; columns: string[] } | (string | null)[]
        if (Array.isArray(value)) {
          rows.push(Object.fromEntries(columns.map((column, index) => [column, value[index] ?? null])))
          continue
        }
        if (rows.length > 0) yield { table, columns, rows }
        rows = []
        ;({ table, columns } = value)
        if (!CARRIED_TABLES.includes(table))
          throw this.#refuse(TABLES, `this release knows no table ${table}`)
        yield { table, columns, rows }
      }
      if (rows.length > 0) yield { table, columns, rows }
    }
  }

  async *#lines(name: string, part: 'events' | 'tables'): AsyncGenerator<string[]> {
    const file = createReadStream(join(this.folder, name), { highWaterMark: READ_BYTES })
    const decoder = new StringDecoder('utf8')
    let rest = ''
    try {
      for await (const plain of unseal(keyOf(this.#masterKeys, this.manifest, part), file)) {
        const lines = (rest + decoder.write(plain)).split('\n')
        rest = lines.pop()!
        if (lines.length > 0) yield lines
      }
    } catch (error) {
      if (error instanceof SealBroken) throw this.#refuse(name, 'it was changed or cut')
      const code = errorCode(error)
      if (code === undefined) throw error
      throw this.#refuse(name, code)
    } finally {
      file.destroy()
    }
  }

  #refuse(name: string, why: string): MoveRefused {
    return new MoveRefused(`The backup in ${this.folder} is damaged: ${name}: ${why}`)
  }
}
