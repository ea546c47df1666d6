import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { WebhookRequest } from '../application/ports/webhooks.ts'
import { type benchSender, newTenant, openOurDeliveries, PAYLOAD, SECRET } from './our-deliveries.ts'
import type { ReceiverProcess } from './peers/webhook-receiver.ts'
import type { BenchServer } from './servers.ts'
import type { Figure } from './statistics.ts'

/** Posts that are asked for ahead of those that came, and by how many at the same time. */
const AHEAD = 2_000
const ADDERS = 32
const LOOK_MS = 100
/** Not counted, in seconds: receivers that nobody has heard of get few posts at a time. */
const WARM_UP = 3

export interface SustainedLoad {
  /** That count. */
  readonly seconds: number
  /** Adds work, or does it. */
  readonly add: () => Promise<unknown>
  /** How many do so at the same time; default 32. */
  readonly adders?: number
  /** Posts that come of what is added at once; default 1. */
  readonly each?: number
}

/** Adds work for some seconds, a bounded stretch ahead of what was posted. @returns what came in, per second. */
export async function sustained(receivers: ReceiverProcess, load: SustainedLoad): Promise<Figure> {
  const { seconds, add, adders = ADDERS, each = 1 } = load
  await receivers.posts()
  let [added, posted] = [0, 0]
  const from = performance.now() + WARM_UP * 1000
  const until = from + seconds * 1000
  const adding = async () => {
    while (performance.now() < until) {
      if (added - posted > AHEAD) await delay(LOOK_MS / 20)
      else {
        added += each
        await add()
      }
    }
  }
  const counting = async (): Promise<number> => {
    let counted: { readonly since: number; posts: number } | null = null
    for (;;) {
      await delay(LOOK_MS)
      const { count } = await receivers.posts()
      const now = performance.now()
      posted += count
      if (counted) counted.posts += count
      else if (now >= from) counted = { since: now, posts: 0 }
      if (counted && now >= until) return (counted.posts / (now - counted.since)) * 1000
    }
  }
  const [value] = await Promise.all([counting(), ...Array.from({ length: adders }, adding)])
  return { value }
}

/** A database for one round: none is measured on what another left behind. */
export function newDatabase(server: BenchServer, contender: string): Promise<string> {
  return server.createDatabase(`webhooks_${contender}_${randomBytes(4).toString('hex')}`)
}

/** Where webhooks are delivered: to each tenant's targets, of which some stay silent. */
export interface Delivered {
  readonly seconds: number
  readonly tenants: readonly { readonly targets: readonly string[]; readonly silent: readonly string[] }[]
}

/** Raises events of tenants in turn and delivers them. */
export async function ourDeliveries(
  server: BenchServer,
  receivers: ReceiverProcess,
  { seconds, tenants }: Delivered,
): Promise<Figure> {
  const isPlain = tenants[0]!.targets[0]!.startsWith('http:')
  const deliveries = await openOurDeliveries(await newDatabase(server, 'ours'), { isPlain })
  try {
    const ids = tenants.map(newTenant)
    for (const [index, { targets, silent }] of tenants.entries()) {
      await deliveries.subscribe([...targets, ...silent], ids[index])
    }
    await deliveries.start()
    let next = 0
    const add = () => deliveries.raise(ids[next++ % ids.length])
    return await sustained(receivers, { seconds, add, each: tenants[0]!.targets.length })
  } finally {
    await deliveries.close()
  }
}

/** Signs and posts one body, as ours does. @throws Error when it is not accepted. */
export async function post(sender: ReturnType<typeof benchSender>, url: string): Promise<void> {
  const request: WebhookRequest = {
    url,
    secret: SECRET,
    eventId: randomBytes(12).toString('hex'),
    eventType: 'installment.paid',
    body: JSON.stringify(PAYLOAD),
    timestamp: Date.now(),
  }
  const { error } = await sender.post(request, new AbortController().signal)
  if (error !== null) throw new Error(error)
}
