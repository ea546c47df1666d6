import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkout, checkoutBody, quotedCheckout, simulate } from '../../../support/financing.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

let service: SharedService
let tenant: SeededTenant
let recipients = 0
let to: string

const set = (settings: Record<string, unknown>) =>
  operate(service, 'PUT', `/tenants/${tenant.tenantId}/financing`, settings)
const quote = (body: unknown) => checkout(service, tenant, body)
const sentTo = (address: string): Promise<readonly { from: string; subject: string; text: string }[]> =>
  operate(service, 'GET', `/outbox?channel=email&to=${encodeURIComponent(address)}`)
const fault = (mode: string) => operate(service, 'POST', '/faults', { point: 'mail', mode, times: 1 })

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  await enableCheckout(service, tenant)
})
beforeEach(async () => {
  recipients += 1
  to = `tester-${tenant.tenantId}-${recipients}@harbor.example`
  await set({ invitations_enabled: true, recipient_allowlist: [to, `other-${to}`] })
})

/** A checkout that is ready and invites nobody yet. */
const ready = (overrides: Record<string, unknown> = {}) => quotedCheckout(service, tenant, overrides)
const inviting = (email_to?: string) => ({ deliver: { email: true, ...(email_to && { email_to }) } })

describe('an invitation', () => {
  test('is sent once the checkout is ready, and once', async () => {
    const body = checkoutBody(tenant, inviting(to))
    const pending = (await quote(body)).body.data
    expect([pending.status, 'delivery' in pending, 'delivery_ok' in pending]).toEqual([
      'pending',
      false,
      false,
    ])
    expect(await sentTo(to)).toEqual([])
    await simulate(service, pending.session_id, 'quotes')
    const answers = await Promise.all(Array.from({ length: 5 }, () => quote(body)))
    const [first] = answers.map(({ body }) => body.data)
    expect(first).toMatchObject({
      status: 'ready',
      delivery: [{ channel: 'email', to, status: 'sent', at: expect.stringMatching(/Z$/) }],
      delivery_ok: true,
    })
    for (const { body } of answers) expect(body.data).toEqual(first)
    expect((await quote(body)).body.data).toEqual(first)
    const messages = await sentTo(to)
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatchObject({ from: expect.stringContaining('billing@harbor.example') })
    expect(messages[0]!.text).toContain(`${service.portalUrl}/pay/${pending.finance_access_token}`)
    expect(messages[0]!.text).not.toContain(first.checkout_token)
    // polls without it tell of it as well, and the session does
    expect((await quote({ ...body, deliver: null })).body.data).toEqual(first)
    const shown = await partner(service, tenant.clientHeaders, 'GET', `/payment-sessions/${first.session_id}`)
    expect(shown.body.data).toMatchObject({ delivery: [{ to, status: 'sent' }], delivery_ok: true })
  })

  test('goes to the customer unless somebody else is named, whatever the case of the letters', async () => {
    const customer = { name: 'Tidewater Joinery LLC', email: to.toUpperCase() }
    const { body } = await ready({ customer })
    const { data } = (await quote({ ...body, ...inviting() })).body
    expect(data).toMatchObject({ delivery: [{ to: to.toUpperCase(), status: 'sent' }], delivery_ok: true })
  })

  test('has one recipient', async () => {
    const { body } = await ready()
    await quote({ ...body, ...inviting(to) })
    for (const other of [`other-${to}`, 'stranger@harbor.example']) {
      const { status, body: said } = await quote({ ...body, ...inviting(other) })
      expect([status, said.error]).toEqual([409, 'Conflict'])
    }
    expect(await sentTo(`other-${to}`)).toEqual([])
    // as long as none was attempted, the recipient may change
    const fresh = checkoutBody(tenant, inviting(to))
    const { session_id } = (await quote(fresh)).body.data
    await simulate(service, session_id, 'quotes')
    const { data } = (await quote({ ...fresh, ...inviting(`other-${to}`) })).body
    expect(data.delivery).toMatchObject([{ to: `other-${to}` }])
  })

  test('goes to listed recipients only, and nowhere while invitations are off', async () => {
    for (const body of [checkoutBody(tenant), (await ready()).body]) {
      const { status, body: said } = await quote({ ...body, ...inviting('stranger@harbor.example') })
      expect([status, said.error, said.message]).toEqual([
        400,
        'Bad Request',
        expect.stringContaining('list'),
      ])
    }
    await set({ recipient_allowlist: [to] })
    const off = await quote({ ...checkoutBody(tenant), ...inviting(to) })
    expect([off.status, off.body.error]).toEqual([503, 'Service Unavailable'])
    const unlisted = await quote({ ...checkoutBody(tenant), ...inviting('stranger@harbor.example') })
    expect(unlisted.status).toBe(400)
    expect((await quote(checkoutBody(tenant, { deliver: { email: false } }))).status).toBe(200)
    expect(await sentTo(to)).toEqual([])
  })

  test.each(['unreachable', 'decline', 'timeout'])(
    'that the mail server met with %s has failed, and is not sent again',
    async (mode) => {
      const { body } = await ready()
      await fault(mode)
      const { data } = (await quote({ ...body, ...inviting(to) })).body
      expect(data).toMatchObject({
        status: 'ready',
        delivery: [
          { channel: 'email', to, status: 'failed', at: expect.any(String), error: expect.any(String) },
        ],
        delivery_ok: false,
      })
      expect((await quote({ ...body, ...inviting(to) })).body.data).toEqual(data)
      // one that timed out had got there
      expect(await sentTo(to)).toHaveLength(mode === 'timeout' ? 1 : 0)
    },
  )

  test('is not sent for what is on hold or expired', async () => {
    for (const verb of ['hold', 'expire'] as const) {
      const body = checkoutBody(tenant, inviting(to))
      const { session_id } = (await quote(body)).body.data
      await simulate(service, session_id, verb)
      const { data } = (await quote(body)).body
      expect([data.status, 'delivery' in data]).toEqual([verb === 'hold' ? 'on_hold' : 'expired', false])
    }
    expect(await sentTo(to)).toEqual([])
  })
})

test('an invitation has one page', async () => {
  const own = await seedTenant(service, { environment: 'sandbox' })
  const web_address = `https://pay-${own.tenantId}.example`
  await enableCheckout(service, own, { web_address })
  const settings = { invitations_enabled: true, recipient_allowlist: [to] }
  await operate(service, 'PUT', `/tenants/${own.tenantId}/financing`, settings)
  const quoted = async () => {
    const body = checkoutBody(own, inviting(to))
    const { session_id } = (await checkout(service, own, body)).body.data
    await simulate(service, session_id, 'quotes')
    return body
  }
  const before = await quoted()
  const later = await quoted()
  expect((await checkout(service, own, before)).body.data.delivery_ok).toBe(true)
  await operate(service, 'POST', `/tenants/${own.tenantId}/checkout/verify-web-address`, { force: true })
  const moved = await checkout(service, own, before)
  expect([moved.status, moved.body.error]).toEqual([409, 'Conflict'])
  expect((await checkout(service, own, { ...before, deliver: null })).body.data.delivery_ok).toBe(true)
  const { data } = (await checkout(service, own, later)).body
  expect(data.delivery_ok).toBe(true)
  const [latest] = await sentTo(to)
  expect(latest!.text).toContain(`${web_address}/pay/${data.finance_access_token}`)
})

test('the settings show what was set', async () => {
  const set_ = { recipient_allowlist: ['B@harbor.example', 'a@harbor.example', 'b@harbor.example'] }
  const settings = {
    tenant_id: tenant.tenantId,
    enabled: true,
    invitations_enabled: false,
    agreements_enabled: true,
    recipient_allowlist: ['b@harbor.example', 'a@harbor.example'],
  }
  expect(await set(set_)).toEqual(settings)
  expect(await operate(service, 'GET', `/tenants/${tenant.tenantId}/financing`)).toEqual(settings)
})
