// @module-tag long: chaos/pipeline-kill has the same retries
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { allEvents, post, report, status } from '../support/core.ts'
import { type Answer, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

let dataDir: string
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-crash-'))
  service = await startService({ dataDir })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Sends all at once and kills the service as soon as some are answered. @returns the answers that came. */
async function sendAndKill(
  requests: readonly (() => Promise<Answer>)[],
  answersBeforeKill: number,
): Promise<(Answer | null)[]> {
  let answered = 0
  let killed: Promise<void> | undefined
  const answers = await Promise.all(
    requests.map(async (send) => {
      try {
        const answer = await send()
        answered += 1
        if (answered >= answersBeforeKill) killed ??= service.kill()
        return answer
      } catch {
        return null
      }
    }),
  )
  await killed
  service = await startService({ dataDir })
  return answers
}

async function filesOf(type: string): Promise<string[]> {
  return (await allEvents(service, type)).map((event) => String(event.data.file_id))
}

test.each([1, 5, 20])('a retried report is one file when the service dies after %i answers', async (dies) => {
  const before = await filesOf('PayrollFileReceived')
  const requests = Array.from(
    { length: 40 },
    (_, index) => () => report(service, tenant, {}, { 'Idempotency-Key': `crash-${dies}-${index}` }),
  )
  const first = await sendAndKill(requests, dies)
  expect(first.filter((answer) => answer !== null).length).toBeGreaterThanOrEqual(dies)

  const retried = await Promise.all(requests.map((send) => send()))
  for (const [index, answer] of retried.entries()) {
    expect(answer.status).toBe(202)
    if (first[index]) {
      expect(answer.body).toEqual(first[index].body)
      expect(answer.headers.get('idempotent-replayed')).toBe('true')
    }
    expect((await status(service, tenant, answer.body.file_id)).body.status).toBe('NORMALIZED')
  }
  const ids = retried.map((answer) => answer.body.file_id)
  expect(new Set(ids).size).toBe(40)
  expect((await filesOf('PayrollFileReceived')).slice(before.length).sort()).toEqual(ids.sort())
})

test('a retried sync goes on where the first attempt died', async () => {
  const employees = Array.from({ length: 8_000 }, (_, index) => ({
    employee_id: `E-${index}`,
    action: 'update',
    note: 'n'.repeat(400),
  }))
  const sync = () =>
    post(
      service,
      '/api/v1/employees/sync',
      { ...tenant.clientHeaders, 'Idempotency-Key': 'crash-sync' },
      { employer_id: tenant.employerId, employees },
    )
  const first = sync().catch(() => null)
  await vi.waitFor(
    async () => expect(await allEvents(service, 'EmployeeChangesRecorded')).not.toHaveLength(0),
    { timeout: 240_000, interval: 5 },
  )
  await service.kill()
  const lost = await first
  service = await startService({ dataDir })
  const answer = await sync()
  expect(answer.status).toBe(202)
  if (lost) expect(answer.body).toEqual(lost.body)
  const { file_id } = answer.body
  const chunks = (await allEvents(service, 'EmployeeChangesRecorded'))
    .map(({ data }) => data as { file_id: string; chunk: number; changes: unknown[] })
    .filter((data) => data.file_id === file_id)
  expect(chunks.map(({ chunk }) => chunk)).toEqual(chunks.map((_, index) => index))
  expect(chunks.reduce((sum, { changes }) => sum + changes.length, 0)).toBe(8_000)
  expect(await filesOf('EmployeeSyncReceived')).toEqual([file_id])
  expect((await status(service, tenant, file_id)).body).toMatchObject({
    status: 'NORMALIZED',
    employee_count: 8_000,
  })
})
