// @module-tag long: unit/http/unavailable has the answer, integration/followers/nats-wake-up and projection-runner who waits
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allEvents, post, report, status } from '../../support/core.ts'
import { type Answer, operate, type SeededTenant, seedPolicy, seedTenant } from '../../support/seed.ts'
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

/** Asks while a projection stands still, once an event is stored that it does not know. @returns what goes on then. */
async function askLate<T>(
  projection: string,
  type: string,
  store: () => Promise<T>,
  ask: (data: Readonly<Record<string, unknown>>) => Promise<Answer>,
): Promise<void> {
  const known = (await allEvents(service, type)).length
  await operate(service, 'POST', `/projections/${projection}/pause`)
  const stored = store()
  await expect.poll(async () => (await allEvents(service, type)).length).toBe(known + 1)
  const { data } = (await allEvents(service, type)).at(-1)!
  const late = await ask(data)
  expect([late.status, late.body.error, late.headers.get('retry-after')]).toEqual([
    503,
    'Service unavailable',
    '5',
  ])
  await stored
  await operate(service, 'POST', `/projections/${projection}/resume`)
  await expect.poll(async () => (await ask(data)).status).toBeLessThan(300)
}

test('a file that is too new to be read is not said to be missing', async () => {
  await askLate(
    'payroll-files',
    'PayrollFileReceived',
    () => report(service, tenant),
    (data) => status(service, tenant, String(data.file_id)),
  )
})

test('an employee sync is not refused for a policy that cannot be seen yet', async () => {
  const { carrier_id } = await operate(service, 'POST', '/carriers', {
    tenant_id: tenant.tenantId,
    name: 'Second Mutual',
    settlement_type: null,
  })
  const { client_id, client_secret } = await operate(service, 'POST', '/api-clients', {
    tenant_id: tenant.tenantId,
    name: 'scoped',
    environment: 'live',
    products: ['all'],
    carrier_ids: [carrier_id],
  })
  await askLate(
    'policies',
    'PolicyIssued',
    () => seedPolicy(service, { ...tenant, carrierId: carrier_id }),
    () =>
      post(
        service,
        '/api/v1/employees/sync',
        { 'X-Client-ID': client_id, 'X-Client-Secret': client_secret },
        {
          employer_id: tenant.employerId,
          employees: [{ employee_id: 'E-1', action: 'update', gross_wages: 1 }],
        },
      ),
  )
})
