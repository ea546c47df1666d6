import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPostmasterFile, signal } from '../../infrastructure/embedded-postgres/processes.ts'
import { autopsy, databaseProcesses, killTree } from '../support/chaos.ts'
import { allEvents, report, type ShownEvent, status } from '../support/core.ts'
import { expectComplete, largePayroll, wholeFileTypes } from '../support/large-payroll.ts'
import { type Answer, askOperator, operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'
import { until } from '../support/workbench.ts'

const ROWS = 6_000

let dataDir: string
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-chaos-'))
  service = await startService({ dataDir })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

async function restart(): Promise<void> {
  service = await startService({ dataDir })
}

/** The event at a revision, once it is stored. */
async function eventAt(stream: string, revision: number): Promise<ShownEvent> {
  for (;;) {
    const { body }: Answer = await askOperator(service, 'GET', `/streams/${stream}?from=${revision}&limit=1`)
    if (body.data?.length === 1) return body.data[0]
  }
}

let seed = 0

/** Revision of the n-th (from 1) event of a phase (from 0) in a file of so many chunks. */
const revisionOf = (phase: number, n: number, chunks: number) => (phase + 1) * chunks + 1 + n

/**
 * Sends a new large file, kills the service as soon as the n-th event of a phase is seen and starts it again.
 * @param at phase (from 0) and n (from 1).
 * @returns whether the kill came before the file was complete.
 */
async function dieAndGoOn(
  at: readonly [phase: number, n: number],
  kill: () => Promise<void>,
): Promise<boolean> {
  seed += 1
  const payroll = largePayroll(ROWS, seed)
  const { status, body } = await report(service, tenant, { employees: payroll.employees })
  expect([status, body]).toMatchObject([202, { file_id: null, report_id: expect.any(String) }])
  const fileId: string = body.report_id
  const stream = `payrollFile-${fileId}`
  const chunks = Number((await eventAt(stream, 0)).data.chunk_count)
  const seen = (await eventAt(stream, revisionOf(...at, chunks))).revision
  await kill()
  const left = await autopsy(dataDir, stream)
  await restart()
  const whole = wholeFileTypes(chunks)
  // what was shown is stored, in the only order there is
  expect(left.length).toBeGreaterThan(seen)
  expect(left.lastIndexOf('PayrollRowsRecorded')).toBe(whole.lastIndexOf('PayrollRowsRecorded'))
  expect(left).toEqual(whole.slice(0, left.length))
  await expectComplete(service, tenant, fileId, payroll)
  return left.length < whole.length
}

// integration/payroll/payroll-pipeline goes on between the steps, the last test here kills under load
describe('a large file goes on where the service was killed', { tags: 'long' }, () => {
  for (const [what, at, kill] of [
    ['late in its validation', [0, 9], () => service.kill()],
    ['with all processes of its database', [1, 1], () => killTree(service)],
  ] as const)
    test(what, async () => {
      // a file that was complete before the kill says nothing
      let attempts = 1
      while (!(await dieAndGoOn(at, kill))) {
        expect(attempts, 'every kill came too late').toBeLessThan(20)
        attempts += 1
      }
    })
})

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
