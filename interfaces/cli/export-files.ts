import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/** The folder of an export: its events as JSON lines and as CSV, and a manifest that says what they are. */

export const EVENTS = 'events.jsonl'
export const TABLE = 'events.csv'
export const MANIFEST = 'manifest.json'

const FORMAT = 'compstream-export/1'

/** An event of an export, as far as it is checked and stands in the table. */
export interface ExportedEvent {
  readonly position: string
  readonly stream: string
  readonly event_id: string
  readonly type: string
  readonly recorded_at: string | null
  readonly metadata: Readonly<Record<string, unknown>>
  readonly sentence: string
  /** Base64. */
  readonly leaf_hash: string
  /** That it is in the log of the checkpoint; hashes in base64, from the bottom up. */
  readonly proof: { readonly leaf_index: number; readonly path: readonly string[] }
}

export const ExportedEvent: z.ZodType<ExportedEvent> = z.object({
  position: z.string().regex(/^\d+$/),
  stream: z.string(),
  event_id: z.string(),
  type: z.string(),
  recorded_at: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  sentence: z.string(),
  leaf_hash: z.string(),
  proof: z.object({ leaf_index: z.int().min(0), path: z.array(z.string()) }),
})

const Written = z.strictObject({ bytes: z.int(), sha256: z.string().describe('Hex') })
export type Written = z.infer<typeof Written>

export const Manifest = z.strictObject({
  format: z.literal(FORMAT),
  made_at: z.string(),
  made_by: z.strictObject({ operator_id: z.string(), role: z.string() }),
  command: z.string(),
  of: z.record(z.string(), z.string()).describe('What the command was asked for, by name'),
  filters: z.record(z.string(), z.unknown()),
  events: z.int(),
  first_position: z.string().nullable(),
  last_position: z.string().nullable(),
  checkpoint: z.string().describe('The signed note that the proofs of the events lead to'),
  key: z.string().describe('Verifier key of who signed it'),
  files: z.strictObject({ [EVENTS]: Written, [TABLE]: Written }),
})
export type Manifest = z.infer<typeof Manifest>

/** The manifest of an export, without what says that it is one. */
export function manifestOf(manifest: Omit<Manifest, 'format'>): string {
  return `${JSON.stringify({ format: FORMAT, ...manifest }, null, 2)}\n`
}

/** What a spreadsheet would take for a formula. */
const FORMULA = /^\s*[=+\-@]|^[\t\r\n]/

const COLUMNS = ['position', 'recorded_at', 'actor', 'type', 'stream', 'sentence']
export const TABLE_HEAD = csvLine(COLUMNS)

/** The row of an event in the table. */
export function tableRow({ position, recorded_at, metadata, type, stream, sentence }: ExportedEvent): string {
  return csvLine([position, recorded_at ?? '', actorIn(metadata), type, stream, sentence])
}

/** Another program's event may name anything as its actor. */
function actorIn({ actor }: Readonly<Record<string, unknown>>): string {
  const { type, id } = (actor ?? {}) as { readonly type?: unknown; readonly id?: unknown }
  return [type, id].filter((part) => typeof part === 'string').join('/')
}

/** A line of CSV (RFC 4180), every cell in quotes; one that a spreadsheet would work out begins with an apostrophe. */
export function csvLine(cells: readonly string[]): string {
  const quoted = cells.map((cell) => `"${(FORMULA.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`)
  return `${quoted.join(',')}\r\n`
}

/** A file that is written piece by piece, and hashed on the way. */
export class HashedFile {
  readonly #handle: FileHandle
  readonly #hash = createHash('sha256')
  #bytes = 0

  private constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** @throws the file system's error, also where there is such a file. */
  static async create(folder: string, name: string): Promise<HashedFile> {
    return new HashedFile(await open(join(folder, name), 'wx', 0o600))
  }

  async add(text: string): Promise<void> {
    const bytes = Buffer.from(text)
    this.#hash.update(bytes)
    this.#bytes += bytes.length
    await this.#handle.appendFile(bytes)
  }

  /** Makes it outlast a power failure. */
  async end(): Promise<Written> {
    await this.#handle.sync()
    await this.#handle.close()
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') }
  }

  /** Leaves it as it is; after {@link end} nothing is left to do. */
  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** What a file holds, read to its end. */
export async function hashedFile(path: string): Promise<Written> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const part of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(part)
    bytes += part.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

export const LINE_FEED = 0x0a

/** The lines of a file; unlike `readline`, which ends them at U+2028 as well. */
export async function* linesIn(path: string): AsyncGenerator<string, void, void> {
  let parts: Buffer[] = []
  for await (const part of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = part.indexOf(LINE_FEED); end >= 0; end = part.indexOf(LINE_FEED, from)) {
      yield Buffer.concat([...parts, part.subarray(from, end)]).toString()
      parts = []
      from = end + 1
    }
    parts.push(part.subarray(from))
  }
  const last = Buffer.concat(parts).toString()
  if (last !== '') yield last
}
