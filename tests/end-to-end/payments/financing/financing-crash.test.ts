// @module-tag long: payments-intake breaks off between the steps of a request in the same way, chaos/pipeline-kill kills
import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { allEvents } from '../../../support/core.ts'
import { checkout, checkoutBody, simulate } from '../../../support/financing.ts'
import { type MailServer, startMailServer } from '../../../support/mail-server.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant, untilServed } from '../../../support/seed.ts'
import { type RunningService, startService } from '../../../support/service.ts'

let dataDir: string
let mail: MailServer
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-financing-'))
  mail = await startMailServer()
  await start()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  await enableCheckout(service, tenant)
  const settings = { invitations_enabled: true, recipient_allowlist: [TESTER] }
  await operate(service, 'PUT', `/tenants/${tenant.tenantId}/financing`, settings)
})
afterAll(async () => {
  await service?.stop()
  await mail?.close()
  await rm(dataDir, { recursive: true, force: true })
})

const TESTER = 'tester@harbor.example'
const start = async () => {
  service = await startService({ dataDir, env: { SMTP_URL: `smtp://127.0.0.1:${mail.port}` } })
}
const restart = async () => {
  await service.kill()
  await start()
}
/** What has just started may say that it is busy. */
const quote = (body: unknown) => untilServed(() => checkout(service, tenant, body))
const fault = (mode: string, times = 1) =>
  operate(service, 'POST', '/faults', { point: 'financing', mode, times })
const streams = async (type: string) => (await allEvents(service, type)).map(({ stream }) => stream)
const has = (type: string, before: number) =>
  vi.waitFor(async () => expect(await streams(type)).toHaveLength(before + 1), {
    timeout: 240_000,
    interval: 20,
  })

test('a request that is killed while it is sent is on hold, and never sent again', async () => {
  const body = checkoutBody(tenant)
  const before = (await streams('FinancingSubmissionBegun')).length
  await fault('hold')
  const lost = quote(body).catch(() => null)
  await has('FinancingSubmissionBegun', before)
  await restart()
  await lost
  // another embedded service starts without the hold; where processes share a database it stands until it is cleared
  await fault('hold', 0)
  const status = async () => (await quote(body)).body.data.status
  await vi.waitFor(async () => expect(await status()).toBe('on_hold'), { timeout: 240_000, interval: 50 })
  await operate(service, 'POST', '/drain')
  const { session_id, status: held } = (await quote(body)).body.data
  expect(held).toBe('on_hold')
  expect(await streams('FinancingSubmissionBegun')).toHaveLength(before + 1)
  expect(await streams('FinancingSubmitted')).not.toContain(`financingSession-${session_id}`)
  await expect(simulate(service, session_id, 'quotes')).rejects.toThrow('409')
})

test('an invitation that is killed while it is sent has failed, and is never sent again', async () => {
  const body = checkoutBody(tenant, { deliver: { email: true, email_to: TESTER } })
  const { session_id } = (await quote(body)).body.data
  await simulate(service, session_id, 'quotes')
  mail.answer('DATA', 0)
  const before = (await streams('FinancingInvitationBegun')).length
  const lost = quote(body).catch(() => null)
  await has('FinancingInvitationBegun', before)
  await restart()
  expect(await lost).toBeNull()
  mail.answer('DATA', 250)
  const timed = async () => {
    const asked = performance.now()
    await quote(body)
    return performance.now() - asked
  }
  // what comes of it is waited for at first, not for ever
  const whileItMayCome = await timed()
  await operate(service, 'POST', '/clock/advance', { seconds: 60 })
  expect(await timed()).toBeLessThan(whileItMayCome / 2)
  for (let n = 0; n < 2; n += 1) {
    const { status, text, body: answer } = await quote(body)
    expect([status, text]).toEqual([200, expect.any(String)])
    expect(answer.data).toMatchObject({
      status: 'ready',
      delivery: [{ channel: 'email', to: TESTER, status: 'failed', error: expect.any(String) }],
      delivery_ok: false,
    })
  }
  expect(mail.received).toEqual([])
  // others are sent
  const other = checkoutBody(tenant, { deliver: { email: true, email_to: TESTER } })
  await simulate(service, (await quote(other)).body.data.session_id, 'quotes')
  expect((await quote(other)).body.data.delivery_ok).toBe(true)
  expect(mail.received).toHaveLength(1)
})

test('of many requests under way, each key has one session that is sent once, whenever they are killed', async () => {
  const bodies = Array.from({ length: 16 }, () => checkoutBody(tenant))
  const answered = new Map<number, string>()
  const sendAll = () =>
    Promise.all(
      bodies.map(async (body, n) => {
        const answer = await quote(body).catch(() => null)
        if (answer === null || answer.status >= 500) return
        expect(answer.status).toBe(200)
        const { session_id, finance_access_token } = answer.body.data
        const said = `${session_id} ${finance_access_token}`
        expect(answered.get(n) ?? said).toBe(said)
        answered.set(n, said)
      }),
    )
  for (let round = 0; round < 3; round += 1) {
    const sent = sendAll()
    await delay(randomInt(5, 250))
    await restart()
    await sent
  }
  await operate(service, 'POST', '/drain')
  await sendAll()
  await operate(service, 'POST', '/drain')
  expect(answered.size).toBe(bodies.length)
  const ids = new Map([...answered].map(([n, said]) => [n, said.split(' ')[0]!]))
  expect(new Set(ids.values()).size).toBe(bodies.length)
  const begun = await streams('FinancingSubmissionBegun')
  for (const [n, id] of ids) {
    const stream = `financingSession-${id}`
    expect(begun.filter((one) => one === stream)).toHaveLength(1)
    // it is with the provider, or nobody knows
    await expect
      .poll(async () => {
        const { status } = (await quote(bodies[n])).body.data
        return [status, (await streams('FinancingSubmitted')).includes(stream)].join()
      })
      .toMatch(/^(pending,true|on_hold,false)$/)
  }
})
