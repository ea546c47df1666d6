import { createHash } from 'node:crypto'
import { readdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'

/** A bank that keeps books of its own of what files ask of it. It reads their columns itself. Amounts are cents. */
export interface ReadEntry {
  readonly file: string
  readonly batch: number
  readonly description: string
  readonly entryDate: string
  readonly code: string
  readonly routing: string
  readonly account: string
  readonly cents: number
  /** The beginning of the debit's id. */
  readonly identification: string
  readonly name: string
  readonly trace: string
}
export interface ReadFile {
  readonly name: string
  readonly sha256: string
  /** The day and the minute that its header tells. */
  readonly day: string
  readonly time: string
  readonly entries: readonly ReadEntry[]
  readonly debitCents: number
  readonly creditCents: number
}

export const ACCOUNT_CHECK = 'ACCTVERIFY'
const RECORD = 94
const BLOCK = 10

export class ReadingBank {
  readonly files: ReadFile[] = []
  readonly entries = new Map<string, ReadEntry>()
  readonly #outbox: string

  constructor(outbox: string) {
    this.#outbox = outbox
  }

  /** Names of the files that can be fetched. */
  async waiting(): Promise<readonly string[]> {
    return (await readdir(this.#outbox)).filter((name) => /^[^.].*\.ach$/.test(name)).sort()
  }

  /** Takes what can be fetched into the books. @param folder where a bank takes files that marks none as fetched. */
  async fetch(folder: string | null = null): Promise<readonly ReadFile[]> {
    const files: ReadFile[] = []
    for (const name of await this.waiting()) {
      const bytes = await readFile(join(this.#outbox, name))
      await rename(
        join(this.#outbox, name),
        folder ? join(folder, name) : join(this.#outbox, `${name}.fetched`),
      )
      files.push(this.#booked(readNacha(name, bytes)))
    }
    return files
  }

  /** Takes a file away unread. */
  async lose(name: string, folder: string): Promise<void> {
    await rename(join(this.#outbox, name), join(folder, name))
  }

  #booked(file: ReadFile): ReadFile {
    expect(this.files.map(({ name }) => name)).not.toContain(file.name)
    this.files.push(file)
    for (const entry of file.entries) {
      expect(this.entries.has(entry.trace), `${entry.trace} came twice`).toBe(false)
      this.entries.set(entry.trace, entry)
    }
    return file
  }
}

/** Reads a file, and holds its totals against its entries. Columns are counted from 0. */
function readNacha(name: string, bytes: Buffer): ReadFile {
  const lines = bytes.toString('latin1').split('\n').slice(0, -1)
  for (const line of lines) expect(line).toHaveLength(RECORD)
  expect(lines.length % BLOCK).toBe(0)
  const [header = ''] = lines
  expect(header.slice(0, 3)).toBe('101')
  const entries: ReadEntry[] = []
  let batch: { readonly number: number; readonly description: string; readonly entryDate: string } | null =
    null
  let isOver = false
  for (const line of lines.slice(1)) {
    switch (line[0]) {
      case '5':
        batch = {
          number: Number(line.slice(87)),
          description: line.slice(53, 63).trim(),
          entryDate: dateOf(line.slice(69, 75)),
        }
        break
      case '6':
        entries.push({
          file: name,
          batch: batch!.number,
          description: batch!.description,
          entryDate: batch!.entryDate,
          code: line.slice(1, 3),
          routing: line.slice(3, 12),
          account: line.slice(12, 29).trim(),
          cents: Number(line.slice(29, 39)),
          identification: line.slice(39, 54),
          name: line.slice(54, 76).trim(),
          trace: line.slice(79),
        })
        break
      case '8': {
        const inBatch = entries.filter((entry) => entry.batch === batch!.number)
        expect(line.slice(4, 44)).toBe(totalsOf(inBatch, 6))
        batch = null
        break
      }
      case '9':
        if (!isOver) expect(line.slice(13, 55)).toBe(totalsOf(entries, 8))
        isOver = true
        break
      default:
        expect.unreachable(`a record ${line[0]}`)
    }
  }
  expect(isOver).toBe(true)
  return {
    name,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    entries,
    day: dateOf(header.slice(23, 29)),
    time: header.slice(29, 33),
    debitCents: sumOf(entries.filter(isDebit)),
    creditCents: sumOf(entries.filter((one) => !isDebit(one))),
  }
}

/** Number of entries, hash of the routing numbers, debits, credits, as controls have them. */
function totalsOf(entries: readonly ReadEntry[], countWidth: number): string {
  const hash = entries.reduce((sum, { routing }) => sum + Number(routing.slice(0, 8)), 0)
  const [debits, credits] = [entries.filter(isDebit), entries.filter((one) => !isDebit(one))].map(sumOf)
  return [
    String(entries.length).padStart(countWidth, '0'),
    String(hash % 10 ** 10).padStart(10, '0'),
    ...[debits, credits].map((cents) => String(cents).padStart(12, '0')),
  ].join('')
}

/** Codes 27 and 37 take money, 22 and 32 bring it. */
export function isDebit({ code }: Pick<ReadEntry, 'code'>): boolean {
  return code.endsWith('7')
}

export function sumOf(entries: readonly { readonly cents: number }[]): number {
  return entries.reduce((sum, { cents }) => sum + cents, 0)
}

/** `YYMMDD` of this century. */
function dateOf(short: string): string {
  return [`20${short.slice(0, 2)}`, short.slice(2, 4), short.slice(4, 6)].join('-')
}
