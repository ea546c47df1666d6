import { beforeAll, expect, test } from 'vitest'
import { streamEvents } from '../support/core.ts'
import { intakeBody, newClient, payInFull, takeIn } from '../support/intake.ts'
import {
  BANK_ACCOUNT,
  enableCheckout,
  newSession,
  sessionBody,
  tokenOf,
} from '../support/payment-sessions.ts'
import { partner, raised } from '../support/payments.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type SharedService, sharedService } from '../support/service.ts'

/** Payment sessions that several want something of at once, and what a payment does not do. */

const ROUNDS = 4

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})

const ask = (method: string, path: string, body?: unknown) =>
  partner(service, tenant.clientHeaders, method, path, body)
const post = (token: string, path: string, body: unknown = {}) =>
  send(`${service.paymentsUrl}/public/payment-sessions/${token}${path}`, { method: 'POST', body })
const shown = async (id: string) => (await ask('GET', `/payment-sessions/${id}`)).body.data
const verbs: Readonly<Record<string, (one: { id: string; url: string }) => Promise<Answer>>> = {
  arrange: (one) => post(tokenOf(one), '/bank-debit', BANK_ACCOUNT),
  checkout: (one) => post(tokenOf(one), '/checkout'),
  reissue: ({ id }) => ask('POST', `/payment-sessions/${id}/reissue`, {}),
  cancel: ({ id }) => ask('DELETE', `/payment-sessions/${id}`),
}
const atOnce = (one: { id: string; url: string }, names: readonly string[]) =>
  Promise.all(names.map((name) => verbs[name]!(one)))
const eventsOf = (id: string) => streamEvents(service, `paymentSession-${id}`)
const refused = ({ status, body }: Answer) => [status, body.ok]

test('a debit is arranged once, or the session is replaced, never both', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const one = await newSession(service, tenant)
    const names = ['arrange', 'reissue', 'arrange', 'reissue', 'arrange']
    const answers = await atOnce(one, round % 2 === 0 ? names : names.toReversed())
    const done = answers.filter(({ status }) => status < 300)
    expect(done).toHaveLength(1)
    for (const answer of answers) if (answer !== done[0]) expect(refused(answer)).toEqual([409, false])
    const { status, leg_id, replaced_by } = await shown(one.id)
    if (status === 'scheduled') expect([leg_id, replaced_by]).toEqual([done[0]!.body.data.leg_id, undefined])
    else expect([status, leg_id, replaced_by]).toEqual(['cancelled', undefined, done[0]!.body.data.id])
    const types = (await eventsOf(one.id)).map(({ type }) => type)
    expect(types).toHaveLength(2)
  }
})

test('no checkout stays open when the session is cancelled or replaced meanwhile', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const one = await newSession(service, tenant)
    const end = round % 2 === 0 ? 'cancel' : 'reissue'
    const answers = await atOnce(one, ['checkout', end, 'checkout'])
    expect(answers[1]!.status).toBeLessThan(300)
    for (const answer of [answers[0]!, answers[2]!]) expect([200, 409]).toContain(answer.status)
    expect((await shown(one.id)).status).toBe('cancelled')
    const events = await eventsOf(one.id)
    const begun = events.filter(({ type }) => type === 'PaymentSessionCheckoutBegun')
    const closed = events.filter(({ type }) => type === 'PaymentSessionCheckoutClosed')
    expect(closed.map(({ data }) => data.checkout_id).sort()).toEqual(
      begun.map(({ data }) => data.checkout_id).sort(),
    )
    expect((await post(tokenOf(one), '/checkout')).status).toBe(409)
  }
})

test('who asks for a checkout at once gets the same one, and is charged once', async () => {
  const one = await newSession(service, tenant)
  const answers = await atOnce(one, Array(6).fill('checkout'))
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  await Promise.all(
    Array.from({ length: 4 }, () => operate(service, 'POST', `/card-processor/${one.id}/succeed`, {})),
  )
  expect((await shown(one.id)).status).toBe('paid')
  const told = await raised(service, tenant.tenantId, 'payment.completed')
  expect(told.filter(({ payment_session_id }) => payment_session_id === one.id)).toHaveLength(1)
})

test('a session does not activate a policy that was taken in; a link does', async () => {
  const { headers } = await newClient(service, tenant.tenantId, { carrier_ids: [tenant.carrierId] })
  const taken = await takeIn(service, headers, intakeBody({ carrier_id: tenant.carrierId }))
  const ids = taken.body.data ?? taken.body
  const policy = async () => (await operate(service, 'GET', `/policies/${ids.policy_id}`)).status
  const body = { ...sessionBody(tenant), employer_id: ids.employer_id, policy_id: ids.policy_id }
  const created = await partner(service, headers, 'POST', '/payment-sessions', body)
  expect(created.status).toBe(201)
  await operate(service, 'POST', `/card-processor/${created.body.data.id}/succeed`, {})
  await operate(service, 'POST', '/drain')
  expect((await shown(created.body.data.id)).status).toBe('paid')
  expect(await policy()).toBe('in_progress')
  const link = await partner(service, headers, 'POST', '/payment-links', payInFull(ids))
  await operate(service, 'POST', `/card-processor/${link.body.data._id}/succeed`, {})
  await operate(service, 'POST', '/drain')
  expect(await policy()).toBe('active')
})
