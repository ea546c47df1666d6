import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { sendJson } from '../../../interfaces/http/answers.ts'
import type { Listener, Route } from '../../../interfaces/http/server.ts'
import { deferred, listenWith } from '../../support/http-hosts.ts'

let listener: Listener
/** Answers `/slow`. */
let release: () => void
/** `/slow` was asked for. */
let entered: Promise<void>
const sockets: Socket[] = []
const quick: Route = {
  method: 'GET',
  path: '/quick',
  handle: (_request, response) => sendJson(response, 200, {}),
}

beforeEach(async () => {
  const [held, entry] = [deferred(), deferred()]
  release = held.resolve
  entered = entry.promise
  listener = await listenWith({
    routes: [
      quick,
      {
        method: 'GET',
        path: '/slow',
        async handle(request, response) {
          if (request.headers['x-begin']) response.write('{')
          entry.resolve()
          await held.promise
          if (request.headers['x-begin']) response.end('}')
          else sendJson(response, 200, {})
        },
      },
    ],
  })
})
afterEach(async () => {
  release()
  for (const socket of sockets.splice(0)) socket.destroy()
  await listener.close({ idleMs: 0 })
})

/** A connection, whatever HTTP libraries make of it. */
async function open() {
  const socket = connect(listener.port, '127.0.0.1')
  sockets.push(socket)
  let received = ''
  socket.on('data', (part) => {
    received += part
  })
  const ended = new Promise<'closed' | string>((resolve) => {
    socket.once('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? 'error'))
    socket.once('close', () => resolve('closed'))
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  return {
    ended,
    send: (path: string, headers = '') =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`),
    /** Heads of the answers so far. */
    heads: () => received.match(/HTTP\/1\.1 [\s\S]*?\r\n\r\n/g) ?? [],
    received: () => received,
  }
}

it('answers what is sent on idle connections after the stop began, and says that it closes them', async () => {
  const connections = await Promise.all(Array.from({ length: 10 }, open))
  for (const one of connections) one.send('/quick')
  await expect.poll(() => connections.every((one) => one.heads().length === 1)).toBe(true)
  const closed = listener.close()
  for (const one of connections) one.send('/quick')
  expect(await Promise.all(connections.map(({ ended }) => ended))).toEqual(Array(10).fill('closed'))
  for (const one of connections) {
    const [before, after, ...none] = one.heads()
    expect(before).toMatch(/^HTTP\/1\.1 200 [\s\S]*Connection: keep-alive/)
    expect(after).toMatch(/^HTTP\/1\.1 200 [\s\S]*Connection: close/)
    expect(none).toEqual([])
  }
  await closed
})

it('ends a connection with the answer that was under way', async () => {
  const one = await open()
  one.send('/slow')
  await entered
  const closed = listener.close()
  release()
  expect(await one.ended).toBe('closed')
  expect(one.heads()).toEqual([expect.stringMatching(/^HTTP\/1\.1 200 [\s\S]*Connection: close/)])
  await closed
})

it('completes an answer that had begun, and a further request on its connection', async () => {
  const one = await open()
  one.send('/slow', 'X-Begin: 1\r\n')
  await entered
  const closed = listener.close()
  release()
  await expect.poll(() => one.received()).toMatch(/\}\r\n0\r\n\r\n$/)
  one.send('/quick')
  expect(await one.ended).toBe('closed')
  expect(one.heads().at(-1)).toMatch(/^HTTP\/1\.1 200 [\s\S]*Connection: close/)
  await closed
})

it('closes connections on which nothing comes, also those that never brought a request', async () => {
  const used = await open()
  used.send('/quick')
  await expect.poll(() => used.heads().length).toBe(1)
  const unused = await open()
  await listener.close({ idleMs: 20 })
  expect(await Promise.all([used.ended, unused.ended])).toEqual(['closed', 'closed'])
})

it('does not wait where nobody is connected', async () => {
  await listener.close({ idleMs: 600_000, cutMs: 600_000 })
})

it('leaves clients that keep connections no request without an answer, over three restarts under load', async () => {
  const { port } = listener
  const agent = new Agent({ keepAlive: true, maxSockets: 10 })
  const broken: string[] = []
  let answered = 0
  let going = true
  const ask = () =>
    new Promise<void>((resolve) => {
      const request = get({ host: '127.0.0.1', port, path: '/quick', agent }, (answer) => {
        answer.resume().once('end', () => {
          answered += 1
          resolve()
        })
      })
      request.once('error', (error: NodeJS.ErrnoException) => {
        // nobody was there to take the connection
        if (error.code !== 'ECONNREFUSED') broken.push(`${error.code} ${request.reusedSocket}`)
        setImmediate(resolve)
      })
    })
  const clients = Array.from({ length: 10 }, async () => {
    while (going) await ask()
  })
  for (let restart = 0; restart < 3; restart += 1) {
    const before = answered
    await expect.poll(() => answered).toBeGreaterThan(before + 200)
    await listener.close()
    listener = await listenWith({ routes: [quick] }, port)
  }
  const before = answered
  await expect.poll(() => answered).toBeGreaterThan(before + 200)
  going = false
  await Promise.all(clients)
  agent.destroy()
  expect(broken).toEqual([])
})
