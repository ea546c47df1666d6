import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkForward } from '../../domain/banking/files/nacha/check.ts'
import { recordsOf } from '../../domain/banking/files/nacha/read.ts'

/** An entry as the bank finds it in a file. */
export interface BanksEntry {
  readonly file: string
  readonly description: string
  readonly code: string
  readonly routing: string
  readonly account: string
  readonly amountCents: number
  /** The beginning of the debit's id. */
  readonly identification: string
  readonly trace: string
}

/** Simulates the bank behind the folders of a service. */
export interface NachaBank {
  /** Settings of a service that this bank serves. */
  readonly env: Readonly<Record<string, string>>
  /** Fetches what stands in the outbox, as a bank does: it renames the files. @returns the entries in them. */
  fetch(): Promise<readonly BanksEntry[]>
  /** Brings a file. */
  bring(name: string, content: string | Uint8Array): Promise<void>
  readonly outbox: string
  readonly inbox: string
  close(): Promise<void>
}

export async function openNachaBank(): Promise<NachaBank> {
  const root = await mkdtemp(join(tmpdir(), 'compstream-bank-'))
  const outbox = await mkdtemp(join(root, 'outbox-'))
  const inbox = await mkdtemp(join(root, 'inbox-'))
  return {
    outbox,
    inbox,
    env: {
      BANK_RAIL: 'nacha',
      NACHA_OUTBOX_DIR: outbox,
      NACHA_INBOX_DIR: inbox,
      NACHA_DESTINATION_ROUTING: '021000021',
      NACHA_ORIGIN_ID: '1234567890',
      NACHA_COMPANY_ID: '1234567890',
      NACHA_COMPANY_NAME: 'PREMIUM CO',
      // the tests say when
      NACHA_POLL_SECONDS: '86400',
    },
    async fetch() {
      const names = (await readdir(outbox)).filter((name) => /^[^.].*\.ach$/.test(name)).sort()
      const entries: BanksEntry[] = []
      for (const file of names) {
        const text = await readFile(join(outbox, file), 'latin1')
        await rename(join(outbox, file), join(outbox, `${file}.fetched`))
        entries.push(...entriesOf(file, recordsOf(text)))
      }
      return entries
    },
    async bring(name, content) {
      await writeFile(join(inbox, `.${name}`), content)
      await rename(join(inbox, `.${name}`), join(inbox, name))
    },
    close: () => rm(root, { recursive: true, force: true }),
  }
}

/** Columns are counted from 0. */
function entriesOf(file: string, records: readonly string[]): readonly BanksEntry[] {
  checkForward(records)
  let description = ''
  return records.flatMap((line) => {
    if (line.startsWith('5')) description = line.slice(53, 63).trim()
    if (!line.startsWith('6')) return []
    return [
      {
        file,
        description,
        code: line.slice(1, 3),
        routing: line.slice(3, 12),
        account: line.slice(12, 29).trim(),
        amountCents: Number(line.slice(29, 39)),
        identification: line.slice(39, 54),
        trace: line.slice(79),
      },
    ]
  })
}
