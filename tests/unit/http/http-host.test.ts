import { once } from 'node:events'
import {
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Admission } from '../../../interfaces/http/admission.ts'
import { sendJson } from '../../../interfaces/http/answers.ts'
import { CallerGone, readBody, requireUtf8, unreadable } from '../../../interfaces/http/body.ts'
import {
  type ErrorWriter,
  HttpError,
  writeCoreError,
  writeEnvelopeError,
} from '../../../interfaces/http/errors.ts'
import { parseLargeJson } from '../../../interfaces/http/json/strict-json.ts'
import { type Listener, listen, queryOf, type Route } from '../../../interfaces/http/server.ts'
import { deferred, listenWith } from '../../support/http-hosts.ts'

const LIMIT = 1024 * 1024

let listener: Listener
let failures: unknown[]
let answered: string[]
let release: () => void
let entered: Promise<void>

beforeEach(async () => {
  failures = []
  answered = []
  const [held, entry] = [deferred(), deferred()]
  release = held.resolve
  entered = entry.promise
  let count = 0
  listener = await listenWith({
    routes: [
      { method: 'GET', path: '/things/:id', handle: (q, r) => sendJson(r, 200, { id: q.params.id }) },
      { method: 'GET', path: '/things/new', handle: (_q, r) => sendJson(r, 200, { form: true }) },
      { method: 'GET', path: '/', handle: (_q, r) => sendJson(r, 200, { root: true }) },
      { method: 'GET', path: '/query', handle: (q, r) => sendJson(r, 200, Object.fromEntries(queryOf(q))) },
      {
        method: 'POST',
        path: '/things',
        async handle(request, response) {
          sendJson(response, 201, await readJson(request))
        },
      },
      {
        method: 'GET',
        path: '/broken',
        handle() {
          throw new Error('secret internals')
        },
      },
      {
        method: 'GET',
        path: '/refused',
        handle() {
          throw new HttpError(409, 'Conflict', 'The reason is so', { headers: { 'X-Why': 'because' } })
        },
      },
      {
        method: 'GET',
        path: '/slow',
        async handle(_request, response) {
          entry.resolve()
          await held.promise
          sendJson(response, 200, { slow: true })
        },
      },
    ],
    newRequestId: () => `generated-${++count}`,
    onFailure: (error) => failures.push(error),
    onAnswer: (method, path, status) => answered.push(`${method} ${path} ${status}`),
  })
})

afterEach(async () => {
  release()
  await listener.close({ idleMs: 0 })
})

async function readJson(request: IncomingMessage): Promise<unknown> {
  requireUtf8(request)
  const parsed = await parseLargeJson(await readBody(request, LIMIT))
  if (!parsed.ok) throw unreadable(parsed, 'Invalid JSON')
  return parsed.value
}

const url = (path: string) => `${listener.url}${path}`
const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
  fetch(url('/things'), { method: 'POST', body, headers: { 'Content-Type': 'application/json', ...headers } })

/** A request of which every byte is under the test's control; resolves with all that came back. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(listener.port, '127.0.0.1', () => socket.write(text))
    let received = ''
    socket.on('data', (part) => {
      received += part
    })
    socket.on('end', () => resolve(received))
    socket.on('error', reject)
  })
}

describe('a host', () => {
  it('answers JSON with a request id and without telling what it runs on', async () => {
    const answer = await fetch(url('/things/7'))
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ id: '7' })
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.headers.get('x-request-id')).toBe('generated-1')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.has('x-powered-by')).toBe(false)
    expect(answer.headers.has('etag')).toBe(false)
  })

  it('keeps a usable request id and replaces any other', async () => {
    const idFor = async (given: string) =>
      (await fetch(url('/things/7'), { headers: { 'X-Request-Id': given } })).headers.get('x-request-id')
    expect(await idFor('my-id.1')).toBe('my-id.1')
    expect(await idFor('x'.repeat(128))).toBe('x'.repeat(128))
    expect(await idFor('x'.repeat(129))).toMatch(/^generated-/)
    expect(await idFor('two words')).toMatch(/^generated-/)
  })

  it('answers 404 for unknown paths and 405 with Allow for other methods, in its own error body', async () => {
    const unknown = await fetch(url('/nothing'))
    expect(unknown.status).toBe(404)
    expect(await unknown.json()).toMatchObject({ error: 'Not found', message: expect.any(String) })
    expect(unknown.headers.get('x-request-id')).toBeTruthy()
    const wrong = await fetch(url('/things'), { method: 'DELETE' })
    expect(wrong.status).toBe(405)
    expect(wrong.headers.get('allow')).toBe('POST')
    expect(await wrong.json()).toMatchObject({ error: 'Method not allowed' })
    expect((await fetch(url('/things/1'), { method: 'PATCH' })).headers.get('allow')).toBe('GET, HEAD')
    expect((await fetch(url('/things/1'), { method: 'HEAD' })).status).toBe(200)
    expect((await fetch(url('/THINGS/1'))).status).toBe(404)
    expect((await fetch(url('/things/%ff'))).status).toBe(400)
  })

  it.each([
    ['/things/a%2Fb%25c', { id: 'a/b%c' }],
    [`/things/${'x'.repeat(2_000)}`, { id: 'x'.repeat(2_000) }],
    ['/things/7/', { id: '7' }],
    ['/things/new', { form: true }],
    ['/things/ne%77', { id: 'new' }],
    ['/%74hings/7', null],
    ['/things/', null],
    ['/things//', null],
    ['/things/7//', null],
    ['//things/7', null],
  ])(
    'takes %s as it was sent, a name before a parameter, in whatever order routes stand',
    async (path, found) => {
      const answer = await fetch(url(path))
      expect(answer.status).toBe(found ? 200 : path === '/things/' ? 405 : 404)
      if (found) expect(await answer.json()).toEqual(found)
    },
  )

  it('takes * for no path, of OPTIONS for the host itself', async () => {
    const ask = (method: string) => raw(`${method} * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(await ask('OPTIONS')).toMatch(/^HTTP\/1.1 204 /)
    expect(await ask('GET')).toMatch(/^HTTP\/1.1 404 /)
  })

  it('hides what went wrong inside, and reports it', async () => {
    const answer = await fetch(url('/broken'))
    expect(answer.status).toBe(500)
    const text = await answer.text()
    expect(JSON.parse(text)).toMatchObject({ error: 'Server error' })
    expect(text).not.toContain('secret internals')
    expect(failures).toMatchObject([{ message: 'secret internals' }])
  })

  it('writes refusals with their headers', async () => {
    const answer = await fetch(url('/refused'))
    expect(answer.status).toBe(409)
    expect(answer.headers.get('x-why')).toBe('because')
    expect(await answer.json()).toMatchObject({ error: 'Conflict', message: 'The reason is so' })
    expect(failures).toEqual([])
  })

  it('tells of every answer by its route, not its address', async () => {
    await (await fetch(url('/things/secret-id'))).text()
    await (await fetch(url('/nothing'))).text()
    await expect.poll(() => answered).toEqual(['GET /things/:id 200', 'GET (none) 404'])
  })

  it('tells of methods and paths that it does not have by words of a small set', async () => {
    const invented = ['PROPFIND', 'MKCOL', 'LOCK', 'M-SEARCH', 'PURGE', 'SUBSCRIBE']
    for (const method of invented) {
      for (const path of ['/things', '/query', `/${method}`])
        await raw(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    }
    await (await fetch(url('/query'), { method: 'DELETE' })).text()
    await expect.poll(() => answered.length).toBe(19)
    expect([...new Set(answered)].sort()).toEqual([
      'DELETE (none) 405',
      'OTHER (none) 404',
      'OTHER (none) 405',
    ])
  })

  it('reads queries on demand', async () => {
    expect(await (await fetch(url('/query?a=1&b=x%20y'))).json()).toEqual({ a: '1', b: 'x y' })
    const repeated = await fetch(url('/query?a=1&b=x&%61=2'))
    expect(repeated.status).toBe(400)
    expect(await repeated.json()).toMatchObject({
      error: 'Bad request',
      message: 'a is given more than once',
    })
  })
})

describe('a host with too much to do', () => {
  it('refuses at once what is no probe, in its own error body, and lets others in', async () => {
    const admission = new Admission()
    const called: string[] = []
    const end = deferred()
    const filling = Array.from({ length: admission.limit }, () =>
      admission.during(
        {} as IncomingMessage,
        { address: '127.0.0.1', credential: 'Bearer busy' },
        () => end.promise,
      ),
    )
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      called.push(request.url!)
      sendJson(response, 200, {})
    }
    const routes: Route[] = [
      { method: 'POST', path: '/work', handle },
      { method: 'GET', path: '/healthz', isProbe: true, handle },
    ]
    const host = await listenWith({ routes, admission, writeError: writeEnvelopeError })
    const ask = (path: string, caller: string) =>
      fetch(`${host.url}${path}`, {
        headers: { Authorization: caller },
        ...(path === '/work' && { method: 'POST', body: 'x'.repeat(100_000) }),
      })
    try {
      const refused = await ask('/work', 'Bearer busy')
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
      expect(await refused.json()).toMatchObject({ ok: false, error: 'Service Unavailable' })
      expect(called).toEqual([])
      expect((await ask('/healthz', 'Bearer busy')).status).toBe(200)
      expect((await ask('/work', 'Bearer other')).status).toBe(200)
      end.resolve()
      await Promise.all(filling)
      expect((await ask('/work', 'Bearer busy')).status).toBe(200)
      expect(called).toEqual(['/healthz', '/work', '/work'])
    } finally {
      await host.close({ idleMs: 0 })
    }
  })
})

describe('a host whose callers send no more', () => {
  it('answers others as before, however many addresses they have', async () => {
    const admission = new Admission()
    let begun = 0
    const form: Route = {
      method: 'POST',
      path: '/form',
      async handle(request, response) {
        begun += 1
        sendJson(response, 200, { bytes: (await readBody(request, LIMIT)).length })
      },
    }
    const host = await listenWith({ routes: [form], admission })
    const silent = Array.from({ length: admission.limit + 20 }, (_, n) => {
      const localAddress = `127.0.${1 + Math.floor(n / 250)}.${1 + (n % 250)}`
      const socket = connect({ host: '127.0.0.1', port: host.port, localAddress })
      socket.on('error', () => undefined)
      socket.write('POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx')
      return socket
    })
    try {
      await expect.poll(() => begun).toBe(silent.length)
      for (let n = 0; n < 5; n += 1) {
        const answer = await fetch(`${host.url}/form`, { method: 'POST', body: 'x'.repeat(n) })
        expect([answer.status, await answer.json()]).toEqual([200, { bytes: n }])
      }
      silent[0]!.write('x'.repeat(99))
      const [answer] = await once(silent[0]!, 'data')
      expect(answer.toString()).toContain('{"bytes":100}')
    } finally {
      for (const socket of silent) socket.destroy()
      await host.close({ idleMs: 0 })
    }
  })
})

describe('the error word', () => {
  const statuses = [400, 404, 405, 413, 415, 429, 500]
  const words = (write: ErrorWriter, special: string | null = null) =>
    statuses.map((status) => {
      let text = ''
      const response = {
        headersSent: false,
        setHeader: () => undefined,
        end: (body: string) => (text = body),
      }
      write(response as never, new HttpError(status, special, 'why'), 'http://host.test/docs/errors#x')
      return JSON.parse(text)
    })

  it('of the envelope is the reason phrase, unless a special one is given', () => {
    expect(words(writeEnvelopeError)).toEqual(
      [
        'Bad Request',
        'Not Found',
        'Method Not Allowed',
        'Payload Too Large',
        'Unsupported Media Type',
        'Too Many Requests',
        'Internal Server Error',
      ].map((error) => expect.objectContaining({ ok: false, error, message: 'why' })),
    )
    expect(words(writeEnvelopeError, 'Unavailable')[0]).toMatchObject({ error: 'Unavailable' })
  })

  it('of the core API is a sentence’s', () => {
    expect(words(writeCoreError)).toEqual(
      [
        'Bad request',
        'Not found',
        'Method not allowed',
        'Payload too large',
        'Unsupported media type',
        'Too many requests',
        'Server error',
      ].map((error) => expect.objectContaining({ error, message: 'why' })),
    )
    expect(words(writeCoreError, 'Employer not found')[0]).toMatchObject({ error: 'Employer not found' })
  })
})

describe('a body', () => {
  it('is read whole, also in many parts', async () => {
    const value = { text: 'é'.repeat(200_000) }
    expect(await (await post(JSON.stringify(value))).json()).toEqual(value)
  })

  it('is refused when it is larger than the limit, announced or not', async () => {
    const large = Buffer.alloc(LIMIT + 1, 0x20)
    const refused = await post(large)
    expect([refused.status, await refused.json()]).toMatchObject([
      ...[413, { message: 'The body is larger than 1 MiB' }],
    ])
    const { status, headers } = await new Promise<{ status?: number; headers: IncomingHttpHeaders }>(
      (resolve, reject) => {
        const chunked = httpRequest(url('/things'), { method: 'POST' }, (answer) => {
          answer.resume()
          resolve({ ...(answer.statusCode ? { status: answer.statusCode } : {}), headers: answer.headers })
        })
        chunked.on('error', reject)
        chunked.write(large)
        chunked.end(large)
      },
    )
    expect(status).toBe(413)
    expect(headers['x-request-id']).toBeTruthy()
    expect((await post(Buffer.concat([Buffer.from('1'), Buffer.alloc(LIMIT - 1, 0x20)]))).status).toBe(201)
  })

  it('is refused compressed or in another charset, whatever its media type', async () => {
    expect((await post(gzipSync('{}'), { 'Content-Encoding': 'gzip' })).status).toBe(415)
    expect((await post('{}', { 'Content-Type': 'text/plain' })).status).toBe(201)
    expect((await post('{}', { 'Content-Type': 'application/json; charset=utf-16' })).status).toBe(415)
    expect((await post('{}', { 'Content-Type': 'application/json; charset=UTF-8' })).status).toBe(201)
    expect((await post('{}', { 'Content-Type': 'application/vnd.api+json' })).status).toBe(201)
  })

  it('that is no JSON is refused with where', async () => {
    const answer = await post('{oops')
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: 'Invalid JSON' })
  })

  it('of a caller that goes away is nobody’s failure', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(listener.port, '127.0.0.1', () => {
        socket.write('POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"a"')
        setImmediate(() => {
          socket.destroy()
          resolve()
        })
      })
    })
    expect((await fetch(url('/things/1'))).status).toBe(200)
    expect(failures).toEqual([])
  })

  it('is not waited for when the caller went away before it was read', async () => {
    const outcome = new Promise<unknown>((resolve) => {
      const app: RequestListener = (request) => {
        request.once('close', () => readBody(request, LIMIT).then(resolve, resolve))
        request.socket.destroy()
      }
      void listen(app, '127.0.0.1', 0).then(async (other) => {
        const socket = connect(other.port, '127.0.0.1', () =>
          socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"a"'),
        )
        await outcome
        await other.close()
      })
    })
    expect(await outcome).toBeInstanceOf(CallerGone)
  })
})

describe('a listener', () => {
  it('lets the answers to pipelined requests go with their connection', async () => {
    const socket = connect(listener.port, '127.0.0.1')
    socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.write('GET /things/1 HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3))
    await entered
    // a request of another connection comes after those three
    await fetch(url('/query'))
    socket.destroy()
    await vi.waitFor(() => expect(answered).toHaveLength(5))
    expect(answered.filter((one) => one.includes('/things/:id'))).toHaveLength(3)
  })

  it('answers what is not HTTP and closes', async () => {
    expect(await raw('NONSENSE\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
    expect(await raw(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    )
  })

  it('takes 32 requests of a connection at a time, and cuts one that sends more', async () => {
    const socket = connect(listener.port, '127.0.0.1')
    socket.on('error', () => {})
    const closed = once(socket, 'close')
    const count = (text: string) => text.split('GET /things/:id 200').length - 1
    let received = ''
    socket.on('data', (part) => {
      received += part
    })
    const ask = (times: number) => socket.write('GET /things/1 HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(times))
    ask(32)
    await vi.waitFor(() => expect(received.split('HTTP/1.1 200')).toHaveLength(33))
    ask(2000)
    await closed
    expect(count(answered.join())).toBeLessThan(100)
  })

  it('finishes requests in flight when it closes, and takes no new ones', async () => {
    const slow = fetch(url('/slow'))
    await entered
    const closed = listener.close()
    await expect(fetch(url('/things/1'))).rejects.toThrow()
    release()
    expect((await slow).status).toBe(200)
    await closed
  })

  it('cuts what does not finish within the grace', async () => {
    const slow = fetch(url('/slow'))
    await entered
    const failed = expect(slow).rejects.toThrow()
    await listener.close({ cutMs: 20 })
    await failed
  })
})
