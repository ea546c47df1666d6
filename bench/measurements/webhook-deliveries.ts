import { setTimeout as delay } from 'node:timers/promises'
import { Logger, run } from 'graphile-worker'
import PgBoss from 'pg-boss'
import type { Effort } from '../effort.ts'
import { benchSender, openOurDeliveries, PAYLOAD } from '../our-deliveries.ts'
import { type ReceiverProcess, startReceivers } from '../peers/webhook-receiver.ts'
import type { Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { type Figure, fasterOf, inTurns, percentile, throughput } from '../statistics.ts'
import { newDatabase, ourDeliveries, post, sustained } from '../webhook-load.ts'

const ROUNDS = 3
/** Posts to one receiver at the same time: as many as ours makes to one that is quick. */
const AT_ONCE = 64
/** Jobs that pg-boss takes with one look. */
const BATCH = 100
/** What is raised at a steady rate, per second; and how long that is not counted, in seconds. */
const RATE = 200
const WARM_UP = 3
/** Tenants that the receivers and the silent hosts belong to. */
const TENANTS = 10

type Measure = (server: BenchServer, receivers: ReceiverProcess, effort: Effort) => Promise<Row[]>

/** Over http, against two queues on PostgreSQL whose jobs post the same bodies with the same signature. */
export const measureHttp = withReceivers(async (server, receivers, effort) => {
  const seconds = effort.loadSeconds
  const url = `${receivers.http}/ok`
  const { ours, graphile, boss } = await inTurns(effort.rounds(ROUNDS), {
    ours: async () =>
      ourDeliveries(server, receivers, { seconds, tenants: [{ targets: [url], silent: [] }] }),
    graphile: async () => graphileWorker(server, receivers, seconds),
    boss: async () => pgBoss(server, receivers, seconds),
  })
  return [
    {
      work: 'webhooks raised and delivered to one receiver over http',
      unit: 'per second',
      ours,
      peer: { name: 'graphile-worker or pg-boss, the faster', rounds: fasterOf(graphile, boss) },
      target: { kind: 'at least', ratio: 1.2, unit: 'times' },
    },
  ]
})

/** Over https, against a loop that signs and posts the same bodies by the same sender and keeps nothing. */
export const measureHttps = withReceivers(async (server, receivers, effort) => {
  const seconds = effort.loadSeconds
  const url = `${receivers.https}/ok`
  const bare = (adders: number) => async () => {
    const sender = benchSender(false)
    return sustained(receivers, { seconds, adders, add: () => post(sender, url) })
  }
  const { ours, many, one } = await inTurns(effort.rounds(ROUNDS), {
    ours: async () =>
      ourDeliveries(server, receivers, { seconds, tenants: [{ targets: [url], silent: [] }] }),
    many: bare(AT_ONCE),
    one: bare(1),
  })
  const row = { work: 'the same over https', unit: 'per second', ours } as const
  return [
    {
      ...row,
      peer: { name: `a bare loop that signs and posts, ${AT_ONCE} at once`, rounds: many },
      target: { kind: 'at least', ratio: 0.7, unit: 'percent' },
    },
    { ...row, peer: { name: 'the same loop, one after the other', rounds: one }, target: { kind: 'none' } },
  ]
})

/** To receivers of several tenants, with as many silent ones beside them, against the same without these. */
export const measureSilent = withReceivers(async (server, receivers, effort) => {
  const { hosts, silent } = receivers
  const each = hosts.length / TENANTS
  const some = (of: readonly string[], n: number) => of.slice(n * each, (n + 1) * each)
  const to = (isSilent: boolean) => async () =>
    ourDeliveries(server, receivers, {
      seconds: effort.loadSeconds,
      tenants: Array.from({ length: TENANTS }, (_, n) => ({
        targets: some(hosts, n),
        silent: isSilent ? some(silent, n) : [],
      })),
    })
  const { beside, alone } = await inTurns(effort.rounds(ROUNDS), { beside: to(true), alone: to(false) })
  return [
    {
      work: `the same to ${hosts.length} hosts of ${TENANTS} tenants, with ${silent.length} silent ones beside them`,
      unit: 'per second',
      ours: beside,
      peer: { name: 'without the silent ones', rounds: alone },
      target: { kind: 'at least', ratio: 0.8, unit: 'percent' },
    },
  ]
})

/** From the moment an event is committed to its first post, at a steady rate. */
export const measureLatency = withReceivers(async (server, receivers, effort) => {
  const { ours } = await inTurns(effort.rounds(ROUNDS), {
    ours: async () => commitToPost(server, receivers, effort.loadSeconds / 2),
  })
  return [
    {
      work: `commit of an event to its first post, ${RATE} events per second, p50`,
      unit: 'ms',
      ours,
      peer: null,
      target: { kind: 'below', value: 50 },
    },
  ]
})

function withReceivers(measure: Measure): (server: BenchServer, effort: Effort) => Promise<Row[]> {
  return async (server, effort) => {
    const receivers = await startReceivers()
    try {
      return await measure(server, receivers, effort)
    } finally {
      await receivers.stop()
    }
  }
}

async function graphileWorker(server: BenchServer, receivers: ReceiverProcess, seconds: number) {
  const sender = benchSender(true)
  const runner = await run({
    connectionString: await newDatabase(server, 'graphile'),
    concurrency: AT_ONCE,
    maxPoolSize: 20,
    noHandleSignals: true,
    taskList: { deliver: () => post(sender, `${receivers.http}/ok`) },
    logger: new Logger(() => () => undefined),
  })
  try {
    return await sustained(receivers, { seconds, add: () => runner.addJob('deliver', PAYLOAD) })
  } finally {
    await runner.stop()
  }
}

async function pgBoss(server: BenchServer, receivers: ReceiverProcess, seconds: number) {
  const sender = benchSender(true)
  const boss = new PgBoss({ connectionString: await newDatabase(server, 'boss'), max: 20 })
  await boss.start()
  try {
    await boss.createQueue('deliver')
    for (let n = 0; n < 2; n += 1) {
      await boss.work('deliver', { batchSize: BATCH, pollingIntervalSeconds: 0.5 }, (jobs) =>
        throughput(jobs.length, AT_ONCE / 2, () => post(sender, `${receivers.http}/ok`)),
      )
    }
    return await sustained(receivers, { seconds, add: () => boss.send('deliver', PAYLOAD) })
  } finally {
    await boss.stop({ graceful: false })
  }
}

async function commitToPost(
  server: BenchServer,
  receivers: ReceiverProcess,
  seconds: number,
): Promise<Figure> {
  const deliveries = await openOurDeliveries(await newDatabase(server, 'latency'), { isPlain: true })
  try {
    await deliveries.subscribe([`${receivers.http}/ok`])
    await deliveries.start()
    await receivers.posts()
    const committed: { readonly id: string; readonly at: number }[] = []
    const raising: Promise<unknown>[] = []
    const began = performance.now()
    for (let n = 0; n < (WARM_UP + seconds) * RATE; n += 1) {
      const early = began + (n * 1000) / RATE - performance.now()
      if (early > 0) await delay(early)
      const counts = n >= WARM_UP * RATE
      raising.push(
        deliveries.raise().then((id) => {
          if (counts) committed.push({ id, at: performance.timeOrigin + performance.now() })
        }),
      )
    }
    await Promise.all(raising)
    await deliveries.settled()
    const { firstAt } = await receivers.posts()
    const times = committed.map(({ id, at }) => {
      const first = firstAt[id]
      if (first === undefined) throw new Error('An event was not posted')
      return first - at
    })
    return { value: percentile(times, 0.5), p99: percentile(times, 0.99) }
  } finally {
    await deliveries.close()
  }
}
