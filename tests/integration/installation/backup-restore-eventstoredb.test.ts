// @module-tag once: it has the log that it needs itself
// @module-tag long: copy-events and backup-restore have the same on one server
import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import {
  type AppendExpectedRevision,
  EventStoreDBClient,
  jsonEvent,
  NO_STREAM,
  START,
} from '@eventstore/db-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../../infrastructure/database/migrate.ts'
import { post } from '../../support/core.ts'
import { createTestDatabase } from '../../support/database.ts'
import { type EventStoreServer, eventStoreProgram, startEventStore } from '../../support/eventstoredb.ts'
import { continueStory, expectStory, makeStory, type Story, storedLog } from '../../support/payroll-story.ts'
import { postgresToolsFit } from '../../support/postgres-tools.ts'
import { operate } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { copyTables, withClient, writeTables } from '../../support/table-copies.ts'
import { underLoad } from '../../support/under-load.ts'
import { until } from '../../support/workbench.ts'

const run = promisify(execFile)
const SCRIPT = resolve(import.meta.dirname, '../../../deploy/backup-eventstoredb.sh')
/** Files are copied beside the server, so only one whose files are on this machine will do. */
const possible = (await eventStoreProgram()) !== null

/** Appends two events at the revision that is named. */
async function append(client: EventStoreDBClient, stream: string, expectedRevision: AppendExpectedRevision) {
  const events = [1, 2].map((n) => jsonEvent({ id: randomUUID(), type: 'Happened', data: { stream, n } }))
  const { nextExpectedRevision } = await client.appendToStream(stream, events, { expectedRevision })
  return { revision: nextExpectedRevision, ids: events.map(({ id }) => id) }
}

/** The ids of all events of the tests in the order of the log. */
async function logOf(client: EventStoreDBClient): Promise<string[]> {
  const ids: string[] = []
  for await (const { event } of client.readAll({ fromPosition: START })) {
    if (event && event.type === 'Happened') ids.push(event.id)
  }
  return ids
}

const stops: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

/** A directory that is removed in the end. */
async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'compstream-backup-'))
  stops.push(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}

/** Starts a server on a database directory, at the address of an earlier one where that is given. */
async function startServer(database: string, earlier?: EventStoreServer): Promise<EventStoreServer> {
  const server = await startEventStore({ database, ...(earlier ? { at: earlier } : {}) })
  stops.push(() => server.stop())
  return server
}

describe.skipIf(!possible)('a copy of a running EventStoreDB', () => {
  let directory: string
  let server: EventStoreServer
  let client: EventStoreDBClient
  beforeAll(async () => {
    directory = await temporary()
    server = await startServer(join(directory, 'original'))
    client = EventStoreDBClient.connectionString(server.url)
  })

  test('is the log as it was, and goes on from there', async () => {
    const acknowledged: string[] = []
    const heads = new Map<number, bigint>()
    const send = async (writer: number) => {
      const at: AppendExpectedRevision = heads.get(writer) ?? NO_STREAM
      const { revision, ids } = await append(client, `backup-${writer}`, at)
      heads.set(writer, revision)
      acknowledged.push(...ids)
    }
    const before = await underLoad(8, send, async (more) => {
      await more(500)
      const stored = [...acknowledged]
      await run(SCRIPT, [join(directory, 'original'), join(directory, 'backup')])
      await more(500)
      return stored
    })
    const whole = await logOf(client)
    expect(whole).toHaveLength(acknowledged.length)
    await client.dispose()
    await server.stop()

    // to restore: the backup in the place of the database
    await run('cp', ['-a', join(directory, 'backup'), join(directory, 'restored')])
    const restored = await startServer(join(directory, 'restored'))
    client = EventStoreDBClient.connectionString(restored.url)
    const log = await logOf(client)
    expect(log).toEqual(whole.slice(0, log.length))
    expect(log.length).toBeLessThan(whole.length)
    expect(before.filter((id) => !log.includes(id))).toEqual([])

    let length = 0n
    const stream = 'backup-0'
    for await (const _ of client.readStream(stream)) length += 1n
    await expect(append(client, stream, length - 2n)).rejects.toThrow()
    const { ids } = await append(client, stream, length - 1n)
    expect(await logOf(client)).toEqual([...log, ...ids])
    await client.dispose()
  })

  test('is made only of a database, and only into an empty directory', async () => {
    const backup = join(directory, 'backup')
    await expect(run(SCRIPT, [backup, join(directory, 'restored')])).rejects.toThrow('is not empty')
    await expect(run(SCRIPT, [join(directory, 'nothing'), join(directory, 'new')])).rejects.toThrow(
      'holds no EventStoreDB database',
    )
    const indexed = await temporary()
    for (const file of ['chaser.chk', 'kurrent.ddb']) await writeFile(join(indexed, file), '')
    await expect(run(SCRIPT, [indexed, join(directory, 'new')])).rejects.toThrow('secondary indexes')
    expect(await readdir(directory)).not.toContain('new')
  })
})

const KEYS = ['runtime.data_keys', 'runtime.erasures', 'runtime.secrets']
const toolsFit = await postgresToolsFit()

/** Everything in the database but what is built from the log. @returns what brings it back into an empty one. */
async function backUpDatabase(url: string, directory: string): Promise<(url: string) => Promise<void>> {
  if (toolsFit) {
    const file = join(directory, '1-database.dump')
    await run('pg_dump', ['--format=custom', `--file=${file}`, url])
    return async (target) => {
      await run('pg_restore', ['--no-owner', '--no-acl', '--exit-on-error', `--dbname=${target}`, file])
    }
  }
  const copies = await copyTables(url, ['runtime.process_managers', 'runtime.work', ...KEYS])
  return async (target) => {
    await migrate({ url: target })
    await withClient(target, (client) => client.query('TRUNCATE runtime.erasures'))
    await writeTables(target, copies)
  }
}

describe.skipIf(!possible)('EventStoreDB and PostgreSQL', () => {
  const masterKey = randomBytes(32).toString('base64')

  async function database(): Promise<string> {
    const created = await createTestDatabase({ migrate: false })
    stops.push(() => created.drop())
    return created.url
  }

  async function serviceOn(eventStore: EventStoreServer, databaseUrl: string) {
    const service = await startService({
      env: { EVENTSTORE_URL: eventStore.url, DATABASE_URL: databaseUrl, MASTER_KEY: masterKey },
    })
    stops.push(() => service.stop())
    return service
  }

  /** The keys alone, in a database that is empty but for them. */
  async function withKeys(url: string, keys: Awaited<ReturnType<typeof copyTables>>): Promise<void> {
    await withClient(url, (client) => client.query(`TRUNCATE ${KEYS.join(', ')}`))
    await writeTables(url, keys)
  }

  /** Every one brings a new person, and with it a new key. */
  const syncTo =
    (service: RunningService, { tenant }: Story) =>
    async (sender: number, n: number) => {
      const hire = { employee_id: `S-${sender}-${n}`, action: 'hire', name: 'N', hire_date: '2026-01-05' }
      const body = { employer_id: tenant.employerId, employees: [hire] }
      const answer = await post(service, '/api/v1/employees/sync', tenant.clientHeaders, body)
      expect(answer.status).toBe(202)
    }

  test('backed up under load in three steps serve what they served, open what they hold, and go on', async () => {
    const directory = await temporary()
    const [original, copy] = [await database(), await database()]
    const server = await startServer(join(directory, 'original'))
    const service = await serviceOn(server, original)
    const story = await makeStory(service)

    const [restoreDatabase, acknowledged, keys] = await underLoad(3, syncTo(service, story), async (more) => {
      await more(5)
      const restore = await backUpDatabase(original, directory)
      await more(5)
      const stored = await storedLog(service)
      await run(SCRIPT, [join(directory, 'original'), join(directory, 'restored')])
      await more(5)
      const copies = await copyTables(original, KEYS)
      await more(5)
      return [restore, stored, copies] as const
    })
    const whole = await storedLog(service)
    expect(await service.end()).toBe(0)
    await server.stop()

    await restoreDatabase(copy)
    await withKeys(copy, keys)
    const restored = await serviceOn(await startServer(join(directory, 'restored')), copy)
    const log = await storedLog(restored)
    expect(log.length).toBeGreaterThanOrEqual(acknowledged.length)
    expect(log.length).toBeLessThan(whole.length)
    expect(log).toEqual(whole.slice(0, log.length))
    await operate(restored, 'POST', '/drain')
    const people = await withClient(copy, (client) =>
      client.query<{ subject: string }>('SELECT subject FROM read_model.employee_register'),
    )
    const path = `/employers/${story.tenant.employerId}/register?limit=200&reveal=true`
    const register = JSON.stringify(await operate(restored, 'GET', path))
    expect(register).toContain('"S-0-0"')
    expect(register).not.toContain('(unreadable)')
    expect(people.rows.length).toBeGreaterThan(5)
    await expectStory(restored, { ...story, register: expect.anything() })
    await continueStory(restored, story)
  })

  test('with a log older than the database end the service, and go on with what is left of the log', async () => {
    const directory = await temporary()
    const original = await database()
    const server = await startServer(join(directory, 'original'))
    const service = await serviceOn(server, original)
    const story = await makeStory(service)
    await run(SCRIPT, [join(directory, 'original'), join(directory, 'backup')])
    for (let n = 0; n < 5; n += 1) await syncTo(service, story)(0, n)
    await operate(service, 'POST', '/drain')

    // somebody restores the log under the running service
    await server.stop()
    const restored = await startServer(join(directory, 'backup'), server)
    await until(() => service.process.exitCode !== null)
    expect(service.process.exitCode).toBe(1)
    expect(service.output.join('\n')).toMatch(/The event log went back: /)

    const again = await serviceOn(restored, original)
    expect(service.output.join('\n')).not.toContain('events lost')
    expect(again.output.join('\n')).toMatch(
      /about \d+ events are lost[\s\S]*built anew: [^\n]*employee-register/,
    )
    expect(await storedLog(again)).toEqual(story.log)
    await operate(again, 'POST', '/drain')
    await expectStory(again, story)
    await continueStory(again, story)
  })
})
