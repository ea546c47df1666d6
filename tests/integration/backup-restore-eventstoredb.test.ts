import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import {
  type AppendExpectedRevision,
  EventStoreDBClient,
  jsonEvent,
  NO_STREAM,
  START,
} from '@eventstore/db-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../infrastructure/database/migrate.ts'
import { post } from '../support/core.ts'
import { createTestDatabase } from '../support/database.ts'
import { continueStory, expectStory, storedLog, tellStory } from '../support/payroll-story.ts'
import { postgresToolsFit } from '../support/postgres-tools.ts'
import { operate } from '../support/seed.ts'
import { startService } from '../support/service.ts'
import { copyTables, withClient, writeTables } from '../support/table-copies.ts'
import { underLoad } from '../support/under-load.ts'
import { until } from '../support/workbench.ts'

const run = promisify(execFile)
const SCRIPT = resolve(import.meta.dirname, '../../deploy/backup-eventstoredb.sh')
/** Files are copied beside the server, so only one on this machine will do. */
const program = onPath('eventstored') ?? onPath('kurrentd')

function onPath(name: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

interface Server {
  readonly url: string
  readonly client: EventStoreDBClient
  stop(): Promise<void>
}

const running: ChildProcess[] = []

/** Starts the server on a database directory and waits until it leads. */
async function startServer(database: string): Promise<Server> {
  const [port, replicationPort] = [await freePort(), await freePort()]
  const child = spawn(
    program!,
    [
      ...['--insecure', '--run-projections=None', '--enable-atom-pub-over-http=false'],
      ...['--db', database, '--log', `${database}-log`],
      ...['--node-ip', '127.0.0.1', '--node-port', `${port}`],
      ...['--replication-ip', '127.0.0.1', '--replication-port', `${replicationPort}`],
    ],
    { stdio: 'ignore', env: { PATH: process.env.PATH, EVENTSTORE_TELEMETRY_OPTOUT: 'true' } },
  )
  running.push(child)
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  await until(async () => {
    expect(child.exitCode, 'the server ended').toBeNull()
    const gossip = await fetch(`http://127.0.0.1:${port}/gossip`).then(
      (answer) => answer.text(),
      () => '',
    )
    return gossip.includes('"Leader"')
  }, 60_000)
  const url = `esdb://127.0.0.1:${port}?tls=false`
  const client = EventStoreDBClient.connectionString(url)
  return {
    url,
    client,
    async stop() {
      await client.dispose()
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done))
  const { port } = probe.address() as { port: number }
  await new Promise((done) => probe.close(done))
  return port
}

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

afterAll(() => {
  for (const child of running) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
})

describe.skipIf(program === undefined)('a copy of a running EventStoreDB', () => {
  let directory: string
  let server: Server
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'compstream-eventstoredb-'))
    server = await startServer(join(directory, 'original'))
  }, 90_000)
  afterAll(async () => {
    for (const child of running)
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await rm(directory, { recursive: true, force: true })
  })

  test('is the log as it was, and goes on from there', async () => {
    const acknowledged: string[] = []
    const heads = new Map<number, bigint>()
    const send = async (writer: number) => {
      const at: AppendExpectedRevision = heads.get(writer) ?? NO_STREAM
      const { revision, ids } = await append(server.client, `backup-${writer}`, at)
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
    const whole = await logOf(server.client)
    expect(whole).toHaveLength(acknowledged.length)
    await server.stop()

    // to restore: the backup in the place of the database
    await run('cp', ['-a', join(directory, 'backup'), join(directory, 'restored')])
    const restored = await startServer(join(directory, 'restored'))
    const log = await logOf(restored.client)
    expect(log).toEqual(whole.slice(0, log.length))
    expect(log.length).toBeLessThan(whole.length)
    expect(before.filter((id) => !log.includes(id))).toEqual([])

    const count = async (stream: string) => {
      let events = 0
      for await (const _ of restored.client.readStream(stream)) events += 1
      return events
    }
    const stream = 'backup-0'
    const revision = BigInt(await count(stream)) - 1n
    await expect(append(restored.client, stream, revision - 1n)).rejects.toThrow()
    const { ids } = await append(restored.client, stream, revision)
    expect(await logOf(restored.client)).toEqual([...log, ...ids])
    await restored.stop()
  }, 120_000)

  test('is made only of a database, and only into an empty directory', async () => {
    const backup = join(directory, 'backup')
    await expect(run(SCRIPT, [backup, join(directory, 'restored')])).rejects.toThrow('is not empty')
    await expect(run(SCRIPT, [join(directory, 'nothing'), join(directory, 'new')])).rejects.toThrow(
      'holds no EventStoreDB database',
    )
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

describe.skipIf(program === undefined)(
  'EventStoreDB and PostgreSQL backed up under load, in three steps',
  () => {
    const masterKey = randomBytes(32).toString('base64')
    const stops: (() => Promise<unknown>)[] = []
    afterAll(async () => {
      for (const stop of stops.reverse()) await stop()
    })

    async function temporary(): Promise<string> {
      const directory = await mkdtemp(join(tmpdir(), 'compstream-both-'))
      stops.push(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
      return directory
    }

    async function serviceOn(eventStore: Server, databaseUrl: string) {
      const service = await startService({
        env: { EVENTSTORE_URL: eventStore.url, DATABASE_URL: databaseUrl, MASTER_KEY: masterKey },
      })
      stops.push(() => service.stop())
      return service
    }

    test('serve what they served, open what they hold, and go on', async () => {
      const directory = await temporary()
      const databases = [
        await createTestDatabase({ migrate: false }),
        await createTestDatabase({ migrate: false }),
      ]
      stops.push(() => Promise.all(databases.map((database) => database.drop())))
      const [database, copy] = databases.map(({ url }) => url) as [string, string]
      const server = await startServer(join(directory, 'original'))
      const service = await serviceOn(server, database)
      const story = await tellStory(service)

      const sync = async (sender: number, n: number) => {
        // every one brings a new person, and with it a new key
        const hire = { employee_id: `S-${sender}-${n}`, action: 'hire', name: 'N', hire_date: '2026-01-05' }
        const body = { employer_id: story.tenant.employerId, employees: [hire] }
        const answer = await post(service, '/api/v1/employees/sync', story.tenant.clientHeaders, body)
        expect(answer.status).toBe(202)
      }
      const [restoreDatabase, keys] = await underLoad(3, sync, async (more) => {
        await more(5)
        const restore = await backUpDatabase(database, directory)
        await more(5)
        await run(SCRIPT, [join(directory, 'original'), join(directory, 'restored')])
        await more(5)
        const copies = await copyTables(database, KEYS)
        await more(5)
        return [restore, copies] as const
      })
      const whole = await storedLog(service)
      expect(await service.stop()).toBe(0)
      await server.stop()

      await restoreDatabase(copy)
      await withClient(copy, (client) => client.query(`TRUNCATE ${KEYS.join(', ')}`))
      await writeTables(copy, keys)
      const restored = await serviceOn(await startServer(join(directory, 'restored')), copy)
      const log = await storedLog(restored)
      expect(log.length).toBeGreaterThan(story.log.length)
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
    }, 240_000)
  },
)
