import { beforeAll, describe, expect, test } from 'vitest'
import { streamEvents } from '../../../support/core.ts'
import { checkout, checkoutBody, quotedCheckout } from '../../../support/financing.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  await enableCheckout(service, tenant)
})

const quote = (body: unknown) => checkout(service, tenant, body)
const page = (token: string) => send(`${service.paymentsUrl}/public/financing-checkouts/${token}`)
const cancel = (id: string) => partner(service, tenant.clientHeaders, 'DELETE', `/payment-sessions/${id}`)
const eventsOf = (id: string) => streamEvents(service, `financingSession-${id}`)
const ready = (overrides: Record<string, unknown> = {}) => quotedCheckout(service, tenant, overrides)

describe('the page of a financing session', () => {
  test('shows what is financed and how that stands, and no secret', async () => {
    const { id, token, body } = await ready({
      fee_breakdown: [{ label: 'Filing fee', amount_cents: 5_000 }],
      description: 'Policy <2026>',
    })
    const { checkout_token } = (await quote(body)).body.data
    const { status: code, text, body: shown, headers } = await page(token)
    expect([code, headers.get('cache-control'), shown.data]).toEqual([
      ...[200, 'no-store'],
      {
        id,
        seller: {
          display_name: 'Harbor Premium Pay',
          logo_url: null,
          accent_color: null,
          support_email: 'help@harbor.example',
        },
        currency: 'usd',
        amount_cents: 105_000,
        description: 'Policy <2026>',
        line_items: [
          { label: 'Premium', amount_cents: 100_000 },
          { label: 'Filing fee', amount_cents: 5_000 },
        ],
        finance: { status: 'quote_ready', quote_count: 3, expires_at: expect.any(String) },
      },
    ])
    for (const secret of [token, checkout_token, 'tidewater', 'q_']) expect(text).not.toContain(secret)
    const html = await send(`${service.portalUrl}/pay/${token}`)
    expect([html.status, html.text]).toEqual([200, expect.stringContaining('Policy &lt;2026&gt;')])
    expect(html.text).toContain('$1,050.00')
    expect(html.text).not.toContain(token)
  })

  test('opens no checkout of card or bank', async () => {
    const { token } = await ready()
    const base = `${service.paymentsUrl}/public/payment-sessions/${token}`
    for (const path of ['/checkout', '/bank-debit']) {
      const body = path === '/checkout' ? {} : BANK_ACCOUNT
      const refused = await send(`${base}${path}`, { method: 'POST', body })
      expect([refused.status, refused.body.error]).toEqual([404, 'Not Found'])
    }
    expect((await send(base)).status).toBe(404)
    expect((await send(`${base}/plan`)).status).toBe(404)
  })

  test('is refused once the session or the account is closed', async () => {
    const { token, id } = await ready()
    await cancel(id)
    expect((await page(token)).status).toBe(409)
    const html = await send(`${service.portalUrl}/pay/${token}`)
    expect([html.status, html.text]).toEqual([200, expect.stringContaining('Financing closed')])

    const other = await seedTenant(service, { environment: 'sandbox' })
    await enableCheckout(service, other)
    const { data } = (await checkout(service, other, checkoutBody(other))).body
    expect((await page(data.finance_access_token)).body.data.finance.status).toBe('pending')
    await operate(service, 'POST', `/api-clients/${other.clientId}/deactivate`)
    expect((await page(data.finance_access_token)).status).toBe(403)
    for (const unknown of [`${token.slice(0, -1)}-`, 'nonsense', 'a'.repeat(59)]) {
      expect((await page(unknown)).status).toBe(404)
      expect((await send(`${service.portalUrl}/pay/${unknown}`)).status).toBe(404)
    }
  })
})

const BANK_ACCOUNT = {
  account_holder_name: 'Tidewater Joinery LLC',
  routing_number: '021000021',
  account_number: '000123456789',
  account_type: 'checking',
  authorized: true,
}

test('no secret and nothing personal stands in an event or a log line', async () => {
  const insured = {
    business_name: tenant.employerName,
    address: '17 Hidden Lane',
    city: 'Secretville',
    state: 'NV',
    zip_code: '89517',
  }
  const customer = { name: 'Quiet Person', email: 'quiet@hidden.example', phone: '+12025550187' }
  const { body, token, id } = await ready({ insured, customer })
  const { checkout_token } = (await quote(body)).body.data
  await page(token)
  await send(`${service.portalUrl}/pay/${token}`)
  const words = [token, checkout_token, '17 Hidden', 'Secretville', 'Quiet Person', 'quiet@', '2025550187']
  const everything = [JSON.stringify(await eventsOf(id)), ...(await service.output())].join('\n')
  expect(words.filter((word) => everything.includes(word))).toEqual([])
})
