import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { createPaymentsClient } from '../../../../clients/node/index.ts'
import { checkout, checkoutBody, quotedCheckout, simulate } from '../../../support/financing.ts'
import { newClient } from '../../../support/intake.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedEmployer, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  await enableCheckout(service, tenant)
})

type Headers = Readonly<Record<string, string>>
const ask = (path: string, headers: Headers = tenant.clientHeaders, method = 'GET') =>
  partner(service, headers, method, path)
const pathOf = (id: string, quoteKey: string) => `/payment-sessions/${id}/financing/agreements/${quoteKey}`
const fault = (mode: string, times = 1) =>
  operate(service, 'POST', '/faults', { point: 'financing', mode, times })
async function ready(overrides: Record<string, unknown> = {}) {
  const { id, quotes } = await quotedCheckout(service, tenant, overrides)
  return { id, quoteKey: quotes[1].quote_key as string }
}

/** The texts of a PDF, once its table of contents was held against where its objects are. */
function textsOf(pdf: Buffer): readonly string[] {
  const file = pdf.toString('latin1')
  expect([file.slice(0, 8), file.slice(-6)]).toEqual(['%PDF-1.4', '%%EOF\n'])
  const table = Number(/startxref\n(\d+)\n/.exec(file)![1])
  const [, size] = /^xref\n0 (\d+)\n/.exec(file.slice(table))!
  const offsets = [...file.slice(table).matchAll(/(\d{10}) 00000 n \n/g)].map(([, offset]) => Number(offset))
  expect(offsets).toHaveLength(Number(size) - 1)
  for (const [index, offset] of offsets.entries()) {
    expect(file.slice(offset)).toMatch(new RegExp(`^${index + 1} 0 obj\n`))
  }
  for (const [, length, content] of file.matchAll(/<< \/Length (\d+) >>\nstream\n([\s\S]*?)\nendstream/g)) {
    expect(content!.length).toBe(Number(length))
  }
  return [...file.matchAll(/<([0-9a-f]+)> Tj/g)].map(([, hex]) => Buffer.from(hex!, 'hex').toString('latin1'))
}

/** The bytes of an agreement, past what tests usually send with: that reads texts. */
async function download(path: string): Promise<{ readonly headers: Headers; readonly bytes: Buffer }> {
  const response = await fetch(`${service.paymentsUrl}/api/v1${path}`, { headers: tenant.clientHeaders })
  expect(response.status).toBe(200)
  return {
    headers: Object.fromEntries(response.headers),
    bytes: Buffer.from(await response.arrayBuffer()),
  }
}

describe('an agreement', () => {
  test('is a PDF with the figures of its quote, and nobody keeps it', async () => {
    const { id, quoteKey } = await ready()
    const { headers, bytes } = await download(pathOf(id, quoteKey))
    expect(headers).toMatchObject({
      'content-type': 'application/pdf',
      'cache-control': 'no-store',
      'content-length': String(bytes.length),
    })
    const texts = textsOf(bytes)
    for (const text of [
      'Premium finance agreement',
      tenant.employerName,
      `Policy ${tenant.policyNumber}`,
      'Total premium and fees: $1,050.00',
      'Down payment: $210.00',
      expect.stringContaining('TEST'),
      expect.stringContaining('neither a signed agreement nor a receipt'),
    ]) {
      expect(texts).toContainEqual(text)
    }
    expect((await download(pathOf(id, quoteKey))).bytes.equals(bytes)).toBe(true)
    expect((await ask(pathOf(id, quoteKey))).status).toBe(200)

    const { clientId, clientSecret } = tenant
    const client = createPaymentsClient({ baseUrl: service.paymentsUrl, clientId, clientSecret, retries: 0 })
    const got = await client.downloadFinancingAgreement({ payment_session_id: id, quote_key: quoteKey })
    expect(bytes.equals(got)).toBe(true)
    const none = client.downloadFinancingAgreement({ payment_session_id: id, quote_key: 'q_none' })
    await expect(none).rejects.toMatchObject({ status: 404 })
  })

  test('of long names in other letters is a whole PDF as well', async () => {
    const legal_name = `Łódź “Bakery” – ${'É 世界 '.repeat(20)}(a\\b)`
    const { tenantId, carrierId } = tenant
    const { employerId } = await seedEmployer(service, { tenantId, environment: 'sandbox' }, { legal_name })
    const policy = { employer_id: employerId, carrier_id: carrierId, policy_number: 'WC-Ö-1', ...TERMS }
    const { policy_id: policyId } = await operate(service, 'POST', '/policies', policy)
    const theirs = { ...tenant, employerId, policyId, employerName: legal_name }
    const { data } = (await checkout(service, tenant, checkoutBody(theirs))).body
    const { quotes } = await simulate(service, data.session_id, 'quotes')
    const texts = textsOf((await download(pathOf(data.session_id, quotes[0].quote_key))).bytes)
    expect(texts).toContain('Policy WC-Ö-1')
    // what the fonts do not have loses its accents, or is a question mark
    expect(texts.some((text) => text.startsWith('?ódz \x93Bakery\x94 \x96 É ?? É ??'))).toBe(true)
  })

  test('is of a stored quote of a session of the account', async () => {
    const { id, quoteKey } = await ready()
    const other = await ready()
    for (const [path, status] of [
      [pathOf(id, 'q_none'), 404],
      [pathOf(id, other.quoteKey), 404],
      [pathOf('f'.repeat(24), quoteKey), 404],
      [pathOf('x', quoteKey), 404],
    ] as const) {
      expect([path, (await ask(path)).status]).toEqual([path, status])
    }
    const unquoted = (await checkout(service, tenant, checkoutBody(tenant))).body.data
    expect((await ask(pathOf(unquoted.session_id, quoteKey))).status).toBe(404)
  })

  test('is a conflict once session or request is closed', async () => {
    const cancelled = await ready()
    await ask(`/payment-sessions/${cancelled.id}`, tenant.clientHeaders, 'DELETE')
    const expired = await ready()
    await simulate(service, expired.id, 'expire')
    for (const { id, quoteKey } of [cancelled, expired]) {
      const { status, body } = await ask(pathOf(id, quoteKey))
      expect([status, body.error]).toEqual([409, 'Conflict'])
    }
    const paid = await ready()
    await simulate(service, paid.id, 'down-payment-notice')
    expect((await ask(pathOf(paid.id, paid.quoteKey))).status).toBe(200)
  })

  test('is not there while the provider does not hand it over, or the account has none', async () => {
    const { id, quoteKey } = await ready()
    for (const mode of ['unreachable', 'timeout', 'decline']) {
      await fault(mode)
      const { status, body } = await ask(pathOf(id, quoteKey))
      expect([mode, status, body.error]).toEqual([mode, 502, 'Bad Gateway'])
    }
    for (const settings of [{ agreements_enabled: false }, { enabled: false }]) {
      await operate(service, 'PUT', `/tenants/${tenant.tenantId}/financing`, settings)
      expect((await ask(pathOf(id, quoteKey))).status).toBe(503)
    }
    await operate(service, 'PUT', `/tenants/${tenant.tenantId}/financing`, {})
    expect((await ask(pathOf(id, quoteKey))).status).toBe(200)
  })

  test('is lost where session, request or key end while it is retrieved', async () => {
    const ends: readonly ((id: string, clientId: string) => Promise<unknown>)[] = [
      (id) => ask(`/payment-sessions/${id}`, tenant.clientHeaders, 'DELETE'),
      (id) => simulate(service, id, 'expire'),
      (_, clientId) => operate(service, 'POST', `/api-clients/${clientId}/deactivate`),
    ]
    for (const end of ends) {
      // nobody sees when it has got to the provider: it had not where it is refused, and begins anew
      for (let patienceMs = 50; ; patienceMs *= 2) {
        const { id, quoteKey } = await ready()
        const { clientId, headers } = await newClient(service, tenant.tenantId, { environment: 'sandbox' })
        await fault('hold')
        const lost = ask(pathOf(id, quoteKey), headers)
        await delay(patienceMs)
        await end(id, clientId)
        await fault('hold', 0)
        const { status, body } = await lost
        if ((status === 409 || status === 401) && patienceMs < 20_000) continue
        expect([status, body.error]).toEqual([502, 'Bad Gateway'])
        break
      }
    }
  })
})

const TERMS = {
  status: 'active',
  effective_date: '2020-01-01',
  expiration_date: '2099-12-31',
  class_codes: ['8810'],
  states: ['CA'],
  locations: [],
  rates: [],
  payroll_frequency: 'WEEKLY',
  fees: [],
  billing_type: 'DIRECT_BILLING',
  overtime_exclusion: false,
}

test('an agreement is for keys of the account, within their scope', async () => {
  const { tenantId, carrierId } = tenant
  const environment = 'sandbox'
  const { id, quoteKey } = await ready()
  const { employerId } = await seedEmployer(service, { tenantId, environment })
  const asked = async (scope: Record<string, unknown>, of = tenantId) => {
    const { headers } = await newClient(service, of, { environment, ...scope })
    return (await ask(pathOf(id, quoteKey), headers)).status
  }
  expect(await asked({ carrier_ids: [carrierId], employer_ids: [tenant.employerId] })).toBe(200)
  for (const outside of [{ carrier_ids: [] }, { employer_ids: [employerId] }, { products: ['payroll'] }]) {
    expect([outside, await asked(outside)]).toEqual([outside, 403])
  }
  expect(await asked({ environment: 'live' })).toBe(403)
  expect(await asked({}, (await seedTenant(service, { environment })).tenantId)).toBe(404)
  expect((await ask(pathOf(id, quoteKey), {})).status).toBe(401)
})
