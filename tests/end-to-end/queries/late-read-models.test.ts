// @module-tag long: unit/http/unavailable has the answer, integration/followers/nats-wake-up and projection-runner who waits
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allEvents, report, status } from '../../support/core.ts'
import { operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'

deadlinesOfTheProduct()

let service: RunningService
let tenant: SeededTenant
beforeAll(async () => {
  service = await startService()
  tenant = await seedTenant(service)
})
afterAll(() => service?.stop())

test('a file that is too new to be read is not said to be missing', async () => {
  const received = () => allEvents(service, 'PayrollFileReceived')
  const known = (await received()).length
  await operate(service, 'POST', '/projections/payroll-files/pause')
  const stored = report(service, tenant)
  await expect.poll(async () => (await received()).length).toBe(known + 1)
  const fileId = String((await received()).at(-1)!.data.file_id)
  const late = await status(service, tenant, fileId)
  expect([late.status, late.body.error, late.headers.get('retry-after')]).toEqual([
    503,
    'Service unavailable',
    '5',
  ])
  await stored
  await operate(service, 'POST', '/projections/payroll-files/resume')
  await expect.poll(async () => (await status(service, tenant, fileId)).status).toBe(200)
})
