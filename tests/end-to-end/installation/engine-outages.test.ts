// @module-tag once: it takes servers away
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { report, status } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { type Answer, askOperator, type SeededTenant, seedTenant, send, sendRpc } from '../../support/seed.ts'
import { type RunningService, startProcess } from '../../support/service.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { until } from '../../support/workbench.ts'

deadlinesOfTheProduct()

/**
 * Twice what the service allows itself, and half of what a write waits for the log to come back: 5 s, counted in looks at
 * the liveness of the same process, which take longer on a busy machine as its answers do.
 */
const SOON = { looks: 100, pauseMs: 50 } as const

let database: TestDatabase
let service: RunningService
let tenant: SeededTenant

const env = () => ({
  MASTER_KEY: randomBytes(32).toString('base64'),
  OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
  CLOCK: 'system',
})

async function soon<T>(answers: Promise<T>): Promise<T> {
  const answered = new AbortController()
  try {
    return await Promise.race([answers, noneInTime(answered.signal)])
  } finally {
    answered.abort()
  }
}

async function noneInTime(answered: AbortSignal): Promise<never> {
  for (let look = 0; look < SOON.looks && !answered.aborted; look += 1) {
    await delay(SOON.pauseMs)
    await send(`${service.opsUrl}/healthz`)
  }
  throw new Error('no answer')
}

const ops = (path: string): Promise<Answer> => askOperator(service, 'GET', path)
const list = { name: 'list_employer_policies', arguments: {} as Record<string, unknown> }
const call = (id: string) =>
  sendRpc(service, tenant.apiKey, { jsonrpc: '2.0', id, method: 'tools/call', params: list })

const UNKNOWN_FILE = '0'.repeat(24)

/** Everything that is asked of a service whose log is away, all at once. */
async function askAll(): Promise<Record<string, Answer>> {
  const ping = { jsonrpc: '2.0', id: 'p-1', method: 'ping' }
  const asked: Record<string, Promise<Answer>> = {
    fileStatus: status(service, tenant, UNKNOWN_FILE),
    report: report(service, tenant),
    employers: ops('/employers'),
    projections: ops('/projections'),
    work: ops('/work'),
    stream: ops('/streams/employer-x'),
    tool: call('c-1'),
    ping: sendRpc(service, tenant.apiKey, ping),
    batch: sendRpc(service, tenant.apiKey, [ping]),
    agents: send(`${service.mcpUrl}/api/v1/agents`, {
      headers: { Authorization: `Bearer ${service.operatorToken}` },
    }),
  }
  const answers = Object.entries(asked).map(async ([name, answer]) => [name, await answer] as const)
  return Object.fromEntries(await soon(Promise.all(answers)))
}

const core = expect.objectContaining({
  error: 'Service unavailable',
  message: expect.stringContaining('try again'),
})
const envelope = expect.objectContaining({
  ok: false,
  error: 'Service Unavailable',
  message: expect.stringContaining('try again'),
})
const rpcError = (id: string | null) => ({
  jsonrpc: '2.0',
  error: { code: -32603, message: expect.stringContaining('try again'), data: { retry_after: 2 } },
  id,
})

function expectUnavailable(answers: Record<string, Answer>): void {
  const shown = Object.entries(answers).map(([name, answer]) => [
    name,
    [answer.status, answer.headers.get('retry-after'), answer.body],
  ])
  expect(Object.fromEntries(shown)).toEqual({
    fileStatus: [503, '2', core],
    report: [503, '2', core],
    // who calls is told by the log
    agents: [503, '2', core],
    employers: [503, '2', envelope],
    projections: [503, '2', envelope],
    work: [503, '2', envelope],
    stream: [503, '2', envelope],
    tool: [200, '2', rpcError('c-1')],
    ping: [200, '2', rpcError('p-1')],
    batch: [503, '2', rpcError(null)],
  })
}

/** The log names what was away. */
function expectWhy(name: string): void {
  const lines = service.output.filter((line) => line.includes('"request not served"'))
  expect(lines.filter((line) => line.includes(`"class":"${name}"`))).not.toEqual([])
}

async function isWell(): Promise<boolean> {
  const answers = [await status(service, tenant, UNKNOWN_FILE), await ops('/employers'), await call('c-2')]
  return (
    answers.map((answer) => answer.status).join() === '404,200,200' && answers[2]!.body.result !== undefined
  )
}

// contract/event-store/eventstoredb-outages has it for each call
describe.skipIf((await findEventStore())?.kind !== 'program')(
  'a service whose EventStoreDB is away (needs the program)',
  { tags: 'long' },
  () => {
    let server: EventStoreServer

    beforeAll(async () => {
      server = await startEventStore({ keepsData: true })
      database = await createTestDatabase()
      service = await startProcess({
        env: { ...env(), DATABASE_URL: database.url, EVENTSTORE_URL: server.url },
      })
      tenant = await seedTenant(service)
      list.arguments = { employer_id: tenant.employerId }
      await until(isWell)
    })
    afterAll(async () => {
      server?.thaw()
      await service?.stop()
      await server?.stop()
      await database?.drop()
    })

    test.each([
      ['killed', () => server.kill(), () => server.restart()],
      ['frozen', async () => server.freeze(), async () => server.thaw()],
    ] as const)('answers what needs the log with 503 soon while it is %s', async (_, away, back) => {
      await away()
      try {
        expectUnavailable(await askAll())
        // now that it is known to be away
        for (let again = 0; again < 3; again += 1) expectUnavailable(await askAll())
        expectWhy('EventLogUnavailable')
        expect((await send(`${service.opsUrl}/healthz`)).status).toBe(200)
        expect(
          (await sendRpc(service, 'mcp_unknown', { jsonrpc: '2.0', id: 1, method: 'ping' })).status,
        ).toBe(401)
      } finally {
        await back()
      }
      await until(isWell)
      expect((await report(service, tenant)).status).toBe(202)
    })
  },
)
