// @module-tag once: its subject is the same whatever holds the log
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Clock } from '../../../application/ports/clock.ts'
import { ERASED } from '../../../application/ports/personal-data.ts'
import { isSealed, type Sealed, sealContext, subjectOf } from '../../../domain/kernel/sealed.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import type { DataKeysOptions } from '../../../infrastructure/secrets/data-keys.ts'
import { EncryptedPersonalData } from '../../../infrastructure/secrets/personal-data.ts'
import { rewrapAll } from '../../../infrastructure/secrets/rewrap.ts'
import { PostgresSecretVault } from '../../../infrastructure/secrets/vault.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'

const clock: Clock = { kind: 'virtual', now: () => Date.UTC(2026, 0, 2) }
const context = sealContext('payrollFile-1', 'PayrollRowsRecorded', 'employee')
const masterKey = randomBytes(32)

let database: TestDatabase
let pool: pg.Pool
/** Statements that the pool ran, by their names or texts. */
const statements: string[] = []
/** Keeps back what the next look-up of keys has read. */
let holdNextRead: (() => Promise<void>) | null = null

beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url, max: 6 })
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>
  pool.query = (async (...given: unknown[]) => {
    const [first] = given as [{ name?: string; text?: string } | string]
    const name = typeof first === 'string' ? first : (first.name ?? first.text ?? '')
    statements.push(name)
    const hold = name === 'data-keys/store-missing' ? holdNextRead : null
    if (hold) holdNextRead = null
    const result = await query(...given)
    await hold?.()
    return result
  }) as typeof pool.query
})

afterAll(async () => {
  await pool?.end()
  await database?.drop()
})

/** What one process has: its own memory over the common database. */
async function openProcess(keys: readonly Buffer[] = [masterKey], options: DataKeysOptions = {}) {
  const masterKeys = new MasterKeys(keys)
  const vault = new PostgresSecretVault(pool, masterKeys, clock)
  return {
    vault,
    masterKeys,
    personalData: await EncryptedPersonalData.open({ pool, vault, masterKeys, clock }, options),
  }
}

async function sealOne(
  personalData: EncryptedPersonalData,
  subject: string,
  plaintext: string,
): Promise<Sealed> {
  return (await personalData.seal([{ subject, context, plaintext }]))[0]!
}

async function openOne(personalData: EncryptedPersonalData, value: Sealed): Promise<string> {
  return (await personalData.open([{ value, context }]))[0]!
}

async function destroyLatest(personalData: EncryptedPersonalData, subject: string): Promise<void> {
  await personalData.destroyKey(subject, (await personalData.keyGeneration(subject)) ?? 1)
}

/** Lets the next look-up of keys read, and answer only after `release`. */
function heldRead(): { reading: Promise<void>; release: () => void } {
  const { opened: released, open: release } = gate()
  const reading = new Promise<void>((resolve) => {
    holdNextRead = () => {
      resolve()
      return released
    }
  })
  return { reading, release }
}

function newSubject(): string {
  return `person/${randomBytes(12).toString('hex')}`
}

describe('sealing', () => {
  test('what is sealed opens to the same text, in this process and in another', async () => {
    const { personalData } = await openProcess()
    const people = ['Ada Baker', '', 'Zoë 漢字 🙂', 'x'.repeat(5000)].map((plaintext) => ({
      subject: newSubject(),
      context,
      plaintext,
    }))
    const sealed = await personalData.seal(people)

    expect(sealed.every(isSealed)).toBe(true)
    expect(sealed.map(subjectOf)).toEqual(people.map(({ subject }) => subject))
    const items = sealed.map((value) => ({ value, context }))
    expect(await personalData.open(items)).toEqual(people.map(({ plaintext }) => plaintext))
    const elsewhere = await openProcess()
    expect(await elsewhere.personalData.open(items)).toEqual(people.map(({ plaintext }) => plaintext))
  })

  test('the same text sealed twice looks different', async () => {
    const { personalData } = await openProcess()
    const subject = newSubject()
    expect(await sealOne(personalData, subject, 'Ada')).not.toBe(await sealOne(personalData, subject, 'Ada'))
  })

  test('a value does not open at another place, for another subject or after a change', async () => {
    const { personalData } = await openProcess()
    const subject = newSubject()
    const other = newSubject()
    const value = await sealOne(personalData, subject, 'Ada Baker')
    await sealOne(personalData, other, 'Bo Carter')

    const elsewhere = sealContext('payrollFile-2', 'PayrollRowsRecorded', 'employee')
    await expect(personalData.open([{ value, context: elsewhere }])).rejects.toThrow('belongs elsewhere')
    const moved = value.replace(subject, other) as Sealed
    await expect(openOne(personalData, moved)).rejects.toThrow('belongs elsewhere')
    const at = value.length - 6
    const changed = `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}` as Sealed
    await expect(openOne(personalData, changed)).rejects.toThrow('changed')
    await expect(openOne(personalData, `sld1.${subject}.AAAA` as Sealed)).rejects.toThrow('cut short')
    await expect(openOne(personalData, value.replace(subject, newSubject()) as Sealed)).rejects.toThrow(
      'no data key',
    )
  })

  test('a malformed subject is refused before anything is stored', async () => {
    const { personalData } = await openProcess()
    await expect(sealOne(personalData, 'person.1', 'Ada')).rejects.toThrow('malformed')
  })
})

describe('batches', () => {
  test('thousands of new people cost one statement, known ones nothing', async () => {
    const { personalData } = await openProcess()
    const people = Array.from({ length: 3_000 }, () => ({
      subject: newSubject(),
      context,
      plaintext: 'Ada Baker',
    }))
    statements.length = 0
    await personalData.seal(people)
    expect(statements).toEqual(['data-keys/store-missing'])

    statements.length = 0
    await personalData.seal(people)
    // at most the look for erasures of other processes, once a second
    expect(statements.filter((name) => name !== 'data-keys/destroyed-since')).toEqual([])
  })

  test('small reports of one moment share their statements', async () => {
    const { personalData } = await openProcess()
    const shared = newSubject()
    statements.length = 0
    const reports = await Promise.all(
      Array.from({ length: 200 }, () =>
        personalData.seal([
          { subject: newSubject(), context, plaintext: 'Ada' },
          { subject: shared, context, plaintext: 'Bo' },
        ]),
      ),
    )
    expect(statements).toEqual(['data-keys/store-missing'])
    const items = reports.flat().map((value) => ({ value, context }))
    expect(new Set(await personalData.open(items))).toEqual(new Set(['Ada', 'Bo']))
  })

  test('processes that meet the same new people at once agree on one key each', async () => {
    const processes = await Promise.all(Array.from({ length: 4 }, () => openProcess()))
    const subjects = Array.from({ length: 300 }, newSubject)
    const sealed = await Promise.all(
      processes.map(({ personalData }, index) =>
        personalData.seal(
          // each in an order of its own
          subjects
            .map((_, place) => subjects[(place * 7 + index * 31) % subjects.length]!)
            .map((subject) => ({ subject, context, plaintext: subject })),
        ),
      ),
    )
    const fresh = await openProcess()
    for (const values of sealed) {
      const opened = await fresh.personalData.open(values.map((value) => ({ value, context })))
      expect(opened).toEqual(values.map(subjectOf))
    }
  })

  test('keys pushed out of memory are read again, not made again', async () => {
    const { personalData } = await openProcess([masterKey], { cachedKeys: 2 })
    const subjects = Array.from({ length: 5 }, newSubject)
    const seal = () =>
      personalData.seal(subjects.map((subject) => ({ subject, context, plaintext: subject })))
    const first = await seal()
    const second = await seal()
    const items = [...first, ...second].map((value) => ({ value, context }))
    expect(await personalData.open(items)).toEqual([...subjects, ...subjects])
  })

  test('a failed statement fails its callers and is forgotten', async () => {
    const { personalData } = await openProcess()
    const subject = newSubject()
    await pool.query('ALTER TABLE runtime.data_keys RENAME TO data_keys_away')
    await expect(sealOne(personalData, subject, 'Ada')).rejects.toThrow('does not exist')
    await pool.query('ALTER TABLE runtime.data_keys_away RENAME TO data_keys')
    const value = await sealOne(personalData, subject, 'Ada')
    expect(await openOne(personalData, value)).toBe('Ada')
  })
})

describe('erasure', () => {
  test('takes effect for the very next read of every process, whatever it has in memory', async () => {
    const [here, there] = [await openProcess(), await openProcess()]
    const subject = newSubject()
    const value = await sealOne(here.personalData, subject, 'Ada Baker')
    expect(await openOne(there.personalData, value)).toBe('Ada Baker')
    await sealOne(there.personalData, subject, 'Ada Baker')

    await destroyLatest(here.personalData, subject)

    expect(await openOne(there.personalData, value)).toBe(ERASED)
    expect(await openOne(here.personalData, value)).toBe(ERASED)
    await destroyLatest(here.personalData, subject)
    const { rows } = await pool.query(
      'SELECT wrapped, master_key_id, destroyed_at FROM runtime.data_keys WHERE subject = $1',
      [subject],
    )
    expect(rows).toEqual([{ wrapped: null, master_key_id: null, destroyed_at: new Date(clock.now()) }])
  })

  test('a subject has a key from the first sealing on, also after its key was destroyed', async () => {
    const [here, there] = [await openProcess(), await openProcess()]
    const subject = newSubject()
    expect(await here.personalData.keyGeneration(subject)).toBeNull()
    await destroyLatest(here.personalData, subject)
    expect(await here.personalData.keyGeneration(subject)).toBeNull()
    await sealOne(here.personalData, subject, 'Ada Baker')
    expect(await there.personalData.keyGeneration(subject)).toBe(1)
    await destroyLatest(here.personalData, subject)
    expect(await there.personalData.keyGeneration(subject)).toBe(1)
  })

  test('other people in the same call stay readable', async () => {
    const { personalData } = await openProcess()
    const [erased, kept] = [newSubject(), newSubject()]
    const values = await personalData.seal([
      { subject: erased, context, plaintext: 'Ada' },
      { subject: kept, context, plaintext: 'Bo' },
    ])
    await destroyLatest(personalData, erased)
    expect(await personalData.open(values.map((value) => ({ value, context })))).toEqual([ERASED, 'Bo'])
  })

  test('who is reported again gets a new key, and what was erased stays so', async () => {
    const here = await openProcess()
    const subject = newSubject()
    const before = await sealOne(here.personalData, subject, 'Ada Baker')
    await destroyLatest(here.personalData, subject)
    const after = await sealOne(here.personalData, subject, 'Ada Baker-Carter')

    const there = await openProcess()
    for (const { personalData } of [here, there]) {
      expect(await openOne(personalData, before)).toBe(ERASED)
      expect(await openOne(personalData, after)).toBe('Ada Baker-Carter')
    }
    // the first erasure, once more and late
    await here.personalData.destroyKey(subject, 1)
    expect(await openOne(there.personalData, after)).toBe('Ada Baker-Carter')
    await here.personalData.destroyKey(subject, 2)
    expect(await openOne(there.personalData, after)).toBe(ERASED)
  })

  test('another process stops sealing with the destroyed key', async () => {
    const here = await openProcess()
    const there = await openProcess([masterKey], { erasureCheckMs: 0 })
    const subject = newSubject()
    await sealOne(there.personalData, subject, 'Ada')
    await destroyLatest(here.personalData, subject)
    const value = await sealOne(there.personalData, subject, 'Ada')
    expect(await openOne(here.personalData, value)).toBe('Ada')
  })

  test('an erasure between reading a key and using it is not undone by memory', async () => {
    const subject = newSubject()
    await sealOne((await openProcess()).personalData, subject, 'Ada')
    const { personalData } = await openProcess()
    const { reading, release } = heldRead()
    const before = sealOne(personalData, subject, 'Ada')
    await reading
    await destroyLatest(personalData, subject)
    const after = sealOne(personalData, subject, 'Ada')
    release()
    expect(await openOne(personalData, await before)).toBe(ERASED)
    expect(await openOne(personalData, await after)).toBe('Ada')
    expect(await openOne(personalData, await sealOne(personalData, subject, 'Ada'))).toBe('Ada')
  })

  test('a key read before an erasure and answered after it is not remembered', async () => {
    const subject = newSubject()
    await sealOne((await openProcess()).personalData, subject, 'Ada')
    const { personalData } = await openProcess()
    const { reading, release } = heldRead()
    const before = sealOne(personalData, subject, 'Ada')
    await reading
    await destroyLatest(personalData, subject)
    release()
    expect(await openOne(personalData, await before)).toBe(ERASED)
    expect(await openOne(personalData, await sealOne(personalData, subject, 'Ada'))).toBe('Ada')
  })

  test('no two keys of a subject ever share a number', async () => {
    const [here, there] = [await openProcess(), await openProcess()]
    const subject = newSubject()
    await sealOne(here.personalData, subject, 'first')
    await destroyLatest(here.personalData, subject)
    const { reading, release } = heldRead()
    const slow = sealOne(there.personalData, subject, 'third')
    await reading
    const second = await sealOne(here.personalData, subject, 'second')
    await destroyLatest(here.personalData, subject)
    release()
    expect(await openOne(here.personalData, await slow)).toBe('third')
    expect(await openOne(here.personalData, second)).toBe(ERASED)
  })

  test('nobody is erased where there is nothing to erase', async () => {
    const { personalData } = await openProcess()
    const subject = newSubject()
    await destroyLatest(personalData, subject)
    expect(await openOne(personalData, await sealOne(personalData, subject, 'Ada'))).toBe('Ada')
  })
})

describe('fingerprints', () => {
  test('are the same in every process and after a rotation of the master key', async () => {
    const here = (await openProcess()).personalData
    const rotated = (await openProcess([randomBytes(32), masterKey])).personalData
    expect(here.subjectId('person', 'ada|baker')).toMatch(/^person\/[0-9a-f]{24}$/)
    expect(here.fingerprint('fein', '12-3456789')).toMatch(/^[0-9a-f]{24}$/)
    expect(rotated.subjectId('person', 'ada|baker')).toBe(here.subjectId('person', 'ada|baker'))
    expect(rotated.fingerprint('fein', '12-3456789')).toBe(here.fingerprint('fein', '12-3456789'))
  })

  test('differ by kind, purpose and value', async () => {
    const { personalData } = await openProcess()
    const ids = [
      personalData.subjectId('person', 'a').slice(-24),
      personalData.subjectId('employer', 'a').slice(-24),
      personalData.fingerprint('person', 'a'),
      personalData.fingerprint('fein', 'a'),
      personalData.fingerprint('fein', 'b'),
    ]
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe('rotation of the master key', () => {
  test('the old key can go once everything is wrapped with the new one', async () => {
    const old = await openProcess()
    const subject = newSubject()
    const erased = newSubject()
    const value = await sealOne(old.personalData, subject, 'Ada Baker')
    await sealOne(old.personalData, erased, 'Bo Carter')
    await destroyLatest(old.personalData, erased)
    await old.vault.put('connection/rotation', 's3cret')
    const next = randomBytes(32)

    await expect(openProcess([next])).rejects.toThrow(/^MASTER_KEY does not contain the key [0-9a-f]{16} /)

    const both = await openProcess([next, masterKey])
    expect(await openOne(both.personalData, value)).toBe('Ada Baker')
    // two processes that start at once both do it
    const parallel = await Promise.all([rewrapAll(pool, both.masterKeys), rewrapAll(pool, both.masterKeys)])
    expect(Math.max(...parallel.map(({ dataKeys }) => dataKeys))).toBeGreaterThan(0)
    expect(await rewrapAll(pool, both.masterKeys)).toEqual({ dataKeys: 0, secrets: 0 })

    const alone = await openProcess([next])
    expect(await openOne(alone.personalData, value)).toBe('Ada Baker')
    expect(await alone.vault.get('connection/rotation')).toBe('s3cret')
    await expect(openProcess([masterKey])).rejects.toThrow('MASTER_KEY does not contain the key')
    await rewrapAll(pool, new MasterKeys([next]))
    // later tests of this file go on with the first key
    const back = await openProcess([masterKey, next])
    await rewrapAll(pool, back.masterKeys)
  })
})

// a server given from outside keeps its files elsewhere
test.skipIf(process.env.TEST_DATABASE_URL)(
  'no plaintext and no key reaches the files of the database',
  async () => {
    const { personalData, vault } = await openProcess()
    const name = `Plainname${randomBytes(8).toString('hex')}`
    const secret = `whsec_${randomBytes(16).toString('hex')}`
    const subject = personalData.subjectId('person', name)
    await sealOne(personalData, subject, name)
    await vault.put(`connection/${randomBytes(4).toString('hex')}`, secret)
    await pool.query('CHECKPOINT')
    const { rows } = await pool.query<{ dir: string }>("SELECT current_setting('data_directory') AS dir")
    const found: string[] = []
    let controls = 0
    for (const entry of await readdir(rows[0]!.dir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      const bytes = await readFile(path).catch(() => Buffer.alloc(0))
      if (bytes.includes(subject)) controls += 1
      if ([name, secret, masterKey, masterKey.toString('hex')].some((needle) => bytes.includes(needle))) {
        found.push(path)
      }
    }
    // the subject's id stands there: these are the files that were meant
    expect(controls).toBeGreaterThan(0)
    expect(found).toEqual([])
  },
)
