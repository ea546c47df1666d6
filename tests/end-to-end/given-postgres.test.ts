import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allEvents, report, status } from '../support/core.ts'
import { createTestDatabase, type TestDatabase, withServer } from '../support/database.ts'
import { installationName } from '../support/installation.ts'
import { continueStory, expectStory, type Story, tellStory } from '../support/payroll-story.ts'
import { type Answer, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { underLoad } from '../support/under-load.ts'
import { until } from '../support/workbench.ts'

const MASTER_KEY = randomBytes(32).toString('base64')

async function readyz(service: RunningService): Promise<number> {
  return (await send(`${service.opsUrl}/readyz`)).status
}

describe('the service on a database that it is given', () => {
  let database: TestDatabase
  let service: RunningService
  let story: Story
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: false })
    service = await startService({ env: { DATABASE_URL: database.url, MASTER_KEY } })
  })
  afterAll(async () => {
    await service?.stop()
    await database?.drop()
  })

  test('tells the payroll story, and keeps nothing but a token that it had to make in its directory', async () => {
    story = await tellStory(service)
    await expectStory(service, story)
    // who has fellows is given the token that all of them take
    expect(await readdir(service.dataDir)).toEqual(installationName === 'embedded' ? ['operator-token'] : [])
  })

  /** Ends every session of the database, and lets none in until `meanwhile` is over. */
  async function outage(meanwhile: () => Promise<void>): Promise<void> {
    await withServer(async (server) => {
      await server.query(`ALTER DATABASE ${database.name} ALLOW_CONNECTIONS false`)
      const { rowCount } = await server.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1',
        [database.name],
      )
      expect(rowCount).toBeGreaterThan(3)
      try {
        await meanwhile()
      } finally {
        await server.query(`ALTER DATABASE ${database.name} ALLOW_CONNECTIONS true`)
      }
    })
  }

  // chaos/pipeline-kill ends all sessions of the embedded server
  test('outlives the loss of all its sessions under load; whoever retries loses and doubles nothing', {
    tags: 'long',
  }, async () => {
    const { pid } = service.process
    const before = (await allEvents(service, 'PayrollFileReceived')).length
    const answers = new Map<string, Answer>()
    // retried like a partner does it: the same request until it is answered
    const send = async (sender: number, n: number) => {
      const key = `outage-${sender}-${n}`
      while (!answers.has(key)) {
        const answer = await report(service, story.tenant, {}, { 'Idempotency-Key': key })
        if (answer.status < 500) answers.set(key, answer)
      }
    }
    await underLoad(4, send, async (more) => {
      await more(20)
      // requests wait for the database for a while before they fail
      await outage(() => until(async () => (await readyz(service)) === 503))
      await more(20)
    })

    await until(async () => (await readyz(service)) === 200)
    expect(service.process.exitCode).toBeNull()
    expect(service.process.pid).toBe(pid)
    expect([...answers.values()].filter((answer) => answer.status !== 202)).toEqual([])
    const ids = [...answers.values()].map((answer) => String(answer.body.file_id))
    const received = (await allEvents(service, 'PayrollFileReceived')).slice(before)
    expect(received.map(({ data }) => data.file_id).sort()).toEqual(ids.sort())
    for (const id of ids) {
      expect((await status(service, story.tenant, id)).body.status).toBe('NORMALIZED')
    }
    await expectStory(service, story)
  })

  test('goes on as before, in the background too', () => continueStory(service, story))

  test('continues on the same database in another process', async () => {
    const { operatorToken } = service
    expect(await service.end()).toBe(0)
    service = await startService({
      env: { DATABASE_URL: database.url, MASTER_KEY, OPERATOR_TOKEN: operatorToken },
    })
    expect(await readdir(service.dataDir)).toEqual([])
    await expectStory(service, story)
  })
})

describe('a database whose owner may not create roles', () => {
  let database: TestDatabase
  let service: RunningService
  const owner = `owner_${randomBytes(6).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: false })
    await withServer(async (server) => {
      await server.query(`CREATE ROLE ${owner} LOGIN PASSWORD '${password}'`)
      await server.query(`ALTER DATABASE ${database.name} OWNER TO ${owner}`)
    })
    const url = new URL(database.url)
    url.username = owner
    url.password = ''
    service = await startService({
      env: { DATABASE_URL: url.toString(), DATABASE_PASSWORD: password, MASTER_KEY },
    })
  })
  afterAll(async () => {
    await service?.stop()
    await database?.drop()
    await withServer((server) => server.query(`DROP ROLE IF EXISTS ${owner}`))
  })

  test('serves, and its events stay unchangeable', async () => {
    const story = await tellStory(service)
    await continueStory(service, story)
    const client = new pg.Client(database.url)
    await client.connect()
    try {
      await expect(client.query("UPDATE event_log.events SET type = 'x'")).rejects.toThrow('immutable')
    } finally {
      await client.end()
    }
  })
})
