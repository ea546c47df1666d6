import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Nats } from '../../../infrastructure/messaging/nats/connection.ts'
import { NatsNotices } from '../../../infrastructure/messaging/nats/notices.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../../support/nats.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { until } from '../../support/workbench.ts'
import { noticesContract } from './notices.contract.ts'

deadlinesOfTheProduct()

const SILENT = { info: () => undefined, warn: () => undefined }

async function openPair(server: NatsServer) {
  const connections = await Promise.all([1, 2].map(() => Nats.open([server.url], SILENT)))
  const [here, there] = connections.map((connection) => new NatsNotices(connection)) as [
    NatsNotices,
    NatsNotices,
  ]
  return {
    here,
    there,
    connections,
    async close() {
      here.close()
      there.close()
      await Promise.all(connections.map((connection) => connection.close()))
    },
  }
}

describe.skipIf(natsSource === null)('with a NATS server', () => {
  noticesContract('between processes', async () => {
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

describe.skipIf(!natsCanBeKilled)('when the NATS server is killed', () => {
  let server: NatsServer
  let pair: Awaited<ReturnType<typeof openPair>>
  beforeAll(async () => {
    server = await startNats()
    pair = await openPair(server)
  })
  afterAll(async () => {
    await pair?.close()
    await server?.stop()
  })

  test('notices go on inside the process, nothing throws, and everybody looks when it is back', async () => {
    await server.own!.kill()
    await until(() => pair.connections.every(({ connected }) => !connected))
    let here = 0
    let there = 0
    pair.here.onWake('work', () => {
      here += 1
    })
    pair.there.onWake('work', () => {
      there += 1
    })
    pair.here.wake('work')
    expect([here, there]).toEqual([1, 0])
    await server.own!.restart()
    await until(() => pair.connections.every(({ connected }) => connected))
    // without anybody telling anything again
    await until(() => here >= 2 && there >= 1)
    // a notice may be lost while subscriptions are made again
    await until(() => {
      pair.here.wake('work')
      return there >= 2
    })
  })
})
