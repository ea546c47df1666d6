import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { archived, exposeFile, lookAfterFile } from '../../../../application/banking/files/expose-files.ts'
import type { FileApp } from '../../../../application/banking/files/file-app.ts'
import { fileIdOf } from '../../../../application/banking/files/file-references.ts'
import { lookAtFolders } from '../../../../application/banking/files/look-at-folders.ts'
import { reportIdOf, takeReports } from '../../../../application/banking/files/take-reports.ts'
import { writeFiles } from '../../../../application/banking/files/write-files.ts'
import type { RailEntry } from '../../../../application/ports/bank-rail.ts'
import { ProviderUnavailable } from '../../../../application/ports/provider.ts'
import { entryDateOf, nextClose } from '../../../../domain/banking/debits/banking-days.ts'
import { type BankFile, bankFile } from '../../../../domain/banking/files/bank-file.ts'
import { bankReport } from '../../../../domain/banking/files/bank-report.ts'
import { checkForward } from '../../../../domain/banking/files/nacha/check.ts'
import { LIMITS } from '../../../../domain/banking/files/nacha/draft.ts'
import { recordsOf } from '../../../../domain/banking/files/nacha/read.ts'
import { startOf } from '../../../../domain/kernel/new-york.ts'
import { EncryptedBankArchive } from '../../../../infrastructure/providers/bank/nacha/archive.ts'
import { NachaFolders } from '../../../../infrastructure/providers/bank/nacha/folders.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { ORIGINATOR, reportFile } from '../../../support/nacha-files.ts'
import {
  Crashed,
  moveClock,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../../../support/registrations.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { newId } from '../../../support/webhooks.ts'

const DAY = 86_400_000
let database: TestDatabase
let process: RegistrationProcess
let app: FileApp
const outbox = temporaryDirectory()
const inbox = temporaryDirectory()
/** Of the batch of a test; each has a day of its own. */
let closesAt: number

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  const { app: own, bench } = process
  app = {
    ...own,
    bankFiles: {
      folders: new NachaFolders({ outboxDir: outbox, inboxDir: inbox }),
      archive: new EncryptedBankArchive(bench.database.pool, own.vault),
      originator: ORIGINATOR,
      limits: LIMITS,
    },
  }
})
afterAll(async () => {
  await process?.bench.close()
  await database?.drop()
})

/** Moves to a minute after a close that no other test has. */
function nextBatch(): void {
  const { clock } = app
  closesAt = nextClose(Math.max(clock.now(), (closesAt ?? 0) + 1))
  moveClock(app, closesAt + 60_000)
}
beforeEach(async () => {
  nextBatch()
  for (const folder of [outbox, inbox]) {
    for (const name of await readdir(folder)) await rm(join(folder, name))
  }
})

const account = {
  holderName: 'Tidewater Joinery LLC',
  routingNumber: '021000021',
  accountNumber: '000123456789',
  ...({ accountType: 'checking', bankName: null } as const),
}
const entryOf = (overrides: Partial<RailEntry> = {}): RailEntry => ({
  debitId: newId(),
  amountCents: 500,
  effectiveDate: entryDateOf(closesAt),
  account,
  fingerprint: 'f'.repeat(24),
  isRetry: false,
  refusal: null,
  ...overrides,
})

const refused: string[] = []
async function submit(
  entries: readonly RailEntry[],
  on: FileApp = app,
  signal = new AbortController().signal,
): Promise<void> {
  refused.length = 0
  await writeFiles(on, {
    closesAt,
    signal,
    context: operatorContext(),
    entries: (async function* () {
      for (let from = 0; from < entries.length; from += 2) yield entries.slice(from, from + 2)
    })(),
    refuse: async (_entry, note) => void refused.push(note),
  })
}

const fileOf = async (part = 0): Promise<BankFile | null> =>
  (await app.commands.load(bankFile, fileIdOf(closesAt, part))).state

/** What of ours the entries in the outbox are, whatever became of their files; temporary files do not count. */
async function seen(folder = outbox): Promise<readonly string[]> {
  const texts = (await readdir(folder))
    .filter((name) => !name.startsWith('.'))
    .map((name) => readFile(join(folder, name), 'latin1'))
  return (await Promise.all(texts)).flatMap((text) => {
    const records = recordsOf(text)
    checkForward(records)
    return records.filter((line) => line.startsWith('6')).map((line) => line.slice(39, 54).trim())
  })
}
const ids = (entries: readonly RailEntry[]) => entries.map(({ debitId }) => debitId.slice(0, 15))

describe('a batch', () => {
  test('becomes a file that is recorded before it can be seen, and is readable for its owner alone', async () => {
    const entries = [entryOf(), entryOf({ amountCents: 700, isRetry: true }), entryOf()]
    await submit(entries)
    const file = await fileOf()
    expect(file).toMatchObject({ status: 'exposed', content: { debit_cents: 1_700, credit_cents: 0 } })
    expect(file!.batches.map(({ description, entries }) => [description, entries])).toEqual([
      ['PREMIUM', 2],
      ['RETRY PYMT', 1],
    ])
    expect(await readdir(outbox)).toEqual([file!.content!.name])
    expect((await stat(join(outbox, file!.content!.name))).mode & 0o777).toBe(0o600)
    expect((await seen()).toSorted()).toEqual(ids(entries).toSorted())
    const types = (await app.log.readStream(`bankFile-${file!.file_id}`)).map(({ type }) => type)
    expect(types).toEqual(['BankFileBegun', 'BankFileRecorded', 'BankFileExposed'])
  })

  test('leaves out what no file can hold, and says why', async () => {
    const good = entryOf()
    await submit([
      entryOf({ account: { ...account, routingNumber: '123456789' } }),
      entryOf({ amountCents: 10_000_000_000 }),
      entryOf({ account: { ...account, holderName: '株式会社' } }),
      good,
    ])
    expect(refused).toEqual([
      'The check digit of the routing number is wrong',
      'An entry holds 9999999999 cents at the most',
      'The name of the account holder has no letter or digit that a file can hold',
    ])
    expect(await seen()).toEqual(ids([good]))
  })

  test('leaves out what must not go any more, unless it went already', async () => {
    const entry = entryOf()
    const other = entryOf({ refusal: 'Its account is disabled (R02)' })
    await submit([entry, other])
    expect(refused).toEqual(['Its account is disabled (R02)'])
    expect(await seen()).toEqual(ids([entry]))
    await submit([{ ...entry, account: null, refusal: 'Its account cannot be read' }])
    expect(refused).toEqual([])
    expect(await seen()).toEqual(ids([entry]))
  })

  test('is split before a total overflows; later parts take what came late', async () => {
    const small = { ...app, bankFiles: { ...app.bankFiles, limits: { ...LIMITS, totalCents: 1_000 } } }
    const entries = [entryOf(), entryOf(), entryOf()]
    await submit(entries, small)
    const late = entryOf()
    await submit([...entries, late], small)
    expect([(await fileOf(0))?.count, (await fileOf(1))?.count, (await fileOf(2))?.count]).toEqual([2, 1, 1])
    expect(await fileOf(3)).toBeNull()
    expect((await seen()).toSorted()).toEqual(ids([...entries, late]).toSorted())
    const traces = await Promise.all(
      [0, 1, 2].map(async (part) => (await fileOf(part))!.content!.first_trace),
    )
    expect(traces).toEqual(traces.toSorted())
    expect(new Set((await readdir(outbox)).map((name) => name.slice(0, 10))).size).toBe(3)
  })

  test('stops once its time is up, and what another attempt wrote before that stays in the archive', async () => {
    const [first, second] = [[entryOf()], [entryOf(), entryOf()]]
    const stopping = new AbortController()
    const folders = Object.assign(new NachaFolders({ outboxDir: outbox, inboxDir: inbox }), {
      // the other attempt runs while this one writes
      stage: async (_name: string, _sha256: string, chunks: AsyncIterable<Uint8Array>) => {
        await submit(second)
        for await (const _chunk of chunks);
      },
    })
    const slow = { ...app, bankFiles: { ...app.bankFiles, folders } }
    await expect(submit(first, slow)).rejects.toThrow('cannot be recorded')
    const { file_id, content } = (await fileOf())!
    const kept: Uint8Array[] = []
    for await (const chunk of archived(app, file_id, content!.sha256)) kept.push(chunk)
    expect(Buffer.concat(kept).toString()).toBe(await readFile(join(outbox, content!.name), 'utf8'))

    nextBatch()
    stopping.abort(new Error('the time is up'))
    await expect(submit(first, app, stopping.signal)).rejects.toThrow('the time is up')
    expect(await fileOf()).toBeNull()
  })

  test('is exposed with the content that was recorded, whatever other attempts write meanwhile', async () => {
    const { folders } = app.bankFiles
    const sha256Of = (text: string) => createHash('sha256').update(text).digest('hex')
    const name = '20261124-A-65f0c0ffee0123456789abcd.ach'
    const stage = (text: string, as = name) => folders.stage(as, sha256Of(text), chunksOf(text))
    await stage('of the day before', name.replace('24-A', '23-B'))
    await stage('recorded')
    await stage('of another attempt')
    await expect(folders.stage(name, sha256Of('cut'), cutShort('cut'))).rejects.toThrow('died')
    // what broke off leaves no account numbers behind
    expect(await readdir(outbox)).toHaveLength(3)
    expect(await folders.look(name, sha256Of('cut'))).toBe('absent')
    await stage('another file', name.replace('65f0', '75f0'))
    await folders.expose(name, sha256Of('recorded'))
    expect(await readFile(join(outbox, name), 'utf8')).toBe('recorded')
    expect((await readdir(outbox)).filter((one) => one.includes('65f0'))).toEqual([name])
    expect(await folders.look(name.replace('65f0', '75f0'), sha256Of('another file'))).toBe('staged')
  })

  test('that is late takes effect on a later day, never on the day of its file', async () => {
    const entry = entryOf()
    moveClock(app, closesAt + 4 * DAY)
    await submit([entry])
    const [batch] = (await fileOf())!.batches
    expect(batch!.entry_date > entry.effectiveDate).toBe(true)
    expect(await seen()).toEqual(ids([entry]))
  })
})

describe('a file that is not where it should be', () => {
  test('is uncertain, and exposed again or treated as sent by a person only', async () => {
    await submit([entryOf()])
    const { file_id, content } = (await fileOf())!
    const path = join(outbox, content!.name)
    const text = await readFile(path, 'latin1')
    await rm(path)
    expect(await lookAfterFile(app, file_id, operatorContext())).toBe('uncertain')
    await submit([])
    expect([(await fileOf())!.status, await readdir(outbox)]).toEqual(['uncertain', []])

    const again = { type: 'ExposeAgain', note: null, at: app.clock.now() } as const
    await app.commands.execute(bankFile, file_id, again, operatorContext())
    await exposeFile(app, file_id, operatorContext())
    expect([(await fileOf())!.status, await readFile(path, 'latin1')]).toEqual(['exposed', text])
    await rename(path, `${path}.fetched`)
    expect(await lookAfterFile(app, file_id, operatorContext())).toBe('fetched')
    expect(await lookAfterFile(app, file_id, operatorContext())).toBeNull()
  })

  test('is found again when its folder is back, and not exposed again once it was fetched', async () => {
    await submit([entryOf()])
    const { file_id, content } = (await fileOf())!
    const [path, away] = [join(outbox, content!.name), join(inbox, 'away')]
    const look = () => lookAfterFile(app, file_id, operatorContext())
    await rename(path, away)
    expect([await look(), await look()]).toEqual(['uncertain', null])
    await rename(away, path)
    expect([await look(), (await fileOf())!.status]).toEqual([null, 'exposed'])

    await rename(path, away)
    expect(await look()).toBe('uncertain')
    const again = { type: 'ExposeAgain', note: null, at: app.clock.now() } as const
    await app.commands.execute(bankFile, file_id, again, operatorContext())
    await rename(away, `${path}.fetched`)
    await exposeFile(app, file_id, operatorContext())
    expect([(await fileOf())!.status, await readdir(outbox)]).toEqual([
      'fetched',
      [`${content!.name}.fetched`],
    ])
  })

  test('is not exposed on the day of its entries, where its folder was away until then', async () => {
    const { clock } = app
    await submit([entryOf()])
    const { file_id, content, batches } = (await fileOf())!
    await rm(join(outbox, content!.name))
    expect(await lookAfterFile(app, file_id, operatorContext())).toBe('uncertain')
    const again = { type: 'ExposeAgain', note: null, at: clock.now() } as const
    await app.commands.execute(bankFile, file_id, again, operatorContext())
    // it is staged, and no more
    await expect(exposeFile(dyingAt(app, 1, 'after'), file_id, operatorContext())).rejects.toThrow(Crashed)
    expect(await readdir(outbox)).toHaveLength(1)
    moveClock(app, startOf(batches[0]!.entry_date))
    await exposeFile(app, file_id, operatorContext())
    expect([(await fileOf())!.status, await readdir(outbox)]).toEqual(['uncertain', []])
  })

  test('is not exposed for the first time on the day of its entries either', async () => {
    const folders = Object.assign(new NachaFolders({ outboxDir: outbox, inboxDir: inbox }), {
      expose: async () => {
        throw new Crashed()
      },
    })
    const dying = { ...app, bankFiles: { ...app.bankFiles, folders } }
    await expect(submit([entryOf()], dying)).rejects.toThrow(Crashed)
    const { file_id, status, batches } = (await fileOf())!
    expect([status, (await readdir(outbox)).length]).toEqual(['recorded', 1])
    moveClock(app, startOf(batches[0]!.entry_date))
    await exposeFile(app, file_id, operatorContext())
    expect([(await fileOf())!.status, await readdir(outbox)]).toEqual(['uncertain', []])
  })

  test('leaves no account numbers where it died before its record, and its debits have ended since', async () => {
    const folders = Object.assign(new NachaFolders({ outboxDir: outbox, inboxDir: inbox }), {
      stage: async (...args: Parameters<NachaFolders['stage']>) => {
        await NachaFolders.prototype.stage.apply(folders, args)
        throw new Crashed()
      },
    })
    const dying = { ...app, bankFiles: { ...app.bankFiles, folders } }
    await expect(submit([entryOf()], dying)).rejects.toThrow(Crashed)
    expect([(await fileOf())!.status, (await readdir(outbox)).length]).toEqual(['begun', 1])
    await submit([])
    expect([(await fileOf())!.status, await readdir(outbox)]).toEqual(['begun', []])
  })

  test('is not one that was changed', async () => {
    await submit([entryOf()])
    const { file_id, content } = (await fileOf())!
    await writeFile(join(outbox, content!.name), 'something else')
    expect(await lookAfterFile(app, file_id, operatorContext())).toBe('uncertain')
  })

  test('waits where its folder cannot be used', async () => {
    const folders = new NachaFolders({ outboxDir: join(outbox, 'missing'), inboxDir: inbox })
    const away = { ...app, bankFiles: { ...app.bankFiles, folders } }
    await expect(submit([entryOf()], away)).rejects.toThrow(ProviderUnavailable)
    await expect(submit([entryOf()], away)).rejects.toThrow('The outbox of the bank cannot be used (ENOENT)')
    expect((await fileOf())!.status).toBe('begun')
  })
})

async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}
async function* cutShort(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
  throw new Error('died')
}

/** What whoever fetches files does between a crash and the next attempt. */
const FETCHERS = {
  nothing: async () => undefined,
  renames: async () => {
    for (const name of await readdir(outbox)) {
      if (name.endsWith('.ach') && !name.startsWith('.')) {
        await rename(join(outbox, name), join(outbox, `${name}.fetched`))
      }
    }
  },
} as const

describe('whoever dies at any step repeats it, and no entry goes twice or not at all', () => {
  for (const at of ['before', 'after'] as const) {
    // before a step there is what was there after the one before it
    const tags = at === 'before' ? ['long'] : []
    for (const [does, fetch] of Object.entries(FETCHERS)) {
      test(`${at} that step, while who fetches does ${does}`, { tags }, async () => {
        const small = { ...app, bankFiles: { ...app.bankFiles, limits: { ...LIMITS, totalCents: 1_000 } } }
        for (let step = 1, hasDied = true; hasDied; step += 1) {
          const entries = [entryOf(), entryOf(), entryOf()]
          hasDied = await submit(entries, dyingAt(small, step, at)).then(
            () => false,
            (error: unknown) => {
              if (error instanceof Crashed) return true
              throw error
            },
          )
          await fetch()
          await submit(entries, small)
          await fetch()
          expect([step, (await seen()).toSorted()]).toEqual([step, ids(entries).toSorted()])
          for (const name of await readdir(outbox)) await rm(join(outbox, name))
          nextBatch()
          if (!hasDied) expect(step).toBeGreaterThan(10)
        }
      })
    }
  }
})

/** The application with a process that dies at its n-th step to the outside: in folders, archive or log. */
function dyingAt(on: FileApp, step: number, at: 'before' | 'after'): FileApp {
  let steps = 0
  const dying =
    <Args extends readonly unknown[], Result>(run: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      steps += 1
      if (steps === step && at === 'before') throw new Crashed()
      const result = await run(...args)
      if (steps === step) throw new Crashed()
      return result
    }
  const { folders, archive } = on.bankFiles
  const commands = Object.create(on.commands) as FileApp['commands']
  commands.execute = dying(on.commands.execute.bind(on.commands)) as FileApp['commands']['execute']
  commands.load = on.commands.load.bind(on.commands)
  return {
    ...on,
    commands,
    bankFiles: {
      ...on.bankFiles,
      folders: {
        stage: dying((name, sha256, chunks) => folders.stage(name, sha256, chunks)),
        look: (name, sha256) => folders.look(name, sha256),
        expose: dying((name, sha256) => folders.expose(name, sha256)),
        withdraw: dying((name) => folders.withdraw(name)),
        incoming: () => folders.incoming(),
        read: (name) => folders.read(name),
        take: dying((name, sha256) => folders.take(name, sha256)),
        unusable: () => folders.unusable(),
      },
      archive: {
        write: dying((ref, chunks) => archive.write(ref, chunks)),
        read: (ref) => archive.read(ref),
      },
    },
  }
}

describe('files that come', () => {
  const text = reportFile([{ code: 'R01', originalTrace: '021000020000001' }])

  test('are taken once it is known what was fetched, and also while that cannot be looked for', async () => {
    await submit([entryOf()])
    const { file_id, content } = (await fileOf())!
    await rename(join(outbox, content!.name), join(outbox, `${content!.name}.fetched`))
    const before: string[] = []
    const folders = Object.assign(new NachaFolders({ outboxDir: outbox, inboxDir: inbox }), {
      incoming: async () => {
        before.push((await fileOf())!.status)
        return []
      },
    })
    const read = { query: async () => [{ file_id }] as never }
    const looking = { ...app, read, bankFiles: { ...app.bankFiles, folders } }
    expect(await lookAtFolders(looking, operatorContext())).toEqual({ taken: 0, fetched: 1, uncertain: 0 })
    const late = { query: () => Promise.reject(new ProviderUnavailable('away')) }
    await expect(lookAtFolders({ ...looking, read: late }, operatorContext())).rejects.toThrow('away')
    expect(before).toEqual(['fetched', 'fetched'])
  })

  test('are taken once by their content, kept, and put out of the way', async () => {
    await writeFile(join(inbox, 'b.txt'), text)
    await writeFile(join(inbox, 'a.txt'), text)
    await writeFile(join(inbox, 'c.part'), 'not whole yet')
    expect(await takeReports(app, operatorContext())).toBe(2)
    expect((await readdir(inbox)).toSorted()).toEqual(['a.txt.taken', 'b.txt.taken', 'c.part'])
    const [received] = await app.log
      .readAll({ after: 0n, maxCount: 1, types: ['BankReportReceived'] })
      .then(({ events }) => events)
    const { report_id } = JSON.parse(received!.data)
    expect((await app.commands.load(bankReport, report_id)).state).toMatchObject({
      names: ['a.txt', 'b.txt'],
      status: 'received',
      bytes: text.length,
    })
    const chunks: Uint8Array[] = []
    for await (const chunk of app.bankFiles.archive.read(`in/${report_id}`)) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe(text)
    await writeFile(join(inbox, 'a.txt'), text)
    expect(await takeReports(app, operatorContext())).toBe(1)
    expect((await app.log.readStream(`bankReport-${report_id}`)).length).toBe(2)
  })

  test('are taken, although one of them cannot be', async () => {
    // it is renamed, and no name is longer
    await writeFile(join(inbox, 'a'.repeat(255)), 'not ours')
    await writeFile(join(inbox, 'b.txt'), `${text} `)
    await expect(takeReports(app, operatorContext())).rejects.toThrow('inbox of the bank cannot be used')
    expect(await app.bankFiles.folders.incoming()).toEqual(['a'.repeat(255)])
  })

  test('are taken by whoever repeats what broke off', async () => {
    for (let step = 1; step <= 3; step += 1) {
      const other = `${text}${' '.repeat(step)}`
      await writeFile(join(inbox, 'd.txt'), other)
      await expect(takeReports(dyingAt(app, step, 'after'), operatorContext())).rejects.toThrow(Crashed)
      await takeReports(app, operatorContext())
      expect(await app.bankFiles.folders.incoming()).toEqual([])
    }
  })

  test('stand nowhere in plain text', async () => {
    const secret = randomBytes(8).toString('hex')
    await writeFile(join(inbox, 'e.txt'), secret)
    await takeReports(app, operatorContext())
    const { rows } = await process.bench.database.pool.query<{ found: boolean }>(
      `SELECT bool_or(position($1::bytea in sealed) > 0) AS found FROM runtime.bank_archive`,
      [Buffer.from(secret)],
    )
    expect(rows[0]!.found).toBe(false)
    expect(reportIdOf('0'.repeat(64))).toMatch(/^[0-9a-f]{24}$/)
  })

  test('are not put out of the way in the place of another one that came under their name since', async () => {
    const [first, second] = ['R01', 'R09'].map((code) =>
      reportFile([{ code, originalTrace: '9'.repeat(15) }]),
    )
    const path = join(inbox, 'returns.txt')
    await writeFile(path, first!)
    const folders = Object.assign(new NachaFolders({ outboxDir: outbox, inboxDir: inbox }), {
      read: async (name: string) => {
        const file = await app.bankFiles.folders.read(name)
        await writeFile(path, second!)
        return file
      },
    })
    const taking = { ...app, bankFiles: { ...app.bankFiles, folders } }
    expect(await takeReports(taking, operatorContext())).toBe(1)
    expect(await readdir(inbox)).toEqual(['returns.txt'])
    expect(await takeReports(app, operatorContext())).toBe(1)
    expect(await readdir(inbox)).toEqual(['returns.txt.taken'])
    for (const text of [first!, second!]) {
      const id = reportIdOf(createHash('sha256').update(text).digest('hex'))
      expect((await app.commands.load(bankReport, id)).state).toMatchObject({ status: 'received' })
    }
  })
})
