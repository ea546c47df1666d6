import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { Effort } from '../effort.ts'
import { newTenant, openOurDeliveries } from '../our-deliveries.ts'
import { type ReceiverProcess, receiversAt, startReceivers } from '../peers/webhook-receiver.ts'
import type { Row } from '../report.ts'
import { secondAndLastFifth } from '../resident-size.ts'
import { type BenchServer, memoryOf } from '../servers.ts'
import { throughput } from '../statistics.ts'
import { newDatabase } from '../webhook-load.ts'

const HOUR_MS = 3_600_000
const TENANTS = 125
const SUBSCRIPTIONS_OF_TENANT = 100
/** Fewer than disable a subscription when all of them fail. */
const EVENTS_OF_TENANT = 8
const SAMPLE_MS = 1_000
/** Events that are raised at the same time. */
const RAISED_AT_ONCE = 16

interface Asked {
  readonly url: string
  readonly receivers: Parameters<typeof receiversAt>[0]
  readonly tenants: number
}
interface Survived {
  readonly attempts: number
  readonly accepted: number
}

/**
 * Deliveries that wait while all receivers are away for an hour of the virtual clock, and are sent then: whether all
 * are, and whether the process that makes them grows meanwhile.
 */
export async function measureOutage(server: BenchServer, effort: Effort): Promise<Row[]> {
  const receivers = await startReceivers()
  try {
    const tenants = effort.amount(TENANTS)
    const subscriptions = tenants * SUBSCRIPTIONS_OF_TENANT
    const deliveries = subscriptions * EVENTS_OF_TENANT
    const url = await newDatabase(server, 'outage')
    const child = spawn(
      process.execPath,
      ['--max-old-space-size=2000', process.argv[1]!, '--webhook-outage'],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const began = performance.now()
    child.stdin.end(JSON.stringify({ url, receivers: receivers.ready, tenants } satisfies Asked))
    let isOver = false
    const output = text(child.stdout).finally(() => {
      isOver = true
    })
    const sizes: number[] = []
    while (!isOver) {
      const { resident } = await memoryOf(child.pid!).catch(() => ({ resident: 0 }))
      if (resident > 0) sizes.push(resident / 2 ** 20)
      await Promise.race([delay(SAMPLE_MS), output])
    }
    const seconds = (performance.now() - began) / 1000
    const { attempts, accepted } = resultOf(await output)
    if (accepted !== deliveries) throw new Error(`${accepted} of ${deliveries} deliveries were sent`)
    const { early, late } = secondAndLastFifth(sizes)
    const count = (value: number) => value.toLocaleString('en-US')
    return [
      {
        work:
          `${count(deliveries)} deliveries over ${count(subscriptions)} subscriptions through an outage of an hour, ` +
          'all sent: growth of the resident size',
        unit: 'MiB',
        ours: late,
        peer: { name: 'in the second fifth of the time', rounds: early },
        target: { kind: 'at most', ratio: 1.1 },
        note: `${count(attempts)} attempts in ${Math.round(seconds)} s; ${Math.round(Math.max(...sizes))} MiB at the highest`,
      },
    ]
  } finally {
    await receivers.stop()
  }
}

function resultOf(output: string): Survived {
  try {
    return JSON.parse(output) as Survived
  } catch {
    throw new Error(`The deliveries ended early: ${output}`)
  }
}

/** The other side, in a process of its own: what is measured is its size. */
export async function runOutage(): Promise<void> {
  const { url, receivers, tenants } = JSON.parse(await text(process.stdin)) as Asked
  process.stdout.write(JSON.stringify(await survive(url, receiversAt(receivers), tenants)))
  process.exit(0)
}

async function survive(url: string, receivers: ReceiverProcess, tenants: number): Promise<Survived> {
  const raisedAt = Date.now()
  let now = raisedAt
  const deliveries = await openOurDeliveries(url, {
    isPlain: true,
    clock: { kind: 'virtual', now: () => now },
  })
  const { hosts } = receivers
  const ids = Array.from({ length: tenants }, newTenant)
  for (const [tenant, id] of ids.entries()) {
    const targets = Array.from(
      { length: SUBSCRIPTIONS_OF_TENANT },
      (_, n) => `${hosts[n % hosts.length]}/${tenant}/${n}`,
    )
    await deliveries.subscribe(targets, id)
  }
  await receivers.refuse(true)
  await deliveries.start()
  await throughput(tenants * EVENTS_OF_TENANT, RAISED_AT_ONCE, (n) => deliveries.raise(ids[n % tenants]))
  await deliveries.settled()
  let attempts = (await receivers.posts()).count
  let isAway = true
  for (let due = await deliveries.nextDue(); due !== null; due = await deliveries.nextDue()) {
    if (isAway && due >= raisedAt + HOUR_MS) {
      await receivers.refuse(false)
      isAway = false
    }
    now = due
    deliveries.wake()
    await deliveries.settled()
    attempts += (await receivers.posts()).count
  }
  const { accepted } = await receivers.posts()
  await deliveries.close()
  return { attempts, accepted }
}
