import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sendJson } from '../../../interfaces/http/answers.ts'
import { crossOrigin } from '../../../interfaces/http/cors.ts'
import { HttpError } from '../../../interfaces/http/errors.ts'
import { OriginCheck } from '../../../interfaces/http/host-check.ts'
import type { Listener } from '../../../interfaces/http/server.ts'
import { listenWith } from '../../support/http-hosts.ts'

const APP = 'https://app.example.com'

let host: Listener
let failures = 0

beforeAll(async () => {
  const check = new OriginCheck('127.0.0.1', 'https://tools.example.com', [APP])
  host = await listenWith({
    routes: [
      {
        method: 'POST',
        path: '/mcp',
        handle(request, response) {
          const { 'x-fail': wanted } = request.headers
          if (wanted === '500') throw new Error('unexpected')
          if (wanted)
            throw new HttpError(Number(wanted), null, 'as wanted', { headers: { 'Retry-After': '1' } })
          sendJson(response, 200, {})
        },
      },
      { method: 'POST', path: '/other', handle: (_request, response) => sendJson(response, 200, {}) },
    ],
    guards: [{ path: '/mcp', guard: crossOrigin(check) }],
    onFailure: () => {
      failures += 1
    },
  })
})
afterAll(() => host.close({ idleMs: 0 }))

/** A request with headers that fetch does not let a caller set. */
function send(
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${host.url}${path}`, { method, headers }, (answer) => {
      let text = ''
      answer.on('data', (part) => {
        text += part
      })
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, text }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

const preflight = (origin: string, more: Record<string, string> = {}) =>
  send('OPTIONS', '/mcp', { Origin: origin, 'Access-Control-Request-Method': 'POST', ...more })

const permissions = (headers: IncomingHttpHeaders) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'))

const words = (value: unknown) => String(value).toLowerCase().split(', ').sort()

describe('a page of an allowed origin', () => {
  it.each([APP, 'https://tools.example.com', 'http://localhost:5173'])(
    'of %s gets leave to call',
    async (origin) => {
      const { status, headers, text } = await preflight(origin, {
        'Access-Control-Request-Headers': 'authorization,content-type,mcp-protocol-version',
      })
      expect([status, text]).toEqual([204, ''])
      expect(headers['access-control-allow-origin']).toBe(origin)
      expect(headers.vary).toBe('Origin')
      expect(words(headers['access-control-allow-methods'])).toContain('post')
      expect(words(headers['access-control-allow-headers'])).toEqual(
        [
          ...['accept', 'authorization', 'content-type', 'idempotency-key', 'last-event-id'],
          ...['mcp-method', 'mcp-name', 'mcp-protocol-version', 'mcp-session-id', 'x-request-id'],
        ].sort(),
      )
      expect(Number(headers['access-control-max-age'])).toBeGreaterThan(0)
      expect(headers).not.toHaveProperty('access-control-allow-credentials')
      expect(headers).not.toHaveProperty('access-control-allow-private-network')
    },
  )

  it('gets leave to reach a private network when its browser asks for it', async () => {
    const { headers } = await preflight(APP, { 'Access-Control-Request-Private-Network': 'true' })
    expect(headers['access-control-allow-private-network']).toBe('true')
  })

  it.each(['', '400', '401', '413', '429', '500', '503'])(
    'reads an answer, and a refusal %s too',
    async (wanted) => {
      const { status, headers } = await send('POST', '/mcp', {
        Origin: APP,
        ...(wanted ? { 'X-Fail': wanted } : {}),
      })
      expect(status).toBe(Number(wanted || 200))
      expect(headers['access-control-allow-origin']).toBe(APP)
      expect(words(headers['access-control-expose-headers'])).toEqual([
        'idempotent-replayed',
        'ratelimit',
        'ratelimit-policy',
        'retry-after',
        'www-authenticate',
        'x-request-id',
      ])
      expect(headers.vary).toBe('Origin')
    },
  )

  it('reads that there is no such method', async () => {
    const { status, headers } = await send('GET', '/mcp', { Origin: APP })
    expect([status, headers['access-control-allow-origin']]).toEqual([405, APP])
  })

  it('gets no leave beyond the guarded path', async () => {
    const { status, headers } = await send('POST', '/other', { Origin: APP })
    expect([status, permissions(headers)]).toEqual([200, []])
  })
})

describe('a page of another origin', () => {
  it.each(['https://evil.example', 'null', `${APP}.evil.example`, 'http://app.example.com'])(
    'of %s gets nothing',
    async (origin) => {
      for (const answer of [await preflight(origin), await send('POST', '/mcp', { Origin: origin })]) {
        expect([answer.status, permissions(answer.headers)]).toEqual([403, []])
        expect(answer.headers.vary).toBe('Origin')
      }
    },
  )

  it('gets nothing under a foreign host name', async () => {
    const { status, headers } = await preflight(APP, { Host: 'evil.example' })
    expect([status, permissions(headers)]).toEqual([403, []])
  })
})

describe('what is no page', () => {
  it('gets no permissions, for it needs none', async () => {
    const { status, headers } = await send('POST', '/mcp', {})
    expect([status, permissions(headers), headers.vary]).toEqual([200, [], 'Origin'])
  })

  it('is told that there is no method OPTIONS', async () => {
    const { status, headers } = await send('OPTIONS', '/mcp', {})
    expect([status, headers.allow]).toEqual([405, 'POST'])
  })
})

it('tells only of what failed as a failure', () => {
  expect(failures).toBe(1)
})
