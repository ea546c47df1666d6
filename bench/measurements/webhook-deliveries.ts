import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Logger, run } from 'graphile-worker'
import PgBoss from 'pg-boss'
import type { WebhookRequest } from '../../application/ports/webhooks.ts'
import type { Effort } from '../effort.ts'
import { benchSender, openOurDeliveries, PAYLOAD, SECRET } from '../our-deliveries.ts'
import type { ReceivedPosts } from '../peers/webhook-receiver.ts'
import type { Row } from '../report.ts'
import { type BenchServer, startProcess } from '../servers.ts'
import { type Figure, fasterOf, inTurns, percentile, throughput } from '../statistics.ts'

const ROUNDS = 3
/** Of the load, in seconds. */
const LASTS = 60
/** Posts under way at the same time, as many as ours gives one quick receiver. */
const AT_ONCE = 64
/** Jobs that the peers take with one look. */
const BATCH = 100
/** What is raised at a steady rate, per second. */
const RATE = 200
const HOSTS = 50
/** Events that are raised ahead of what is posted, and by how many at the same time. */
const AHEAD = 2_000
const ADDERS = 32

interface Receiver {
  readonly http: string
  readonly https: string
}

/** Deliveries of webhooks, against two queues on PostgreSQL whose jobs post the same bodies with the same signature. */
export async function measureWebhookDeliveries(server: BenchServer, effort: Effort): Promise<Row[]> {
  const { ready, stop } = await startProcess([process.argv[1]!, '--webhook-receiver'], {}, isReceiver)
  try {
    const seconds = effort.seconds(LASTS)
    const http = await inTurns(effort.rounds(ROUNDS), {
      ours: async () => ours(server, ready, { target: ready.http, seconds }),
      graphile: async () => graphileWorker(server, ready, seconds),
      boss: async () => pgBoss(server, ready, seconds),
    })
    const https = await inTurns(effort.rounds(ROUNDS), {
      ours: async () => ours(server, ready, { target: ready.https, seconds }),
      bare: async () => bareLoop(ready, effort),
    })
    const silent = await inTurns(effort.rounds(ROUNDS), {
      some: async () => ours(server, ready, { target: ready.http, seconds, hosts: HOSTS, silent: HOSTS }),
      none: async () => ours(server, ready, { target: ready.http, seconds, hosts: HOSTS }),
    })
    const latency = await inTurns(effort.rounds(ROUNDS), {
      ours: async () => commitToPost(server, ready, seconds),
    })
    return [
      {
        ...{
          work: 'webhooks raised and delivered to one receiver over http',
          unit: 'per second',
          ours: http.ours,
        },
        peer: { name: 'graphile-worker or pg-boss, the faster', rounds: fasterOf(http.graphile, http.boss) },
        target: { kind: 'at least', ratio: 1.2, unit: 'times' },
      },
      {
        ...{ work: 'the same over https', unit: 'per second', ours: https.ours },
        peer: { name: 'a bare loop that signs and posts', rounds: https.bare },
        target: { kind: 'at least', ratio: 0.7, unit: 'percent' },
      },
      {
        ...{
          work: `the same to ${HOSTS} receivers, with ${HOSTS} silent ones beside them`,
          unit: 'per second',
        },
        ...{ ours: silent.some, peer: { name: 'without the silent ones', rounds: silent.none } },
        target: { kind: 'at least', ratio: 0.8, unit: 'percent' },
      },
      {
        ...{ work: `commit of an event to its first post, ${RATE} events per second, p50`, unit: 'ms' },
        ...{ ours: latency.ours, peer: null, target: { kind: 'below', value: 50 } },
      },
    ]
  } finally {
    await stop()
  }
}

function isReceiver(line: unknown): line is Receiver {
  return typeof (line as Receiver | null)?.https === 'string'
}

async function posts(receiver: Receiver): Promise<ReceivedPosts> {
  return (await (await fetch(`${receiver.http}/posts`)).json()) as ReceivedPosts
}

/** Adds work for some seconds, a bounded stretch ahead of what was posted, and counts what was posted by then. */
async function sustained(receiver: Receiver, seconds: number, add: () => Promise<unknown>): Promise<Figure> {
  await posts(receiver)
  let [added, posted] = [0, 0]
  const started = performance.now()
  const end = started + seconds * 1000
  const lane = async () => {
    while (performance.now() < end) {
      if (added - posted > AHEAD) await delay(5)
      else {
        added += 1
        await add()
      }
    }
  }
  const counting = (async () => {
    while (performance.now() < end) {
      await delay(100)
      posted += (await posts(receiver)).count
    }
  })()
  await Promise.all([counting, ...Array.from({ length: ADDERS }, lane)])
  return { value: (posted / (performance.now() - started)) * 1000 }
}
/** A database of each round: none is measured on what another left behind. */
function named(contender: string): string {
  return `webhooks_${contender}_${randomBytes(4).toString('hex')}`
}

async function ours(
  server: BenchServer,
  receiver: Receiver,
  options: { target: string; seconds: number; hosts?: number; silent?: number },
): Promise<Figure> {
  const { target, seconds, hosts = 1, silent = 0 } = options
  const deliveries = await openOurDeliveries(await server.createDatabase(named('ours')), {
    isPlain: target.startsWith('http:'),
  })
  try {
    for (let n = 0; n < hosts; n += 1) await deliveries.subscribe(`${target}/ok/${n}`)
    for (let n = 0; n < silent; n += 1) await deliveries.subscribe(`${target}/silent/${n}`)
    await deliveries.start()
    return await sustained(receiver, seconds, () => deliveries.raise())
  } finally {
    await deliveries.close()
  }
}

/** A request as ours signs and posts it. */
function requestOf(url: string): WebhookRequest {
  const eventId = randomBytes(12).toString('hex')
  const body = JSON.stringify(PAYLOAD)
  return { url, secret: SECRET, eventId, eventType: 'installment.paid', body, timestamp: Date.now() }
}

async function post(sender: ReturnType<typeof benchSender>, url: string): Promise<void> {
  const { error } = await sender.post(requestOf(url), new AbortController().signal)
  if (error !== null) throw new Error(error)
}

async function graphileWorker(server: BenchServer, receiver: Receiver, seconds: number): Promise<Figure> {
  const sender = benchSender(true)
  const runner = await run({
    connectionString: await server.createDatabase(named('graphile')),
    ...{ concurrency: AT_ONCE, maxPoolSize: 20, noHandleSignals: true },
    taskList: { deliver: () => post(sender, `${receiver.http}/ok`) },
    logger: new Logger(() => () => undefined),
  })
  try {
    return await sustained(receiver, seconds, () => runner.addJob('deliver', PAYLOAD))
  } finally {
    await runner.stop()
  }
}

async function pgBoss(server: BenchServer, receiver: Receiver, seconds: number): Promise<Figure> {
  const sender = benchSender(true)
  const boss = new PgBoss({ connectionString: await server.createDatabase(named('boss')), max: 20 })
  await boss.start()
  try {
    await boss.createQueue('deliver')
    for (let n = 0; n < 2; n += 1) {
      await boss.work('deliver', { batchSize: BATCH, pollingIntervalSeconds: 0.5 }, (jobs) =>
        throughput(jobs.length, AT_ONCE / 2, () => post(sender, `${receiver.http}/ok`)),
      )
    }
    return await sustained(receiver, seconds, () => boss.send('deliver', PAYLOAD))
  } finally {
    await boss.stop({ graceful: false })
  }
}

/** Signs and posts with nothing behind it. */
async function bareLoop(receiver: Receiver, effort: Effort): Promise<Figure> {
  const sender = benchSender(false)
  return throughput(effort.amount(20_000), AT_ONCE, () => post(sender, `${receiver.https}/ok`))
}

/** From the moment an event is committed to its first post, at a steady rate. */
async function commitToPost(server: BenchServer, receiver: Receiver, seconds: number): Promise<Figure> {
  const deliveries = await openOurDeliveries(await server.createDatabase(named('latency')), {
    isPlain: true,
  })
  try {
    await deliveries.subscribe(`${receiver.http}/ok`)
    await deliveries.start()
    await posts(receiver)
    const committed = new Map<string, number>()
    const raising: Promise<unknown>[] = []
    for (let n = 0; n < seconds * RATE; n += 1) {
      await delay(1000 / RATE)
      raising.push(
        deliveries.raise().then((id) => committed.set(id, performance.timeOrigin + performance.now())),
      )
    }
    await Promise.all(raising)
    await delay(1_000)
    const { firstAt } = await posts(receiver)
    const times = [...committed].map(([id, at]) => (firstAt[id] ?? Number.POSITIVE_INFINITY) - at)
    return { value: percentile(times, 0.5), p99: percentile(times, 0.99) }
  } finally {
    await deliveries.close()
  }
}
