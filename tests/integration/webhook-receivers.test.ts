import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../infrastructure/clock/system-clock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { newId, WebhookBench } from '../support/webhooks.ts'
import { openWorkbench, until, type Workbench } from '../support/workbench.ts'

let database: TestDatabase
let bench: Workbench
let webhooks: WebhookBench
let receiver: Receiver
let silent: { readonly urls: readonly string[]; connections(): number; stop(): void }

beforeEach(async () => {
  database = await createTestDatabase()
  bench = await openWorkbench(database.url, { clock: systemClock })
  webhooks = new WebhookBench(bench)
  receiver = await startReceiver()
  silent = await silentServers(20)
})
afterEach(async () => {
  silent.stop()
  await bench.close()
  await receiver.stop()
  await database.drop()
})

/** Servers that take connections and never say a word. */
async function silentServers(count: number) {
  const sockets = new Set<Socket>()
  let connections = 0
  const servers: Server[] = []
  for (let n = 0; n < count; n += 1) {
    const server = createServer((socket) => {
      connections += 1
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.resume()
    })
    await new Promise<void>((resolve) =>
      server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve),
    )
    servers.push(server)
  }
  return {
    urls: servers.map((server) => `https://127.0.0.1:${(server.address() as AddressInfo).port}`),
    connections: () => connections,
    stop() {
      for (const socket of sockets) socket.destroy()
      for (const server of servers) server.close()
    },
  }
}

describe('a thousand receivers that are silent', () => {
  test('delay the first attempts of nobody else by more than a second, while all of them are waited for', async () => {
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
    await webhooks.deliver()
    for (const tenantId of dead) for (let n = 0; n < 3; n += 1) await webhooks.raise({ tenantId })
    await until(() => silent.connections() >= 1_000)
    const delays: number[] = []
    for (let n = 0; n < 40; n += 1) {
      const raisedAt = Date.now()
      const eventId = await webhooks.raise()
      const { at } = await receiver.next(({ headers }) => headers['x-webhook-id'] === eventId)
      delays.push(at - raisedAt)
    }
    expect(Math.max(...delays)).toBeLessThan(1_000)
    // and nothing is held against those who come late: all are tried
    await until(() => silent.connections() >= 3_000)
  })
})
