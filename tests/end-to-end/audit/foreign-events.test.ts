// @module-tag each-log
// @module-tag long: contract suites refuse such appends, process-manager-runner and projection-dead-letters set the stream aside
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { report, status } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { appendForeign, canStoreGarbage, type ForeignEvent } from '../../support/foreign-client.ts'
import { isLogInEventStore } from '../../support/installation.ts'
import { askOperator, operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

let database: TestDatabase
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  database = await createTestDatabase()
  const env = { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64'), CLOCK: 'system' }
  service = await startService({ env })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
})

const get = (path: string) => askOperator(service, 'GET', path)

interface Shown {
  readonly position: string
  readonly event_id: string
  readonly type: string
}

describe('events of another program in the log', () => {
  const KINDS: Readonly<Record<string, Omit<ForeignEvent, 'type'>>> = {
    'without metadata': { data: '{"name":"Zebulon"}', metadata: '{}' },
    'with metadata of its own': {
      data: '[]',
      metadata: '{"schema_version":"x","recorded_at":7,"actor":null}',
    },
    ...(canStoreGarbage
      ? {
          'that are no JSON': { data: '\u0000\u0001{', metadata: '' },
          'whose metadata are no object': { data: '', metadata: 'null' },
        }
      : {}),
  }
  const shown = async (stream: string): Promise<Shown[]> => (await get(`/streams/${stream}`)).body.data

  for (const [what, event] of Object.entries(KINDS)) {
    for (const type of ['SomethingForeign', 'PolicyTermsChanged']) {
      test(`${what}, of type ${type}, hold up their own stream and nothing else`, async () => {
        const odd = await seedTenant(service)
        const stream = `policy-${odd.policyId}`
        await appendForeign(database.url, stream, { type, ...event })

        const listed = await shown(stream)
        expect(listed.map((one) => one.type)).toEqual(['PolicyIssued', type])
        expect(JSON.stringify(listed)).not.toContain('Zebulon')
        for (const filter of ['', `&tenant_id=${odd.tenantId}`, `&type=${type}`, '&correlation_id=nobody']) {
          expect((await get(`/events?limit=1000${filter}`)).status).toBe(200)
        }
        const state = await get(`/streams/${stream}/state`)
        expect([state.status, state.body.message]).toEqual([409, expect.stringContaining(`${stream}@1`)])
        const cancelled = await askOperator(service, 'POST', `/policies/${odd.policyId}/cancel`, {
          reason: 'none',
        })
        expect([cancelled.status, cancelled.body.message]).toEqual([409, state.body.message])

        const { body } = await report(service, tenant)
        expect((await status(service, tenant, body.file_id)).body.status).toBe('NORMALIZED')
        await operate(service, 'POST', '/drain')
        const isRead = type === 'SomethingForeign'
        const parked = [
          expect.stringMatching(/^projection policies: parked streams/),
          ...(isLogInEventStore ? [expect.stringMatching(/^integration events: parked streams: \d+$/)] : []),
        ]
        // its figures are a sample of seconds ago
        await expect
          .poll(async () => {
            const { status, body } = await send(`${service.opsUrl}/readyz`)
            const behind = Object.values<{ events: number }>(body.checks.process_manager_lag).filter(
              ({ events }) => events > 0,
            )
            return { status, ok: body.ok, degraded: body.degraded, behind }
          })
          .toEqual({
            status: 200,
            ok: true,
            degraded: isRead ? expect.any(Array) : expect.arrayContaining(parked),
            behind: [],
          })
        const metrics = (await send(`${service.opsUrl}/metrics`)).text
        expect(metrics).toMatch(/^compstream_projection_lag_events\{projection="policies"\} 0$/m)
        if (isLogInEventStore && !isRead) {
          const { failed } = await operate(service, 'GET', '/work')
          expect(failed.map(({ key }: { key: string }) => key)).toContain(stream)
        }
      })
    }
  }

  test('are named by the check of the hash chains', async () => {
    const { verified, first_problem } = await operate(service, 'POST', '/audit/verify')
    if (isLogInEventStore) expect([verified, first_problem.problem]).toEqual([false, expect.any(String)])
  })
})
