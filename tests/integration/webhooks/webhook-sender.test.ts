// @module-tag once: its subject is the same whatever holds the log
import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WebhookRequest } from '../../../application/ports/webhooks.ts'
import { HttpsWebhookSender } from '../../../infrastructure/webhooks/sender.ts'
import { TargetGuard } from '../../../infrastructure/webhooks/target-guard.ts'
import {
  faultyCertificate,
  serverCertificate,
  strangersCertificate,
  unchainedCertificate,
} from '../../support/certificates.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'
import { authority, localSender, newId } from '../../support/webhooks.ts'

let receiver: Receiver
const closers: (() => Promise<unknown>)[] = []
const sender = localSender()
const HERE = ['127.0.0.1']
const unstopped = new AbortController().signal
const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

beforeEach(async () => {
  receiver = await startReceiver()
  closers.push(() => receiver.stop())
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

function wanted(change: Partial<WebhookRequest> = {}): WebhookRequest {
  return {
    url: receiver.url,
    secret,
    eventId: newId(),
    eventType: 'payment.completed',
    timestamp: Date.now(),
    body: JSON.stringify({ amount_cents: 12_345, name: 'Zoë — “ok” 😀\u2028' }),
    ...change,
  }
}

/** A server that does with a connection what it is told. */
async function tls(serve: (socket: Socket) => void): Promise<string> {
  return listen(createTlsServer(serverCertificate(['127.0.0.1']), serve))
}

async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a delivery', () => {
  test('is signed over its exact bytes, in the documented way and in that of Standard Webhooks', async () => {
    const request = wanted()
    expect(await sender.post(request, unstopped)).toEqual({ statusCode: 200, error: null })
    const { method, headers, body } = await receiver.next()
    expect(method).toBe('POST')
    expect(body).toEqual(Buffer.from(request.body))
    const signature = createHmac('sha256', secret).update(`${request.timestamp}.`).update(body).digest('hex')
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-webhook-signature': signature,
      'x-webhook-timestamp': String(request.timestamp),
      'x-webhook-event': 'payment.completed',
      'x-webhook-id': request.eventId,
      'webhook-id': request.eventId,
    })
    expect(new Webhook(secret).verify(body.toString(), headers as never)).toEqual(JSON.parse(request.body))
    expect(() => new Webhook(secret).verify(`${body} `, headers as never)).toThrow()
  })

  test('keeps its connection for the next one', async () => {
    for (let n = 0; n < 3; n += 1) await sender.post(wanted(), unstopped)
    expect(receiver.connections()).toBe(1)
  })

  test('takes up the TLS session of the one before on a new connection', async () => {
    const resumed: boolean[] = []
    const url = await listen(
      createTlsServer(serverCertificate(['127.0.0.1']), (socket) => {
        resumed.push(socket.isSessionReused())
        socket.once('data', () =>
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'),
        )
      }),
    )
    for (let n = 0; n < 3; n += 1) {
      expect(await sender.post(wanted({ url }), unstopped)).toEqual({ statusCode: 200, error: null })
    }
    expect(resumed).toEqual([false, true, true])
  })

  test('every 2xx is accepted, and nothing else; redirects are not followed', async () => {
    const answers = [200, 201, 202, 204, 299, 300, 302, 307, 308, 400, 410, 429, 500, 503]
    receiver.answerWith(({ path }) => ({
      status: Number(path.slice(1)),
      headers: { Location: `${receiver.url}/200`, Upgrade: 'x' },
    }))
    for (const status of answers) {
      const answer = await sender.post(wanted({ url: `${receiver.url}/${status}` }), unstopped)
      const error = status < 300 ? null : `The address answered ${status}`
      expect(answer).toEqual({ statusCode: status, error })
    }
    expect(receiver.requests).toHaveLength(answers.length)
  })

  test('a connection that is closed instead of an answer is one attempt, also when it was kept', async () => {
    await sender.post(wanted(), unstopped)
    receiver.answerWith('reset')
    expect(await sender.post(wanted(), unstopped)).toEqual({
      statusCode: null,
      error: 'The connection was closed before an answer came',
    })
    expect(receiver.requests).toHaveLength(2)
  })
})

describe('receivers that hold on', () => {
  /** In milliseconds; the time that receivers have where nobody says otherwise takes as long as it is. */
  for (const attemptMs of [1_000, undefined]) {
    const within = `${attemptMs === undefined ? 10 : attemptMs / 1_000} seconds`
    const tags = attemptMs === undefined ? ['long'] : []
    test(`are given ${within} in all, wherever they fall silent; an answer counts by its status then`, {
      tags,
    }, async () => {
      const patient = localSender(attemptMs === undefined ? {} : { attemptMs })
      const tooLate = { statusCode: null, error: `No answer came within ${within}` }
      receiver.answerWith('silent')
      const untilTls = await listen(createServer(() => undefined))
      const untilHeaders = await tls((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-'))
      const drippingAfter = (status: string) =>
        tls((socket) => {
          socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 100\r\n\r\n`)
          const drip = setInterval(() => socket.write('.'), 200)
          socket.on('close', () => clearInterval(drip))
        })
      const accepting = await drippingAfter('200 OK')
      const refusing = await drippingAfter('500 Internal Server Error')
      const hints = await tls((socket) => {
        const hint = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 200)
        socket.on('close', () => clearInterval(hint))
      })
      const started = performance.now()
      const answers = await Promise.all(
        [receiver.url, untilTls, untilHeaders, hints, accepting, refusing].map((url) =>
          patient.post(wanted({ url }), unstopped),
        ),
      )
      expect(answers).toEqual([
        ...[tooLate, tooLate, tooLate, tooLate],
        { statusCode: 200, error: null },
        { statusCode: 500, error: 'The address answered 500' },
      ])
      expect(performance.now() - started).toBeGreaterThan(0.99 * (attemptMs ?? 10_000))
    })
  }

  test('an endless answer is read no further than 20 KiB, and counts by its status', async () => {
    let closed = 0
    const endless = await tls((socket) => {
      socket.on('close', () => {
        closed += 1
      })
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      const more = () => {
        while (!socket.destroyed && socket.write(`400\r\n${'x'.repeat(1024)}\r\n`));
      }
      socket.on('drain', more)
      more()
    })
    expect(await sender.post(wanted({ url: endless }), unstopped)).toEqual({ statusCode: 200, error: null })
    await expect.poll(() => closed).toBe(1)
  })

  test('what never comes to an answer, or wraps one in ever more bytes, is not read on for ever', async () => {
    const floods: Readonly<Record<string, readonly [string, string]>> = {
      'interim answers': ['', 'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n'],
      'empty lines': ['', '\r\n'],
      'extensions of chunks': [
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
        `1;${'x'.repeat(1000)}\r\nx\r\n`,
      ],
    }
    for (const [kind, [beginning, repeated]] of Object.entries(floods)) {
      const bytes = (beginning === '' ? 16 : 64) * 1024
      const part = repeated.repeat(Math.ceil(bytes / repeated.length))
      const url = await tls((socket) => {
        socket.once('data', () => socket.write(beginning + part))
      })
      const answer = await sender.post(wanted({ url }), unstopped)
      const expected = beginning === '' ? [null, 'The answer is too long'] : [200, null]
      expect([kind, answer.statusCode, answer.error]).toEqual([kind, ...expected])
    }
  })

  test('an answer that breaks off is none', async () => {
    const url = await tls((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'))
    expect(await sender.post(wanted({ url }), unstopped)).toEqual({
      statusCode: 200,
      error: 'The connection was closed before an answer came',
    })
    const noise = await tls((socket) => socket.end('hello\r\n\r\n'))
    expect((await sender.post(wanted({ url: noise }), unstopped)).error).toBe('The answer is no HTTP')
  })

  test('who stops waiting has its own reason back', async () => {
    receiver.answerWith('silent')
    const stopping = new AbortController()
    const posting = sender.post(wanted(), stopping.signal)
    await receiver.next()
    stopping.abort(new Error('enough'))
    await expect(posting).rejects.toThrow('enough')
  })
})

describe('targets', () => {
  test.for([
    [strangersCertificate(HERE), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [serverCertificate(['elsewhere.example']), 'ERR_TLS_CERT_ALTNAME_INVALID'],
    [unchainedCertificate(HERE), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    [faultyCertificate(HERE, { years: [2020, 2021] }), 'CERT_HAS_EXPIRED'],
    [faultyCertificate(HERE, { years: [2100, 2120] }), 'CERT_NOT_YET_VALID'],
    [
      faultyCertificate(HERE, { key: generateKeyPairSync('rsa', { modulusLength: 768 }) }),
      'EE certificate key too weak',
    ],
  ] as const)('a certificate is refused with what is wrong with it: $1', async ([certificate, fault]) => {
    const url = await listen(createTlsServer({ ...certificate, ciphers: 'DEFAULT@SECLEVEL=0' }))
    expect(await sender.post(wanted({ url }), unstopped)).toEqual({
      statusCode: null,
      error: `The certificate is not accepted (${fault})`,
    })
  })

  test('what is no TLS, or wants a certificate of its caller, is not taken for a certificate at fault', async () => {
    const mutual = { ...serverCertificate(HERE), requestCert: true, ca: authority() }
    const wanting = await listen(createTlsServer(mutual))
    expect((await sender.post(wanted({ url: wanting }), unstopped)).error).toBe('TLS could not be agreed on')
    const plain = await listen(createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')))
    expect((await sender.post(wanted({ url: plain }), unstopped)).error).toBe('TLS could not be agreed on')
  })

  test('are checked at every new connection, whatever was registered', async () => {
    const strict = new HttpsWebhookSender({ allowedRanges: [], extraCa: authority() })
    expect(await strict.refuse(receiver.url)).toMatchObject({ kind: 'invalid', field: 'url' })
    const refused = { statusCode: null, error: 'Its host has an address that is not public' }
    expect(await strict.post(wanted(), unstopped)).toEqual(refused)
    const port = new URL(receiver.url).port
    expect(await strict.post(wanted({ url: `https://localhost:${port}` }), unstopped)).toEqual(refused)
    expect(await strict.post(wanted({ url: 'http://example.com/' }), unstopped)).toMatchObject({
      error: 'The url must begin with https://',
    })
    expect(receiver.connections()).toBe(0)
  })

  test('a host is dialled at the address that was checked, and found anew for the next connection', async () => {
    const { port } = new URL(receiver.url)
    const answers = [['127.0.0.1'], ['10.0.0.1']]
    const guard = new TargetGuard([{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }], {
      addressesOf: async () => answers.shift()!,
    })
    const rebound = new HttpsWebhookSender({ allowedRanges: [], extraCa: authority(), guard })
    const named = await startReceiver({ certificate: serverCertificate(['hooks.example']), port: 0 })
    closers.push(() => named.stop())
    const url = `https://hooks.example:${new URL(named.url).port}/a`
    // a kept connection belongs to the address that was checked for it
    expect(await rebound.post(wanted({ url }), unstopped)).toEqual({ statusCode: 200, error: null })
    expect(await rebound.post(wanted({ url }), unstopped)).toEqual({ statusCode: 200, error: null })
    expect(named.connections()).toBe(1)
    expect(await rebound.post(wanted({ url: `https://hooks.example:${port}/` }), unstopped)).toEqual({
      statusCode: null,
      error: 'Its host has an address that is not public',
    })
  })

  test('registration says what is wrong with an address', async () => {
    expect(await sender.refuse(receiver.url)).toBeNull()
    expect(await sender.refuse('http://example.com')).toMatchObject({
      message: 'url must begin with https://',
      field: 'url',
    })
    expect(await sender.refuse('https://10.0.0.1/')).toMatchObject({
      message: 'url cannot be a target: Its host has an address that is not public',
    })
  })
})
