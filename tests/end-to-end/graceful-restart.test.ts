// @module-tag once: it restarts processes under load
// @module-tag long: unit/shutdown restarts a host three times under load
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startProcess } from '../support/service.ts'
import { underLoad } from '../support/under-load.ts'

const CONNECTIONS = 10
const RESTARTS = 3

let database: TestDatabase
let dataDir: string
let env: Record<string, string>
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  database = await createTestDatabase({ migrate: false })
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-restart-'))
  env = {
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    CLOCK: 'system',
  }
  service = await startProcess({ dataDir, env })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
  await rm(dataDir, { recursive: true, force: true })
})

test('clients that keep their connections get an answer to every request that reached one', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const { hostname, port } = new URL(service.coreUrl)
  const outcomes = new Map<string, number>()
  const path = `/api/v1/files/status/${'0'.repeat(24)}`
  /** @returns whether somebody was there. */
  const ask = () =>
    new Promise<boolean>((resolve) => {
      const note = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      const request = get({ hostname, port, path, agent, headers: tenant.clientHeaders }, (answer) => {
        answer.resume().once('end', () => {
          note(String(answer.statusCode))
          resolve(true)
        })
      })
      request.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ECONNREFUSED')
          note(`${error.code} on a ${request.reusedSocket ? 'kept' : 'new'} connection`)
        setTimeout(resolve, 20, error.code !== 'ECONNREFUSED')
      })
    })
  const sendOne = async () => {
    while (!(await ask()));
  }
  await underLoad(CONNECTIONS, sendOne, async (more) => {
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      await more(200)
      expect(await service.end()).toBe(0)
      service = await startProcess({ dataDir, env: { ...env, CORE_PORT: port } })
    }
    await more(200)
  })
  agent.destroy()
  expect([...outcomes.keys()]).toEqual(['404'])
})
