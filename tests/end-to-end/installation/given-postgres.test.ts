// @module-tag long: roles runs on a database that it is given
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase, withServer } from '../../support/database.ts'
import { installationName } from '../../support/installation.ts'
import { continueStory, expectStory, makeStory, type Story } from '../../support/payroll-story.ts'
import { type RunningService, startService } from '../../support/service.ts'

const MASTER_KEY = randomBytes(32).toString('base64')

describe('the service on a database that it is given, whose owner may not create roles', () => {
  const owner = `owner_${randomBytes(6).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  let database: TestDatabase
  let env: Record<string, string>
  let service: RunningService
  let story: Story
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: false })
    await withServer(async (server) => {
      await server.query(`CREATE ROLE ${owner} LOGIN PASSWORD '${password}'`)
      await server.query(`ALTER DATABASE ${database.name} OWNER TO ${owner}`)
    })
    const url = new URL(database.url)
    url.username = owner
    url.password = ''
    env = { DATABASE_URL: url.toString(), DATABASE_PASSWORD: password, MASTER_KEY }
    service = await startService({ env })
  })
  afterAll(async () => {
    await service?.stop()
    await database?.drop()
    await withServer((server) => server.query(`DROP ROLE IF EXISTS ${owner}`))
  })

  test('tells the payroll story, and keeps nothing but a token that it had to make in its directory', async () => {
    story = await makeStory(service)
    await expectStory(service, story)
    // who has fellows is given the token that all of them take
    expect(await readdir(service.dataDir)).toEqual(installationName === 'embedded' ? ['operator-token'] : [])
  })

  test('goes on in the background, too', () => continueStory(service, story))

  test('keeps its events unchangeable', async () => {
    const client = new pg.Client(database.url)
    await client.connect()
    try {
      await expect(client.query("UPDATE event_log.events SET type = 'x'")).rejects.toThrow('immutable')
    } finally {
      await client.end()
    }
  })

  test('continues on the same database in another process', async () => {
    const { operatorToken } = service
    expect(await service.end()).toBe(0)
    service = await startService({ env: { ...env, OPERATOR_TOKEN: operatorToken } })
    expect(await readdir(service.dataDir)).toEqual([])
    await expectStory(service, story)
  })
})
