// @module-tag long: process-manager-slots has ten silent receivers
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../infrastructure/clock/system-clock.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'
import { localSender, newId, WebhookBench } from '../../support/webhooks.ts'
import { openWorkbench, until, type Workbench } from '../../support/workbench.ts'

let bench: Workbench
let webhooks: WebhookBench
let receiver: Receiver
let silent: Awaited<ReturnType<typeof silentServers>>

beforeEach(async () => {
  bench = await openWorkbench(undefined, { clock: systemClock })
  webhooks = new WebhookBench(bench)
  receiver = await startReceiver()
  silent = await silentServers(20)
})
afterEach(async () => {
  silent.stop()
  await bench.close()
  await receiver.stop()
})

/** Servers that take connections and never say a word, until they hang up. */
async function silentServers(count: number) {
  const sockets = new Set<Socket>()
  let connections = 0
  let ended = 0
  let isOver = false
  const hangUp = () => {
    isOver = true
    for (const socket of sockets) socket.destroy()
  }
  const servers: Server[] = []
  for (let n = 0; n < count; n += 1) {
    const server = createServer((socket) => {
      connections += 1
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        ended += 1
        sockets.delete(socket)
      })
      socket.resume()
      if (isOver) socket.destroy()
    })
    await new Promise<void>((resolve) =>
      server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve),
    )
    servers.push(server)
  }
  return {
    urls: servers.map((server) => `https://127.0.0.1:${(server.address() as AddressInfo).port}`),
    connections: () => connections,
    /** Connections that are over: nobody waits for an answer there any more. */
    ended: () => ended,
    hangUp,
    stop() {
      hangUp()
      for (const server of servers) server.close()
    },
  }
}

describe('a thousand receivers that are silent', () => {
  test('hold up the first attempts of nobody else: these come while not one of them is given up', async () => {
    // a tenant has a hundred at the most; each of these has something of its own to be sent, and more behind it
    const dead = Array.from({ length: 10 }, newId)
    await Promise.all(
      dead.map(async (tenantId) => {
        for (let n = 0; n < 100; n += 1) {
          await webhooks.subscribe(`${silent.urls[n % silent.urls.length]}/${tenantId}/${n}`, { tenantId })
        }
      }),
    )
    await webhooks.subscribe(receiver.url)
    // longer than the test needs, less than the time that a piece of work has
    await webhooks.deliver(localSender({ attemptMs: 55_000 }))
    for (const tenantId of dead) for (let n = 0; n < 3; n += 1) await webhooks.raise({ tenantId })
    await until(() => silent.connections() >= 1_000)
    // what waited for one of them would come only after that one was given up
    let delivered = 0
    for (let n = 0; n < 40 && silent.ended() === 0; n += 1) {
      const eventId = await webhooks.raise()
      await receiver.next(({ headers }) => headers['x-webhook-id'] === eventId)
      if (silent.ended() === 0) delivered += 1
    }
    expect(delivered).toBeGreaterThan(0)
    silent.hangUp()
    // and nothing is held against those who come late: all are tried
    await until(() => silent.connections() >= 3_000)
  })
})
