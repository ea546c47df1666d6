import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportBody } from '../../support/core.ts'
import { callTool, payrollRow, type SeededTenant, seedTenant, send, sendRpc } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

const KIB = 1024
const MIB = 1024 * KIB

let service: RunningService
let seeded: SeededTenant
beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '100' } })
  const class_codes = Array.from({ length: 120 }, (_, index) => String(1000 + index))
  seeded = await seedTenant(service, { policy: { class_codes, rates: [] } })
})
afterAll(() => service?.stop())

/** Sends the head of a request and the beginning of its body, and keeps the connection. */
function begin(url: string, headers: Record<string, string>, length: number, beginning = ''): Begun {
  const { hostname, port, pathname } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = Object.entries({ Host: `${hostname}:${port}`, ...headers, 'Content-Length': String(length) })
  socket.write(
    `POST ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )
  socket.write(beginning)
  let text = ''
  const answer = new Promise<string>((resolve, reject) => {
    socket.on('data', (part) => {
      text += part
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.POSITIVE_INFINITY)
      const body = text.indexOf('\r\n\r\n') + 4
      if (body > 3 && text.length - body >= length) resolve(text)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('closed without an answer')))
  })
  answer.catch(() => undefined)
  return { socket, answer }
}
interface Begun {
  readonly socket: Socket
  readonly answer: Promise<string>
}

describe('large calls of one credential', () => {
  // unit/http/costs has who waits, and until when
  it('wait for one another beyond the fourth, and hold up nobody else', { tags: 'long' }, async () => {
    const other = await seedTenant(service)
    const url = `${service.coreUrl}/api/v1/payroll/reports`
    const length = MIB + 1
    const held = Array.from({ length: 4 }, () => begin(url, seeded.clientHeaders, length))
    const fifth = begin(url, seeded.clientHeaders, length, 'x'.repeat(length))
    const of = (tenant: SeededTenant, body: unknown) =>
      send(url, { method: 'POST', headers: tenant.clientHeaders, body })
    // small ones go on, and so do large ones of others
    expect((await of(seeded, reportBody(seeded, { employees: [] }))).status).toBe(400)
    const large = reportBody(other, { employees: [], policy_number: 'x'.repeat(length) })
    expect((await of(other, large)).body.error).toBe('employees must be non-empty')

    const refused = await fifth.answer
    expect(refused).toMatch(/^HTTP\/1\.1 429 /)
    expect(refused).toMatch(/retry-after: 5/i)
    expect(refused).toContain('At most 4 large calls (above 1 MiB or 5,000 rows) are at work at once')

    const sixth = begin(url, seeded.clientHeaders, length, 'x'.repeat(length))
    held[0]!.socket.destroy()
    // its turn came: what it sent is no JSON
    expect(await sixth.answer).toMatch(/^HTTP\/1\.1 400 /)
    for (const { socket } of [...held, fifth, sixth]) socket.destroy()
  })
})

describe('who is refused', () => {
  const padding = (bytes: number) => 'x'.repeat(bytes)

  it.each([
    ['at the beginning', `{"jsonrpc":"2.0","id":"mine","params":"${padding(70 * KIB)}`, '"id":"mine"'],
    [
      'after a part of the body',
      `{"params":["${padding(60 * KIB)}"],"id":7,"method":"${padding(9 * KIB)}`,
      '"id":7',
    ],
    ['beyond 64 KiB', `{"params":"${padding(200 * KIB)}","id":7,"a":"`, '"id":null'],
  ])('is answered before its body has come, with an id that stands %s', async (_where, beginning, id) => {
    for (const key of ['', 'Bearer mcp_0000000000000000000000000000000000000000']) {
      const headers = { Authorization: key }
      const { socket, answer } = begin(`${service.mcpUrl}/mcp`, headers, 10 * MIB, beginning)
      const text = await answer
      expect(text).toMatch(/^HTTP\/1\.1 401 /)
      expect(text).toContain('-32001')
      expect(text).toContain(id)
      socket.destroy()
    }
  })

  it('is answered before its body has come on the core API', async () => {
    const { socket, answer } = begin(`${service.coreUrl}/api/v1/payroll/reports`, {}, 10 * MIB)
    expect(await answer).toMatch(/^HTTP\/1\.1 401 /)
    socket.destroy()
  })
})

describe('a body of too many values', () => {
  const values = `${'1,'.repeat(2_000_000)}1`

  it('is 413 on the core API', async () => {
    const answer = await send(`${service.coreUrl}/api/v1/payroll/reports`, {
      method: 'POST',
      headers: seeded.clientHeaders,
      body: `{"employees":[${values}]}`,
    })
    expect(answer.status).toBe(413)
    expect(answer.body).toEqual(
      expect.objectContaining({
        error: 'Payload too large',
        message: 'The body holds more than 2000000 values',
      }),
    )
  })

  // both hosts count in the same way
  it('is 413 on the tool server', { tags: 'long' }, async () => {
    const answer = await sendRpc(service, seeded.apiKey, `{"jsonrpc":"2.0","id":1,"params":[${values}]}`)
    expect(answer.status).toBe(413)
    expect(answer.body).toMatchObject({ error: { code: -32600 }, id: null })
  })
})

describe('a dry run of many bad rows', () => {
  it('names every one of them, and no more than fifty valid values each', async () => {
    const rows = Array.from({ length: 6000 }, (_, index) => payrollRow({ class_code: `${index % 7}X` }))
    const answer = await sendRpc(service, seeded.apiKey, {
      jsonrpc: '2.0',
      id: 'long',
      method: 'tools/call',
      params: {
        name: 'validate_payroll_submission',
        arguments: { employer_id: seeded.employerId, policy_id: seeded.policyId, rows },
      },
    })
    // it goes out while it is made
    expect(answer.headers.get('transfer-encoding')).toBe('chunked')
    expect(answer.body.id).toBe('long')
    const { validation, row_count } = JSON.parse(answer.body.result.content[0].text)
    expect(row_count).toBe(6000)
    expect(validation.error_count).toBe(6000)
    expect(validation.errors.map(({ row }: { row: number }) => row)).toEqual(
      rows.map((_, index) => index + 1),
    )
    const listed = Array.from({ length: 50 }, (_, index) => 1000 + index).join(', ')
    expect(validation.errors[8]).toEqual({
      row: 9,
      field: 'class_code',
      message: `unknown class code "1X"; valid values: ${listed} and 70 more (get_expected_fields lists all)`,
    })
  })

  it('leaves the whole list to get_expected_fields', async () => {
    const { result } = await callTool(service, seeded.apiKey, 'get_expected_fields', {
      employer_id: seeded.employerId,
      policy_id: seeded.policyId,
    })
    const { required } = result.policies[0].fields
    const field = required.find(({ name }: { name: string }) => name === 'class_code')
    expect(field.valid_values).toHaveLength(120)
  })
})
