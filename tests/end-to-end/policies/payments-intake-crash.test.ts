// @module-tag long: payments-intake breaks off between the steps, chaos/pipeline-kill kills under load
import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { allEvents } from '../../support/core.ts'
import { intakeBody, listed, newClient, payFor, takeIn } from '../../support/intake.ts'
import { newFein, operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

let dataDir: string
let service: RunningService
let tenant: SeededTenant
let headers: Record<string, string>

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-intake-'))
  service = await startService({ dataDir })
  tenant = await seedTenant(service, { environment: 'sandbox' })
  const scope = { environment: 'sandbox', carrier_ids: [tenant.carrierId] }
  headers = (await newClient(service, tenant.tenantId, scope)).headers
})
afterAll(async () => {
  await service?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const employers = async () =>
  (await listed(service, `/employers?tenant_id=${tenant.tenantId}`)).map(({ employer_id }) => employer_id)
const policies = async (employerId: string) =>
  (await listed(service, `/policies?employer_id=${employerId}`)).map(({ policy_id }) => policy_id)
const restart = async () => {
  await service.kill()
  service = await startService({ dataDir })
}

test('an intake that is killed between its employer and its policy is finished by its key', async () => {
  const before = await employers()
  const body = intakeBody()
  await operate(service, 'POST', '/faults', { point: 'intake', mode: 'hold' })
  const lost = takeIn(service, headers, body).then(
    ({ status }) => status,
    () => null,
  )
  await vi.waitFor(async () => expect(await employers()).toHaveLength(before.length + 1), {
    timeout: 240_000,
    interval: 10,
  })
  await restart()
  expect(await lost).toBeNull()
  const [employerId] = (await employers()).filter((one) => !before.includes(one))
  expect(await policies(employerId)).toEqual([])

  // another embedded service starts without the hold; where processes share a database it stands until it is cleared
  await operate(service, 'POST', '/faults', { point: 'intake', times: 0 })
  const first = await takeIn(service, headers, body)
  expect([first.status, first.body.employer_id]).toEqual([201, employerId])
  expect(await policies(employerId)).toEqual([first.body.policy_id])
  const again = await takeIn(service, headers, body)
  expect([again.status, again.text]).toEqual([200, first.text])
  expect(await employers()).toHaveLength(before.length + 1)
})

test('of many intakes under way, each key has one employer and one policy, whenever they are killed', async () => {
  const shared = newFein()
  const bodies = Array.from({ length: 24 }, (_, n) =>
    intakeBody(n % 6 === 0 ? { employer: { fein: shared } } : {}),
  )
  const answered = new Map<number, string>()
  const sendAll = () =>
    Promise.all(
      bodies.map(async (body, n) => {
        const answer = await takeIn(service, headers, body).catch(() => null)
        // killed, it says nothing; what it said counts for ever
        if (answer === null || answer.status >= 500) return
        expect([200, 201]).toContain(answer.status)
        expect(answered.get(n) ?? answer.text).toBe(answer.text)
        answered.set(n, answer.text)
      }),
    )
  for (let round = 0; round < 4; round += 1) {
    const sent = sendAll()
    const waitMs = randomInt(5, 150)
    await delay(waitMs)
    await restart()
    await sent
  }
  await sendAll()
  expect(answered.size).toBe(bodies.length)
  const ids = [...answered.values()].map((text) => JSON.parse(text).data)
  expect(new Set(ids.map(({ policy_id }) => policy_id)).size).toBe(bodies.length)
  expect(new Set(ids.map(({ employer_id }) => employer_id)).size).toBe(bodies.length - 3)
  for (const { employer_id } of ids) {
    const its = ids.filter((one) => one.employer_id === employer_id).map(({ policy_id }) => policy_id)
    expect((await policies(employer_id)).sort()).toEqual(its.sort())
  }
  const completed = (await allEvents(service, 'IntakeCompleted')).map(({ stream }) => stream)
  expect(new Set(completed).size).toBe(completed.length)
})

test('a payment that is answered has activated its policy, also for a process that starts after a kill', async () => {
  const { body } = await takeIn(service, headers, intakeBody())
  await payFor(service, headers, body.data)
  await restart()
  expect((await operate(service, 'GET', `/policies/${body.policy_id}`)).status).toBe('active')
})
