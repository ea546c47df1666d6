// @module-tag long: secrecy has failures inside, and that nothing of them is told
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { callTool, type SeededTenant, seedTenant, sendRpc } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

let database: TestDatabase
let service: RunningService
let seeded: SeededTenant

beforeAll(async () => {
  database = await createTestDatabase()
  service = await startService({
    env: { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64') },
  })
  seeded = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
})

it('answers a failure inside with -32603 and nothing of what failed, and works again afterwards', async () => {
  const given = { employer_id: seeded.employerId }
  const message = {
    jsonrpc: '2.0',
    id: 'broken',
    method: 'tools/call',
    params: { name: 'list_employer_policies', arguments: given },
  }
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    await client.query('ALTER SCHEMA read_model RENAME TO out_of_reach')
    const { status, text, body } = await sendRpc(service, seeded.apiKey, message, {
      'X-Request-Id': 'trace-42',
    })
    expect([status, body.id, body.error.code]).toEqual([200, 'broken', -32603])
    expect(text).not.toMatch(/read_model|relation|select|\.ts|at /i)
    expect(service.output.filter((line) => line.includes('trace-42'))).toHaveLength(1)
    const batch = await sendRpc(service, seeded.apiKey, [message, { jsonrpc: '2.0', id: 2, method: 'ping' }])
    expect(batch.body).toMatchObject([{ error: { code: -32603 } }, { result: {} }])
    await client.query('ALTER SCHEMA out_of_reach RENAME TO read_model')
  } finally {
    await client.end()
  }
  expect((await callTool(service, seeded.apiKey, 'list_employer_policies', given)).result.policy_count).toBe(
    1,
  )
})
