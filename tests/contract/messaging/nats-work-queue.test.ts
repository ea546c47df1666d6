import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { WorkHint } from '../../../application/ports/work-queue.ts'
import { Nats } from '../../../infrastructure/messaging/nats/connection.ts'
import { JetStreamWorkQueue } from '../../../infrastructure/messaging/nats/work-queue.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../../support/nats.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { until } from '../../support/workbench.ts'
import { hintsAt, workQueueContract } from './work-queue.contract.ts'

deadlinesOfTheProduct()

const SILENT = { info: () => undefined, warn: () => undefined }

async function openPair(server: NatsServer) {
  const connections = await Promise.all([1, 2].map(() => Nats.open([server.url], SILENT)))
  const [here, there] = connections.map((nats) => new JetStreamWorkQueue(nats)) as [
    JetStreamWorkQueue,
    JetStreamWorkQueue,
  ]
  return {
    here,
    there,
    connections,
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

  test('who asks for one hint at a time keeps none back from others', async () => {
    const offered = hintsAt(40)
    await pair.here.offer(offered)
    const taken: string[] = []
    // one each in turn: hints that one of them held in store would be missing for the other
    for (let n = 0; n < offered.length / 2; n += 1) {
      const both = await Promise.all([pair.here.next(never), pair.there.next(never)])
      for (const hint of both) taken.push(hint!.kind)
    }
    expect(taken.sort()).toEqual(offered.map(({ kind }) => kind).sort())
  })

  test('without the server offers are refused at once, and waiting goes on', async () => {
    const [lost, kept] = hintsAt(2)
    const next = pair.there.next(never)
    await server.own!.kill()
    await until(() => pair.connections.every(({ connected }) => !connected))
    expect(await pair.here.offer([lost!])).toBe(false)
    await server.own!.restart()
    await until(() => pair.connections.every(({ connected }) => connected))
    await until(() => pair.here.offer([kept!]))
    const hint = (await next)!
    if (hint.processManager !== kept!.processManager || hint.kind !== kept!.kind) await arrives(kept!)
  })

  /** A killed server may have forgotten what was taken last, and brings that again. @returns what came before. */
  async function arrives(wanted: WorkHint): Promise<readonly WorkHint[]> {
    const others: WorkHint[] = []
    for (;;) {
      const hint = (await pair.there.next(never))!
      if (hint.processManager === wanted.processManager && hint.kind === wanted.kind) return others
      others.push(hint)
    }
  }

  test('hints outlive a restart of the server; a server that was emptied takes new ones', async () => {
    const [outlives, forgotten, fresh] = hintsAt(3)
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
