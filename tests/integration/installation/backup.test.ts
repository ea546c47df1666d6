// @module-tag once: it has the installations that it needs itself
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CARRIED_TABLES } from '../../../infrastructure/installation/carried-tables.ts'
import { achDebitsOf } from '../../support/ach-debits.ts'
import { cli, expectRefused } from '../../support/cli.ts'
import { report } from '../../support/core.ts'
import { createTestDatabase } from '../../support/database.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { linkBody, partner } from '../../support/payments.ts'
import { continueStory, expectStory, makeStory, type Story } from '../../support/payroll-story.ts'
import { type Answer, operate } from '../../support/seed.ts'
import { type RunningService, startProcess } from '../../support/service.ts'
import { withClient } from '../../support/table-copies.ts'
import { underLoad } from '../../support/under-load.ts'

const hasEventStore = (await findEventStore()) !== null
const newKey = () => randomBytes(32).toString('base64')

const closers: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

let directory: string
let dataDir: string
let backup: string
let masterKey: string
/** What was backed up, as the command tells it. */
let made: ReturnType<typeof JSON.parse>
let story: Story
/** Requests of a partner about money, and what each was answered before the backup. */
let asked: readonly { readonly ask: (service: RunningService) => Promise<Answer>; readonly answer: unknown }[]

/** A folder with a checkpoint of before the backup, and a checkpoint of after it. */
let checkpoints: string
let newestCheckpoint: string
/** Of the service, before and after the backup. */
const metrics: string[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'compstream-backup-'))
  closers.push(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  dataDir = join(directory, 'data')
  backup = join(directory, 'backup')
  checkpoints = join(directory, 'checkpoints')
  newestCheckpoint = join(directory, 'newest')
  await mkdir(checkpoints)
  const service = await startProcess({ dataDir, env: { AUDIT_CHECKPOINTS_DIR: checkpoints } })
  closers.push(() => service.kill())
  masterKey = (await readFile(join(dataDir, 'master-key'), 'utf8')).trim()
  story = await makeStory(service)
  asked = await askAboutMoney(service)
  await operate(service, 'POST', '/audit/checkpoints')
  const before = await mkdtemp(join(directory, 'kept-'))
  await cp(checkpoints, before, { recursive: true })

  const readMetrics = async () => metrics.push(await (await fetch(`${service.opsUrl}/metrics`)).text())
  await readMetrics()
  const send = async () => expect((await report(service, story.tenant)).status).toBe(202)
  const run = await underLoad(2, send, async (more) => {
    await more(3)
    const command = await cli(['backup', backup, '--json'], { env: { DATA_DIR: dataDir } })
    await more(20)
    return command
  })
  expect(run.code, run.stderr).toBe(0)
  made = run.json()
  await readMetrics()
  await operate(service, 'POST', '/audit/checkpoints')
  expect(await service.end()).toBe(0)
  await rename(join(checkpoints, 'latest.checkpoint'), newestCheckpoint)
  await rm(checkpoints, { recursive: true })
  await rename(before, checkpoints)
})

async function askAboutMoney(service: RunningService) {
  const { tenant } = story
  const { clientHeaders } = tenant
  const debits = achDebitsOf(service, tenant)
  const debit = debits.debit(await debits.account())
  const requests = [
    { method: 'POST', path: '/payment-links', body: linkBody(tenant), key: 'link-1' },
    { method: 'POST', path: '/ach/debits', body: debit, key: 'debit-1' },
    { method: 'GET', path: '/payment-links' },
    { method: 'GET', path: '/ach/transactions' },
  ]
  const all: (typeof asked)[number][] = []
  for (const { method, path, body, key } of requests) {
    const ask = (to: RunningService) => partner(to, clientHeaders, method, path, body, key)
    const { status, text, body: answer } = await ask(service)
    expect([200, 201], text).toContain(status)
    all.push({ ask, answer })
    await operate(service, 'POST', '/drain')
  }
  return all
}

/** Everything that was acknowledged before the backup holds, and the service goes on. */
async function expectEverything(service: RunningService, log: Story['log']): Promise<void> {
  await operate(service, 'POST', '/drain')
  await expectStory(service, { ...story, log })
  for (const { ask, answer } of asked) expect((await ask(service)).body).toEqual(answer)
  await continueStory(service, story)
  expect(
    JSON.stringify(
      await operate(service, 'GET', `/employers/${story.tenant.employerId}/register?reveal=true`),
    ),
  ).not.toContain('Oriel Vantongeren')
}

async function start(given: string, env: Record<string, string> = {}): Promise<RunningService> {
  const service = await startProcess({ dataDir: given, env })
  closers.push(() => service.kill())
  return service
}

test('it says what it holds, and names no key and nobody', async () => {
  expect(made).toMatchObject({
    verified: true,
    backup,
    log: { events: expect.any(Number), log_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    checkpoint: { size: expect.any(Number) },
    rows: { 'runtime.secrets': expect.any(Number), 'webhooks.deliveries': 0 },
  })
  expect(made.log.events).toBeGreaterThanOrEqual(made.checkpoint.size)
  expect((await readdir(directory)).filter((name) => name.includes('unfinished'))).toEqual([])
  for (const name of await readdir(backup)) {
    const content = await readFile(join(backup, name), 'latin1')
    for (const text of [masterKey, 'Quillon', 'PayrollFileReceived', 'fingerprint-root']) {
      expect(content, name).not.toContain(text)
    }
  }
  const checked = await cli(['backup', backup, '--check', '--json'], { env: { MASTER_KEY: masterKey } })
  expect({ ...checked.json(), noted: true }).toEqual(made)
  const ages = metrics.map((text) => /^compstream_backup_age_seconds (\S+)$/m.exec(text)?.[1])
  expect(ages).toEqual([undefined, expect.stringMatching(/^\d+(\.\d+)?$/)])
})

test('restored into an empty data directory, it answers what it answered, and a newer checkpoint tells what it lacks', async () => {
  const restored = join(directory, 'restored')
  await mkdir(restored)
  await copyFile(join(dataDir, 'master-key'), join(restored, 'master-key'))
  const run = await cli(['restore', backup, '--json'], { env: { DATA_DIR: restored } })
  expect(run.code, run.stderr).toBe(0)
  expect(run.json()).toMatchObject({ restored: true, to: { log_hash: made.log.log_hash } })
  // a second time it is not empty any more
  const again = await cli(['restore', backup], { env: { DATA_DIR: restored } })
  expectRefused(again, /restored is not empty, it has rows in runtime\.data_keys: restore into/)

  const service = await start(restored, { AUDIT_CHECKPOINTS_DIR: checkpoints })
  await expectEverything(service, story.log)
  await copyFile(newestCheckpoint, join(checkpoints, 'newest.checkpoint'))
  const { verified, first_problem } = await operate(service, 'POST', '/audit/verify')
  expect([verified, first_problem.problem]).toEqual([
    false,
    expect.stringMatching(/^(missing_end|differs_from_checkpoint)$/),
  ])
  expect(await service.end()).toBe(0)
})

test.skipIf(!hasEventStore)('restored onto EventStoreDB, it answers what it answered', async () => {
  const server = await startEventStore()
  closers.push(() => server.stop())
  const database = await createTestDatabase({ migrate: false })
  closers.push(database.drop)
  const env = { DATABASE_URL: database.url, EVENTSTORE_URL: server.url, MASTER_KEY: masterKey }
  const run = await cli(['restore', backup, '--json'], { env })
  expect(run.code, run.stderr).toBe(0)
  expect(run.json()).toMatchObject({ to: { log_hash: made.log.log_hash } })
  expectRefused(await cli(['restore', backup], { env }), /is not empty/)
  const service = await start(await mkdtemp(join(directory, 'eventstore-')), {
    ...env,
    OPERATOR_TOKEN: newKey(),
  })
  await expectEverything(service, [])
  expect(await service.end()).toBe(0)
})

test('a restore that was interrupted goes on when it is started again, and wraps all keys with a new master key', async () => {
  const database = await createTestDatabase({ migrate: false })
  closers.push(database.drop)
  const env = { DATABASE_URL: database.url, MASTER_KEY: `${newKey()},${masterKey}` }
  expect((await cli(['restore', backup], { env })).code).toBe(0)
  const secrets = await withClient(database.url, async (client) => {
    const { rowCount } = await client.query('SELECT FROM runtime.secrets')
    // as it is when the log was written, and the last transaction was not
    for (const table of [...CARRIED_TABLES, 'runtime.log_binding']) await client.query(`DELETE FROM ${table}`)
    return rowCount
  })
  expect((await cli(['restore', backup], { env })).code).toBe(0)
  await withClient(database.url, async (client) => {
    expect((await client.query('SELECT FROM runtime.secrets')).rowCount).toBe(secrets)
    const { rows } = await client.query('SELECT count(*)::int AS events FROM event_log.events')
    expect(rows).toEqual([{ events: made.log.events }])
    const { rows: keys } = await client.query(
      `SELECT master_key_id AS id FROM runtime.secrets UNION SELECT master_key_id FROM runtime.data_keys WHERE wrapped IS NOT NULL`,
    )
    const { master_key_id: old } = JSON.parse(await readFile(join(backup, 'manifest.json'), 'utf8'))
    expect(keys).toEqual([{ id: expect.not.stringContaining(old) }])
  })
})

describe('nothing is written by', () => {
  /** A copy of the backup with something done to it. */
  async function altered(change: (folder: string) => Promise<unknown>): Promise<string> {
    const folder = await mkdtemp(join(directory, 'altered-'))
    await cp(backup, folder, { recursive: true })
    await change(folder)
    return folder
  }
  const edit = async (path: string, change: (bytes: Buffer) => unknown) => {
    const bytes = await readFile(path)
    change(bytes)
    await writeFile(path, bytes)
  }

  test.each<[string, (folder: string) => Promise<unknown>, RegExp]>([
    [
      'a byte of an event changed',
      (at) => edit(join(at, 'events.sealed'), (bytes) => bytes[99]!++),
      /events\.sealed: it was changed or cut$/m,
    ],
    [
      'the last events cut off',
      (at) => truncate(join(at, 'events.sealed'), 64 * 1024 + 16),
      /events\.sealed: it was changed or cut$/m,
    ],
    [
      'a table changed',
      (at) => edit(join(at, 'tables.sealed'), (bytes) => bytes[9]!--),
      /tables\.sealed: it was changed or cut$/m,
    ],
    [
      'one file in the place of another',
      (at) => copyFile(join(at, 'events.sealed'), join(at, 'tables.sealed')),
      /tables\.sealed: it was changed or cut$/m,
    ],
    ['a file missing', (at) => rm(join(at, 'tables.sealed')), /tables\.sealed: ENOENT$/m],
    [
      'another count of events',
      (at) =>
        edit(join(at, 'manifest.json'), (bytes) => {
          const count = bytes.indexOf('"events": ') + '"events": '.length
          bytes.write(bytes[count] === 0x39 ? '8' : '9', count)
        }),
      /manifest\.json was changed or cut$/m,
    ],
    ['no manifest', (at) => rm(join(at, 'manifest.json')), /holds no backup: manifest\.json: ENOENT$/m],
  ])('a restore of a backup with %s', async (_, change, why) => {
    const target = join(directory, 'untouched')
    const env = { DATA_DIR: target, MASTER_KEY: masterKey }
    expectRefused(await cli(['restore', await altered(change)], { env }), why)
    expect(existsSync(target)).toBe(false)
  })

  test.each([
    [
      'another master key',
      { MASTER_KEY: newKey() },
      /MASTER_KEY does not contain the key [0-9a-f]{16} of the backup manifest$/m,
    ],
    ['no master key', {}, /MASTER_KEY is missing: expected that of the installation/],
    ['a malformed one', { MASTER_KEY: 'x' }, /MASTER_KEY is malformed/],
  ])('a restore with %s', async (_, env, why) => {
    const target = join(directory, 'untouched')
    expectRefused(await cli(['restore', backup], { env: { ...env, DATA_DIR: target } }), why)
    expect(existsSync(target)).toBe(false)
  })

  test('a restore over an installation', async () => {
    const before = (await cli(['events', 'verify', '--at', dataDir, '--json'])).json()
    const run = await cli(['restore', backup], { env: { DATA_DIR: dataDir } })
    expectRefused(run, /data is not empty, it has rows in runtime\.data_keys/)
    expect((await cli(['events', 'verify', '--at', dataDir, '--json'])).json()).toEqual(before)
  })

  test.each<[string, () => string, () => Record<string, string>, RegExp]>([
    [
      'into a folder with something in it',
      () => backup,
      () => ({}),
      /backup is not empty: a backup takes a new folder/,
    ],
    [
      'into a folder of no folder',
      () => join(directory, 'none', 'x'),
      () => ({}),
      /none\/x cannot be written: ENOENT/,
    ],
    [
      'under another master key',
      () => join(directory, 'new'),
      () => ({ MASTER_KEY: newKey() }),
      /MASTER_KEY does not contain the key [0-9a-f]{16}/,
    ],
    [
      'of nothing',
      () => join(directory, 'new'),
      () => ({ DATA_DIR: directory, MASTER_KEY: newKey() }),
      /holds no embedded server/,
    ],
    [
      'of a log in EventStoreDB',
      () => join(directory, 'new'),
      () => ({ EVENTSTORE_URL: 'esdb://x' }),
      /the event log is in EventStoreDB/,
    ],
  ])('a backup %s', async (_, folder, env, why) => {
    const before = await readdir(directory)
    expectRefused(await cli(['backup', folder()], { env: { DATA_DIR: dataDir, ...env() } }), why)
    expect(await readdir(directory)).toEqual(before)
  })
})

test('every table beside the log is in a backup, or derives from the log, or is of the running processes', async () => {
  const database = await createTestDatabase()
  const tables = await withClient(database.url, async (client) => {
    const { rows } = await client.query(
      `SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname IN ('runtime', 'webhooks', 'event_log')`,
    )
    return rows.map(({ name }) => name as string)
  }).finally(database.drop)
  const others = tables.filter((name) => !CARRIED_TABLES.includes(name)).sort()
  // a new one goes into docs/operators/backup.md as well
  expect(others).toEqual([
    'event_log.events',
    'runtime.backups',
    'runtime.console_sessions',
    'runtime.faults',
    'runtime.known_servers',
    'runtime.leases',
    'runtime.log_binding',
    'runtime.log_marks',
    'runtime.log_tree',
    'runtime.log_tree_tiles',
    'runtime.parked_streams',
    'runtime.projection_requests',
    'runtime.projections',
    'runtime.sessions',
    'runtime.throughput',
  ])
})
