import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readPostmasterFile, signal } from '../../infrastructure/embedded-postgres/processes.ts'
import { databaseProcesses, killTree } from '../support/chaos.ts'
import { allEvents, report, status } from '../support/core.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/workbench.ts'

const dataDir = temporaryDirectory()
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  service = await startService({ dataDir })
  tenant = await seedTenant(service)
})
afterAll(() => service?.stop())

async function restart(): Promise<void> {
  service = await startService({ dataDir })
}

// integration/database/embedded-postgres reports the kill and starts again, the next test kills a session
test('the service ends with one clear line when its database is killed, and starts again', {
  tags: 'long',
}, async () => {
  const acknowledged = await report(service, tenant)
  const postmaster = await readPostmasterFile(join(dataDir, 'postgres'))
  const exit = new Promise<number | null>((resolve) => service.process.once('exit', resolve))
  signal(postmaster!.pid, 'SIGKILL')
  expect(await exit).toBe(1)
  const reasons = service.output.filter((line) => line.includes('"service failed"'))
  expect(reasons).toHaveLength(1)
  expect(JSON.parse(reasons[0]!).reason).toMatch(/PostgreSQL server was ended by SIGKILL/)
  expect(service.output.filter((line) => line.includes('unhandled rejection'))).toEqual([])
  await restart()
  expect((await status(service, tenant, acknowledged.body.file_id)).body.status).toBe('NORMALIZED')
  expect((await report(service, tenant)).status).toBe(202)
})

test('the service recovers when the database ends all its sessions', async () => {
  const acknowledged = await report(service, tenant)
  const postmaster = await readPostmasterFile(join(dataDir, 'postgres'))
  const sessions = async () => (await databaseProcesses(dataDir)).filter((pid) => pid !== postmaster!.pid)
  const before = new Set(await sessions())
  // the server then ends every session and recovers
  signal([...before].at(-1)!, 'SIGKILL')
  await until(async () => !(await sessions()).some((pid) => before.has(pid)))
  const key = { 'Idempotency-Key': 'while-recovering' }
  let answer: Answer | undefined
  await until(async () => {
    answer = await report(service, tenant, {}, key)
    expect([202, 503]).toContain(answer.status)
    return answer.status === 202
  })
  await until(async () => (await send(`${service.opsUrl}/readyz`)).status === 200)
  await operate(service, 'POST', '/drain')
  for (const { body } of [acknowledged, answer!]) {
    expect((await status(service, tenant, body.file_id)).body.status).toBe('NORMALIZED')
  }
  expect(service.process.exitCode).toBeNull()
})

test('every report that is retried until it is answered is one file, whenever the service dies', async () => {
  const clients = 6
  const before = (await allEvents(service, 'PayrollFileReceived')).length
  const answers = new Map<string, string>()
  let running: Promise<unknown> = Promise.resolve()
  let over = false

  const client = async (name: number) => {
    for (let n = 0; !over; n += 1) {
      const key = `random-${name}-${n}`
      for (;;) {
        const answer = await report(service, tenant, {}, { 'Idempotency-Key': key }).catch(() => null)
        if (answer?.status === 202) {
          answers.set(key, answer.body.file_id)
          break
        }
        // only a service on its way down may answer something else
        if (answer) expect(answer.status).toBe(503)
        await running
      }
    }
  }
  const killer = async () => {
    const enough = answers.size + randomInt(5, 40)
    await until(() => answers.size >= enough)
    running = killTree(service).then(restart)
    await running
    over = true
  }
  await Promise.all([killer(), ...Array.from({ length: clients }, (_, name) => client(name))])

  await operate(service, 'POST', '/drain')
  const received = (await allEvents(service, 'PayrollFileReceived')).slice(before)
  expect(received.map(({ data }) => data.file_id).sort()).toEqual([...answers.values()].sort())
  expect(new Set(answers.values()).size).toBe(answers.size)
  const completed = new Set(
    (await allEvents(service, 'PayrollFileProcessed')).map(({ data }) => data.file_id),
  )
  for (const [key, fileId] of answers) {
    expect(completed.has(fileId), key).toBe(true)
    const again = await report(service, tenant, {}, { 'Idempotency-Key': key })
    expect([again.body.file_id, again.headers.get('idempotent-replayed')]).toEqual([fileId, 'true'])
  }
})

test('after all that the log is unbroken and nothing is left to do', async () => {
  const verified = await operate(service, 'POST', '/audit/verify')
  expect(verified).toMatchObject({ verified: true })
  const work = await operate(service, 'GET', '/work')
  expect(work).toMatchObject({ counts: { due: 0, leased: 0, failed: 0 } })
})
