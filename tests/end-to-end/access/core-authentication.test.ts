import { beforeAll, describe, expect, test } from 'vitest'
import { post, reportBody, serviceTime, sign } from '../../support/core.ts'
import { type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

const REPORTS = '/api/v1/payroll/reports'
describe('routing comes before authentication', () => {
  test.each([
    '/',
    '/api',
    '/api/v1',
    '/api/v3/payroll/reports',
    '/payroll/reports',
    '/API/v1/payroll/reports',
  ])('%s is 404 in the core error body', async (path) => {
    const answer = await send(`${service.coreUrl}${path}`)
    expect(answer.status).toBe(404)
    expect(answer.body).toMatchObject({ error: 'Not found', message: expect.any(String) })
  })
})

describe('client credentials', () => {
  test('authentication comes before the body', async () => {
    expect((await post(service, REPORTS, {}, '{oops')).status).toBe(401)
    expect((await post(service, REPORTS, {}, 'x'.repeat(11 * 1024 * 1024))).status).toBe(401)
    const answer = await post(service, REPORTS, tenant.clientHeaders, '{oops')
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error: 'Invalid JSON', message: expect.any(String) })
  })
})

describe('a body in another charset than UTF-8', () => {
  test.each(['/api/v1/payroll/reports', '/api/v2/employees/sync'])(
    'is 415 on %s, once the caller is known',
    async (path) => {
      const body = reportBody(tenant, { employer_id: tenant.employerId })
      const utf16 = { 'Content-Type': 'application/json; charset=utf-16le' }
      expect((await post(service, path, utf16, body)).status).toBe(401)
      const answer = await post(service, path, { ...tenant.clientHeaders, ...utf16 }, body)
      expect([answer.status, answer.body]).toEqual([
        415,
        expect.objectContaining({
          error: 'Unsupported media type',
          message: expect.stringContaining('UTF-8'),
        }),
      ])
    },
  )
})

describe('signed requests', () => {
  test('signature headers of a client that need not sign are ignored', async () => {
    const headers = { ...tenant.clientHeaders, 'X-Signature': 'anything', 'X-Timestamp': 'whenever' }
    expect((await post(service, REPORTS, headers, reportBody(tenant))).status).toBe(202)
  })

  describe('of a client that must sign', () => {
    let signing: SeededTenant
    let body: string
    let now: number

    beforeAll(async () => {
      signing = await seedTenant(service, { apiClient: { request_signing: 'required' } })
      body = JSON.stringify(reportBody(signing), null, 1)
      now = await serviceTime(service)
    })

    const signed = (timestamp: number | string, over = body, secret = signing.clientSecret) => ({
      ...signing.clientHeaders,
      'X-Timestamp': String(timestamp),
      'X-Signature': sign(secret, timestamp, over),
    })

    test('a right signature passes, up to exactly 5 minutes either way', async () => {
      for (const offset of [0, 300_000, -300_000]) {
        expect((await post(service, REPORTS, signed(now + offset), body)).status).toBe(202)
      }
    })

    test('everything else is 401 Invalid signature', async () => {
      const { 'X-Signature': _s, ...withoutSignature } = signed(now)
      const { 'X-Timestamp': _t, ...withoutTimestamp } = signed(now)
      const cases = {
        'no signature': withoutSignature,
        'no timestamp': withoutTimestamp,
        'another body': signed(now, `${body} `),
        'another secret': signed(now, body, 'other'),
        'another timestamp': { ...signed(now), 'X-Timestamp': String(now + 1) },
        'too old': signed(now - 300_001),
        'too new': signed(now + 300_001),
        seconds: signed(Math.floor(now / 1000)),
        'not a number': signed('soon'),
        'cut short': { ...signed(now), 'X-Signature': signed(now)['X-Signature'].slice(0, 63) },
      }
      for (const [what, headers] of Object.entries(cases)) {
        const answer = await post(service, REPORTS, headers, body)
        expect(answer.status, what).toBe(401)
        expect(answer.body, what).toMatchObject({ error: 'Invalid signature', message: expect.any(String) })
      }
    })

    test('a read without a body is signed over the empty body', async () => {
      const url = `${service.coreUrl}/api/v1/files/status/${'0'.repeat(24)}`
      expect((await send(url, { headers: signed(now, '') })).status).toBe(404)
      expect((await send(url, { headers: signing.clientHeaders })).status).toBe(401)
    })
  })
})
