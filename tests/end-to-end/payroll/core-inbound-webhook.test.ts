import { beforeAll, describe, expect, test } from 'vitest'
import { logHead, post, reportBody, serviceTime, sign, status } from '../../support/core.ts'
import { type Answer, operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

interface Connection {
  readonly connection_id: string
  readonly secret: string
}

let service: SharedService
let tenant: SeededTenant
let connection: Connection
let now: number

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  connection = await connect(tenant.tenantId)
  now = await serviceTime(service)
})

function connect(tenantId: string, environment = 'live'): Promise<Connection> {
  return operate(service, 'POST', '/inbound-connections', { tenant_id: tenantId, environment })
}

/** Timestamps differ, so that no two requests of these tests carry the same signature by chance. */
let sequence = 0
function fresh(): number {
  sequence += 1
  return now - sequence
}

function push(
  body: string,
  options: {
    timestamp?: number | string
    signature?: string
    to?: Connection
    prefix?: string
    headers?: Record<string, string>
  } = {},
): Promise<Answer> {
  const { timestamp = fresh(), to = connection, prefix = '/api/v1', headers = {} } = options
  const signature = options.signature ?? sign(to.secret, timestamp, body)
  return post(
    service,
    `${prefix}/webhook/inbound/${to.connection_id}`,
    { 'X-Webhook-Timestamp': String(timestamp), 'X-Webhook-Signature': signature, ...headers },
    body,
  )
}

const reportText = (overrides: Record<string, unknown> = {}) =>
  JSON.stringify(reportBody(tenant, overrides), null, 3)

describe('a signed push', () => {
  test.each(['/api/v1', '/api/v2'])('%s: answers as a report does', async (prefix) => {
    const answer = await push(reportText(), { prefix })
    expect(answer.status).toBe(202)
    expect(answer.body).toEqual({
      success: true,
      file_id: expect.any(String),
      status: 'completed',
      environment: 'live',
      employer: { id: tenant.employerId, business_name: tenant.employerName, fein: tenant.fein },
      policy: { id: tenant.policyId, policy_number: tenant.policyNumber },
      employee_count: 1,
      file_name: expect.stringContaining(tenant.policyNumber),
    })
    expect((await status(service, tenant, answer.body.file_id)).body.status).toBe('NORMALIZED')
  })

  test('reports only for employers of its tenant and environment', async () => {
    const other = await seedTenant(service)
    for (const to of [await connect(other.tenantId), await connect(tenant.tenantId, 'sandbox')]) {
      const answer = await push(reportText(), { to })
      expect(answer.status).toBe(404)
      expect(answer.body.error).toBe('Employer not found')
    }
  })
})

describe('what is not signed right stores nothing', () => {
  test.each(['X-Webhook-Timestamp', 'X-Webhook-Signature'])('without %s', async (name) => {
    const body = reportText()
    const timestamp = fresh()
    const all: Record<string, string> = {
      'X-Webhook-Timestamp': String(timestamp),
      'X-Webhook-Signature': sign(connection.secret, timestamp, body),
    }
    const { [name]: _, ...headers } = all
    const path = `/api/v1/webhook/inbound/${connection.connection_id}`
    const answer = await post(service, path, { ...headers, ...tenant.clientHeaders }, body)
    expect(answer.status).toBe(401)
    expect(answer.body).toEqual(
      expect.objectContaining({ error: 'Missing authentication headers', message: expect.any(String) }),
    )
  })

  test('a signature over anything but the timestamp and the raw bytes', async () => {
    const before = await logHead(service)
    const body = reportText()
    const timestamp = fresh()
    const right = sign(connection.secret, timestamp, body)
    const compact = JSON.stringify(JSON.parse(body))
    const wrong = {
      'one byte of the body changed': await push(body.replace('Ada', 'Ida'), { timestamp, signature: right }),
      'the same JSON with other spacing': await push(compact, { timestamp, signature: right }),
      'another timestamp': await push(body, { timestamp: timestamp + 1, signature: right }),
      'upper case': await push(body, { timestamp, signature: right.toUpperCase() }),
      'cut short': await push(body, { timestamp, signature: right.slice(0, -2) }),
      'the secret of another connection': await push(body, {
        timestamp,
        signature: sign((await connect(tenant.tenantId)).secret, timestamp, body),
      }),
      'not hex': await push(body, { timestamp, signature: 'ü'.repeat(64) }),
    }
    for (const [what, answer] of Object.entries(wrong)) {
      expect(answer.status, what).toBe(401)
      expect(answer.body, what).toEqual(
        expect.objectContaining({ error: 'Invalid signature', message: expect.any(String) }),
      )
    }
    const opened = await logHead(service)
    // the other connection was opened in between: one event, no report
    expect(Number.parseInt(opened, 10)).toBe(Number.parseInt(before, 10) + 1)
  })

  test('a timestamp more than 5 minutes away; exactly 5 minutes pass', async () => {
    const body = reportText()
    const bounds = {
      '-300000': 202,
      '300000': 202,
      '-240000': 202,
      '-300001': 401,
      '300001': 401,
      '-360000': 401,
    }
    for (const [offset, expected] of Object.entries(bounds)) {
      const answer = await push(body, { timestamp: now + Number(offset) })
      expect(answer.status, offset).toBe(expected)
      if (expected === 401) {
        expect(answer.body).toEqual(
          expect.objectContaining({ error: 'Timestamp outside tolerance', message: expect.any(String) }),
        )
      }
    }
  })

  test.each([
    ['seconds', () => Math.floor(now / 1000)],
    ['a date', () => new Date(now).toISOString()],
    ['a sign', () => `+${now}`],
    ['a fraction', () => `${now}.0`],
    ['hexadecimal', () => `0x${now.toString(16)}`],
  ])('a correctly signed timestamp in another form: %s', async (_what, timestamp) => {
    const answer = await push(reportText(), { timestamp: timestamp() })
    expect(answer.status).toBe(401)
    expect(answer.body.error).toBe('Timestamp outside tolerance')
  })

  test('an unknown, malformed or deactivated connection is 404', async () => {
    const closed = await connect(tenant.tenantId)
    expect((await push(reportText(), { to: closed })).status).toBe(202)
    await operate(service, 'POST', `/inbound-connections/${closed.connection_id}/deactivate`, {})
    for (const to of [
      closed,
      { ...connection, connection_id: '0'.repeat(24) },
      { ...connection, connection_id: 'x' },
      { ...connection, connection_id: connection.connection_id.toUpperCase() },
    ]) {
      const answer = await push(reportText(), { to })
      expect(answer.status).toBe(404)
      expect(answer.body).toEqual(
        expect.objectContaining({ error: 'Connection not found', message: expect.any(String) }),
      )
    }
  })
})

describe('a repeated push', () => {
  test('with the same signature, timestamp and body gets the first answer', async () => {
    const body = reportText()
    const timestamp = fresh()
    const first = await push(body, { timestamp })
    const head = await logHead(service)
    const again = await push(body, { timestamp, prefix: '/api/v2' })
    expect(again.status).toBe(202)
    expect(again.body).toEqual(first.body)
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await logHead(service)).toBe(head)
  })

  test('nor is one that was answered by its key alone, under another key or none', async () => {
    const body = reportText()
    const headers = { 'Idempotency-Key': 'push-0' }
    const first = await push(body, { headers })
    const timestamp = fresh()
    expect((await push(body, { timestamp, headers })).body).toEqual(first.body)
    const head = await logHead(service)
    expect((await push(body, { timestamp, headers })).body).toEqual(first.body)
    expect(await logHead(service)).toBe(head)
    for (const options of [{}, { headers: { 'Idempotency-Key': 'captured-0' } }]) {
      const again = await push(body, { timestamp, ...options })
      expect(again.body).toEqual(first.body)
      expect(again.headers.get('idempotent-replayed')).toBe('true')
    }
  })

  test('signed anew is a new report, unless its idempotency key is known', async () => {
    const body = reportText()
    const headers = { 'Idempotency-Key': 'push-1' }
    const first = await push(body, { headers })
    const again = await push(body, { headers })
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const other = await push(body)
    expect(other.body.file_id).not.toBe(first.body.file_id)
    const another = await push(reportText({ pay_period: null }), { headers })
    expect(another.status).toBe(409)
    expect(another.text).toContain(`another request body: that of ${first.body.file_id}`)
  })

  test('sent many times at once makes one file', async () => {
    const body = reportText()
    const timestamp = fresh()
    const answers = await Promise.all(Array.from({ length: 8 }, () => push(body, { timestamp })))
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1)
    expect(answers[0]!.status).toBe(202)
  })
})
