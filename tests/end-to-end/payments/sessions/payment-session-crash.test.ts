// @module-tag postgres-log: nothing but a trigger in PostgreSQL refuses events, or holds them back, at the worst moment
// @module-tag long: payments-intake breaks off between the steps of a request in the same way, chaos/pipeline-kill kills
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { type DyingService, startDyingService } from '../../../support/dying-service.ts'
import { enableCheckout, newSession, sessionBody, tokenOf } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { type SeededTenant, seedTenant, send } from '../../../support/seed.ts'

/** Payment sessions of a service that is killed while the log holds one of its appends back. */

let dying: DyingService
let tenant: SeededTenant

beforeAll(async () => {
  dying = await startDyingService()
  tenant = await seedTenant(dying.service)
  await enableCheckout(dying.service, tenant)
  return () => dying.stop()
})

const ask = (method: string, path: string, body?: unknown, key?: string) =>
  partner(dying.service, tenant.clientHeaders, method, path, body, key)
const shown = async (id: string) => (await ask('GET', `/payment-sessions/${id}`)).body.data
const sessions = async () => (await ask('GET', '/payment-sessions')).body.pagination.total as number
const opens = async ({ url }: { readonly url: string }) =>
  (await send(`${dying.service.paymentsUrl}/public/payment-sessions/${tokenOf({ url })}`)).status

test.each([undefined, randomUUID()])(
  'a session whose service was killed between its cancellation and its successor is issued anew by who asks again: %s',
  async (key) => {
    for (const mode of ['link', 'embedded']) {
      const old = await newSession(dying.service, tenant, { mode, description: mode })
      const reissue = () => ask('POST', `/payment-sessions/${old.id}/reissue`, {}, key)
      await dying.killedAt('PaymentSessionCreated', reissue)
      const { status, replaced_by } = await shown(old.id)
      expect([status, replaced_by]).toEqual(['cancelled', expect.stringMatching(/^[0-9a-f]{24}$/)])
      expect((await ask('GET', `/payment-sessions/${replaced_by}`)).status).toBe(404)

      const again = await reissue()
      expect([again.status, again.body.data]).toMatchObject([201, { id: replaced_by, replaces: old.id }])
      if (mode === 'link') expect(await opens(again.body.data)).toBe(200)
      expect(await shown(replaced_by)).toMatchObject({ description: mode, replaces: old.id })
      const third = await ask('POST', `/payment-sessions/${old.id}/reissue`, {})
      expect([third.status, third.body.replaced_by]).toEqual([409, replaced_by])
    }
  },
)

test('a session whose service was killed before its cancellation is as it was', async () => {
  const old = await newSession(dying.service, tenant)
  const reissue = () => ask('POST', `/payment-sessions/${old.id}/reissue`, {})
  await dying.killedAt('PaymentSessionReplaced', reissue)
  expect(await shown(old.id)).toMatchObject({ status: 'pending' })
  expect(await opens(old)).toBe(200)
  expect((await reissue()).status).toBe(201)
})

test.each(['link', 'embedded'])('a session that was never stored is created by its key: %s', async (mode) => {
  const key = randomUUID()
  const before = await sessions()
  const create = () => ask('POST', '/payment-sessions', sessionBody(tenant, { mode }), key)
  await dying.killedAt('PaymentSessionCreated', create)
  expect(await sessions()).toBe(before)
  const again = await create()
  expect(again.status).toBe(201)
  if (mode === 'link') expect(await opens(again.body.data)).toBe(200)
  expect(await sessions()).toBe(before + 1)
})

test.each(['link', 'embedded'])('one whose answer was lost is named by its key: %s', async (mode) => {
  const key = randomUUID()
  const before = await sessions()
  const create = () => ask('POST', '/payment-sessions', sessionBody(tenant, { mode }), key)
  await dying.killedAt('IdempotencyKeyAnswered', create)
  const [{ id }] = (await ask('GET', '/payment-sessions?limit=1')).body.data
  for (let attempt = 0; attempt < 2; attempt++) {
    const again = await create()
    expect([again.status, again.body.error, again.body.id]).toEqual([409, 'Conflict', id])
    expect(again.body.message).toContain(id)
  }
  expect(await sessions()).toBe(before + 1)
})
