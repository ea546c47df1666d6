// @module-tag once: it starts processes of each role, on each engine, itself
// @module-tag long: integration/followers/projection-releases has two releases at once
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { allEvents, employeeRecord, report, status } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { underLoad } from '../../support/under-load.ts'
import { until } from '../../support/workbench.ts'

/** The built project that is upgraded from: this one, or the release before it where somebody has built that. */
const BEFORE = resolve(process.env.TEST_PREVIOUS_RELEASE ?? '.')
/** More rows than are processed inside the request. */
const LARGE = 600

let database: TestDatabase
let dataDir: string
const running: RunningService[] = []
let env: Record<string, string>

beforeEach(async () => {
  database = await createTestDatabase({ migrate: false })
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-rolling-'))
  env = {
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
    CLOCK: 'system',
  }
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.stop()))
  await database?.drop()
  await rm(dataDir, { recursive: true, force: true })
})

async function start(role: string, release: string): Promise<RunningService> {
  const service = await startService({ dataDir, release, env: { ...env, ROLES: role } })
  running.push(service)
  await until(async () => (await send(`${service.opsUrl}/readyz`)).status === 200)
  return service
}

test('processes restarted one after another on a new release lose, double and refuse nothing', async () => {
  const projector = await start('projector', BEFORE)
  const worker = await start('worker', BEFORE)
  const apis = [await start('api', BEFORE), await start('api', BEFORE)]
  const tenant = await seedTenant(apis[0]!)
  const answers = new Map<string, Answer>()

  // like a proxy: what finds no connection goes to the next process, the same request under the same key
  const sendOne = async (sender: number, n: number) => {
    const key = `rolling-${sender}-${n}`
    const rows = n % 10 === 9 ? LARGE : 1
    const employees = Array.from({ length: rows }, (_, i) =>
      employeeRecord({ employee_id: `E-${sender}-${i}` }),
    )
    for (let tries = 0; !answers.has(key); tries += 1) {
      if (tries > 100) throw new Error('no process takes the request')
      const api = apis[(n + tries) % apis.length]!
      const answer = await report(api, tenant, { employees }, { 'Idempotency-Key': key }).catch(() => null)
      if (answer) answers.set(key, answer)
    }
  }
  const after = resolve('.')
  const replace = async (old: RunningService, role: string): Promise<RunningService> => {
    expect(await old.end()).toBe(0)
    return start(role, after)
  }
  await underLoad(3, sendOne, async (more) => {
    await more(30)
    // the order of docs/operators/deployment.md
    const newProjector = await replace(projector, 'projector')
    await more(30)
    const newWorker = await replace(worker, 'worker')
    await more(30)
    for (const index of apis.keys()) {
      apis[index] = await replace(apis[index]!, 'api')
      await more(30)
    }
    for (const service of [newProjector, newWorker, ...apis]) expect(service.process.exitCode).toBeNull()
  })

  await everythingIsThere(apis[0]!, tenant, [...answers.values()])
})

/** Every report was taken and has become one file, and nothing is behind or broken. */
async function everythingIsThere(
  service: RunningService,
  tenant: SeededTenant,
  answers: readonly Answer[],
): Promise<void> {
  const refused = answers.filter((answer) => answer.status !== 202)
  expect(refused.map((answer) => [answer.status, answer.text])).toEqual([])
  await operate(service, 'POST', '/drain')
  const ids = answers.map(({ body }) => String(body.file_id ?? body.report_id))
  const received = await allEvents(service, 'PayrollFileReceived')
  expect(received.map(({ data }) => data.file_id).sort()).toEqual(ids.sort())
  for (const id of ids) expect((await status(service, tenant, id)).body.status, id).toBe('NORMALIZED')
  for (const projection of await operate(service, 'GET', '/projections')) {
    expect(projection).toMatchObject({ state: 'active', lag: { events: 0 }, parked_streams: 0 })
  }
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
}
