import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OfferedWork } from '../../application/ports/work-queue.ts'
import { Nats } from '../../infrastructure/messaging/nats/connection.ts'
import { JetStreamWorkQueue } from '../../infrastructure/messaging/nats/work-queue.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../support/nats.ts'
import { until } from '../support/workbench.ts'
import { pieces, workQueueContract } from './work-queue.contract.ts'

const SILENT = { info: () => undefined, warn: () => undefined }

async function openPair(server: NatsServer) {
  const connections = await Promise.all([1, 2].map(() => Nats.open([server.url], SILENT)))
  const [here, there] = connections.map((nats) => new JetStreamWorkQueue(nats)) as [
    JetStreamWorkQueue,
    JetStreamWorkQueue,
  ]
  return {
    ...{ here, there, connections },
    async close() {
      await Promise.all(connections.map((connection) => connection.close()))
    },
  }
}

describe.skipIf(natsSource === null)('with a NATS server', () => {
  workQueueContract('between processes', async () => {
    const server = await startNats()
    const pair = await openPair(server)
    return {
      ...pair,
      async close() {
        await pair.close()
        await server.stop()
      },
    }
  })
})

describe.skipIf(!natsCanBeKilled)('with a NATS server of its own', () => {
  let server: NatsServer
  let pair: Awaited<ReturnType<typeof openPair>>
  const never = new AbortController().signal
  beforeAll(async () => {
    server = await startNats()
    pair = await openPair(server)
  })
  afterAll(async () => {
    await pair?.close()
    await server?.stop()
  })

  test('the same version of a piece is offered once, a later one again', async () => {
    const [piece] = pieces(1)
    for (let n = 0; n < 3; n += 1) expect(await pair.here.offer([piece!])).toBe(true)
    expect(await pair.there.offer([piece!, { ...piece!, version: 'later' }])).toBe(true)
    expect(await pair.here.depth()).toEqual({ waiting: 2, taken: 0, redelivered: 0 })
    const first = (await pair.here.next(never))!
    expect(first.work.version).toBe(piece!.version)
    expect(await pair.here.depth()).toEqual({ waiting: 1, taken: 1, redelivered: 0 })
    const second = (await pair.there.next(never))!
    expect(second.work.version).toBe('later')
    for (const offer of [first, second]) offer.acknowledge()
    await until(async () => (await pair.here.depth()).taken === 0)
  })

  test('who asks for one piece at a time keeps none back from others', async () => {
    const offered = pieces(40)
    await pair.here.offer(offered)
    const taken: string[] = []
    // one each in turn: pieces that one of them held in store would be missing for the other
    for (let n = 0; n < offered.length / 2; n += 1) {
      const both = (await Promise.all([pair.here.next(never), pair.there.next(never)])).map((offer) => offer!)
      for (const { work } of both) taken.push(work.key)
      for (const offer of both) offer.acknowledge()
    }
    expect(taken.sort()).toEqual(offered.map(({ key }) => key).sort())
  })

  test('without the server offers are refused at once, and waiting goes on', async () => {
    const [lost, kept] = pieces(2)
    const next = pair.there.next(never)
    await server.own!.kill()
    await until(() => pair.connections.every(({ connected }) => !connected))
    expect(await pair.here.offer([lost!])).toBe(false)
    await server.own!.restart()
    await until(() => pair.connections.every(({ connected }) => connected))
    await until(() => pair.here.offer([kept!]))
    const offer = (await next)!
    offer.acknowledge()
    if (offer.work.key !== kept!.key) await arrives(kept!)
  })

  /** A killed server may have lost what was acknowledged last, and brings that again. @returns what came before. */
  async function arrives(wanted: OfferedWork): Promise<readonly OfferedWork[]> {
    const others: OfferedWork[] = []
    for (;;) {
      const offer = (await pair.there.next(never))!
      offer.acknowledge()
      if (offer.work.key === wanted.key) return others
      others.push(offer.work)
    }
  }

  test('offers outlive a restart of the server; a server that was emptied takes new ones', async () => {
    const [outlives, forgotten, fresh] = pieces(3)
    const restart = async (emptied: boolean) => {
      await server.own!.restart({ emptied })
      await until(() => pair.connections.every(({ connected }) => connected))
    }
    expect(await pair.here.offer([outlives!])).toBe(true)
    await restart(false)
    await arrives(outlives!)
    expect(await pair.here.offer([forgotten!])).toBe(true)
    await restart(true)
    const arrived = arrives(fresh!)
    await until(() => pair.here.offer([fresh!]))
    expect(await arrived).not.toContainEqual(forgotten)
  })
})
