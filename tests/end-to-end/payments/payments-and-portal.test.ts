import { beforeAll, describe, expect, test } from 'vitest'
import { operationsOf } from '../../support/described-calls.ts'
import { type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** With no credentials, and with those of a client that may use everything. */
const callers = () => [{}, tenant.clientHeaders]

describe('the payments host', () => {
  test.each([
    '/',
    '/api/v2/payment-links',
    '/api/v2/webhooks',
    '/api/v1/payroll/reports',
    '/api/v2/employees/sync',
    `/api/v1/files/status/${'0'.repeat(24)}`,
    '/api/v1/webhook/inbound/x',
    '/mcp',
    '/ops/v1/tenants',
    '/healthz',
  ])('answers %s with 404 in the envelope', async (path) => {
    for (const headers of callers()) {
      for (const method of METHODS) {
        const answer = await send(`${service.paymentsUrl}${path}`, {
          method,
          headers,
          ...(method === 'GET' ? {} : { body: {} }),
        })
        expect([answer.status, answer.body]).toEqual([
          404,
          expect.objectContaining({ ok: false, error: 'Not Found', message: expect.stringMatching(/\S/) }),
        ])
        expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
        expect(answer.headers.get('x-request-id')).toMatch(/^\S+$/)
      }
    }
  })

  test('keeps the id of a request, also of one whose path cannot be read', async () => {
    const answer = await send(`${service.paymentsUrl}/nothing`, { headers: { 'X-Request-Id': 'trace-7' } })
    expect(answer.headers.get('x-request-id')).toBe('trace-7')
    const unreadable = await send(`${service.paymentsUrl}/%ff`)
    expect([unreadable.status, unreadable.body.ok]).toEqual([404, false])
  })
})

describe('the page host', () => {
  test.each([
    ['/', ['GET', 'POST']],
    ['/pay/tok_0123456789abcdef', ['GET']],
    ['/<script>alert(1)</script>', ['GET', 'POST']],
    ['/api/v1/payment-links', ['GET', 'POST']],
  ])('answers %s with a page that says 404', async (path, methods) => {
    for (const method of methods) {
      const answer = await send(`${service.portalUrl}${path}`, {
        method,
        headers: { 'X-Request-Id': 'trace-8' },
      })
      expect(answer.status).toBe(404)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(answer.headers.get('x-request-id')).toBe('trace-8')
      expect(answer.text).toMatch(/^<!doctype html>/)
      expect(answer.text).toContain('<h1>Not found</h1>')
      expect(answer.text).not.toMatch(/<script|tok_0123456789abcdef/)
    }
  })
})

describe('the core host', () => {
  const own = new Set(operationsOf('core').map(([name]) => name))
  const others = operationsOf('payments').filter(([name]) => !own.has(name))
  test.each(others)('has no %s, with and without credentials', async (_name, { method, path }) => {
    for (const headers of callers()) {
      const answer = await send(`${service.coreUrl}${path.replaceAll(/\{\w+\}/g, 'x')}`, {
        method,
        headers,
        ...(method === 'GET' ? {} : { body: {} }),
      })
      expect([answer.status, answer.body]).toEqual([
        404,
        expect.objectContaining({ error: 'Not found', message: expect.any(String) }),
      ])
      expect(answer.headers.get('x-request-id')).toMatch(/^\S+$/)
    }
  })
})
