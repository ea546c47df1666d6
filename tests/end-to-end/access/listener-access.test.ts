import { get, request as httpRequest, type OutgoingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { untilRefused } from '../../support/rate-limits.ts'
import { askOperator, operate, send } from '../../support/seed.ts'
import {
  type RunningService,
  type ServiceAddresses,
  type SharedService,
  sharedService,
  startService,
} from '../../support/service.ts'

let service: SharedService
/** Limits on; probes from nowhere near; the machine's clock. */
let strict: RunningService

beforeAll(async () => {
  service = await sharedService()
  strict = await startService({
    env: { RATE_LIMIT_RPS: '5', PROBE_ALLOW_CIDRS: '10.0.0.0/8', CLOCK: 'system' },
  })
})
afterAll(async () => {
  await strict?.stop()
})

const PROBES = ['/healthz', '/readyz', '/metrics']
const authorized = ({ operatorToken }: ServiceAddresses) => ({ Authorization: `Bearer ${operatorToken}` })

/** Status of a request with headers that fetch does not let a caller set. */
function statusOf(url: string, headers: OutgoingHttpHeaders): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, (answer) => {
      answer.resume()
      resolve(answer.statusCode!)
    }).on('error', reject)
  })
}

describe('the operator listener on a loopback address', () => {
  it('answers nobody under a foreign host name or from a foreign page, with the token either', async () => {
    for (const path of [...PROBES, '/ops/v1/clock', '/nothing']) {
      for (const foreign of [{ Host: 'evil.example' }, { Origin: 'https://evil.example' }]) {
        expect([
          path,
          await statusOf(`${service.opsUrl}${path}`, { ...authorized(service), ...foreign }),
        ]).toEqual([path, 403])
      }
    }
    const { port } = new URL(service.opsUrl)
    for (const own of [`localhost:${port}`, `127.0.0.1:${port}`]) {
      expect(await statusOf(`${service.opsUrl}/healthz`, { Host: own })).toBe(200)
    }
  })
})

describe('the operator of a service with the clock of the machine', () => {
  it('can move neither the clock nor inject faults', async () => {
    expect(await operate(strict, 'GET', '/clock')).toMatchObject({ kind: 'system' })
    for (const [path, what] of [
      ['/clock/advance', { seconds: 1 }],
      ['/faults', { point: 'pipeline', mode: 'hold' }],
    ] as const) {
      const { status, body } = await askOperator(strict, 'POST', path, what)
      expect([path, status, body.error]).toEqual([path, 409, 'Conflict'])
    }
  })
})

describe('probes and metrics', () => {
  it('answer an address outside of PROBE_ALLOW_CIDRS only with the operator token', async () => {
    for (const path of PROBES) {
      const refused = await send(`${strict.opsUrl}${path}`)
      expect([path, refused.status, refused.body]).toEqual([
        path,
        403,
        expect.objectContaining({
          ok: false,
          error: 'Forbidden',
          message: expect.stringContaining('PROBE_ALLOW_CIDRS'),
        }),
      ])
      expect((await send(`${strict.opsUrl}${path}`, { headers: authorized(strict) })).status).toBe(200)
    }
  })

  it('are not limited', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 100 }, () => send(`${strict.opsUrl}/healthz`, { headers: authorized(strict) })),
    )
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]))
  })
})

describe('unknown paths and methods', () => {
  // rate-limits refuses an address that presents no valid key
  it('are refused from an address that asks for many, in the error body of each host', {
    tags: 'long',
  }, async () => {
    const bodies: Record<string, unknown> = {}
    for (const [host, url] of Object.entries({
      mcp: strict.mcpUrl,
      core: strict.coreUrl,
      payments: strict.paymentsUrl,
      portal: strict.portalUrl,
      ops: strict.opsUrl,
    })) {
      const answers = await untilRefused((n) => send(`${url}/nothing-${n}`))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404, 429]))
      const limited = answers.find(({ status }) => status === 429)
      expect([host, Number(limited?.headers.get('retry-after'))]).toEqual([host, 1])
      bodies[host] = limited?.body ?? limited?.text
    }
    const core = expect.objectContaining({ error: 'Too many requests', message: expect.any(String) })
    const envelope = expect.objectContaining({
      ok: false,
      error: 'Too Many Requests',
      message: expect.any(String),
    })
    expect(bodies).toEqual({
      mcp: core,
      core,
      payments: envelope,
      ops: envelope,
      portal: expect.stringContaining('<h1>Too many requests</h1>'),
    })
    const answers = await Promise.all(Array.from({ length: 200 }, () => send(`${strict.mcpUrl}/mcp`)))
    const limited = answers.find(({ status }) => status === 429)
    expect(limited?.body).toMatchObject({ error: { code: -32000, data: { retry_after: 1 } } })
  })
})

describe('a failed log-in of an operator', () => {
  it.each([
    ['ops', '/ops/v1/clock'],
    ['mcp', '/api/v1/agents'],
  ] as const)('stands in the log, without what was presented (%s)', async (host, path) => {
    const url = host === 'ops' ? service.opsUrl : service.mcpUrl
    const token = `wrong-${host}-token-0123456789`
    const headers = { Authorization: `Bearer ${token}`, 'X-Request-Id': `log-in-${host}` }
    expect((await send(`${url}${path}`, { headers })).status).toBe(401)
    const find = async () => (await service.output()).find((line) => line.includes(`log-in-${host}`))
    await expect.poll(find).toBeDefined()
    expect(JSON.parse((await find())!)).toMatchObject({
      level: 'warn',
      event: 'operator log-in refused',
      interface: host,
      request_id: `log-in-${host}`,
      caller: '127.0.0.1',
      reason: 'wrong token',
    })
    expect((await service.output()).join('\n')).not.toContain(token)
  })
})

it('refuses a foreign host name in the words of the tool server also where the request line holds an address', async () => {
  const { hostname, port } = new URL(service.mcpUrl)
  const text = await new Promise<string>((resolve, reject) => {
    const path = `${service.mcpUrl}/mcp`
    const headers = { Host: 'rebound.example' }
    const sent = httpRequest({ hostname, port, method: 'POST', path, headers }, async (answer) => {
      let received = ''
      for await (const part of answer) received += part
      resolve(received)
    })
    sent.on('error', reject)
    sent.end()
  })
  expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 }, id: null })
})
