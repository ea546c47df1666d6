import { setTimeout as delay } from 'node:timers/promises'
import {
  AckPolicy,
  type Consumer,
  type ConsumerConfig,
  DiscardPolicy,
  type JetStreamClient,
  type JsMsg,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats'
import type { OfferedWork, TakenOffer, WorkQueue } from '../../../application/ports/work-queue.ts'
import type { Nats } from './connection.ts'

export const WORK_STREAM = 'COMPSTREAM_WORK'
export const WORK_CONSUMER = 'workers'

const REQUEST_MS = 2_000
const RETRY_MS = 500
/** How long one request for the next offer stands at the server. */
const PULL_MS = 30_000
/** An offer whose worker is not heard of for so long goes to another one. */
const ACK_WAIT_MS = 30_000

/** How the stream is made where there is none; one that exists is used as it is. */
const STREAM: Partial<StreamConfig> & { name: string } = {
  name: WORK_STREAM,
  description: 'compstream work that is due, as workers are offered it',
  subjects: ['compstream.work.>'],
  retention: RetentionPolicy.Workqueue,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
  // whoever looks into the database has found it long before
  max_age: nanos(10 * 60_000),
  max_bytes: 64 * 1024 ** 2,
  duplicate_window: nanos(2 * 60_000),
}

const CONSUMER: Partial<ConsumerConfig> = {
  durable_name: WORK_CONSUMER,
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ACK_WAIT_MS),
  max_ack_pending: 10_000,
}

/** What stands in the queue. */
export interface QueueDepth {
  /** Offers that nobody has taken. */
  readonly waiting: number
  /** Offers that workers have taken and not acknowledged. */
  readonly taken: number
  /** Of those, how many were delivered before. */
  readonly redelivered: number
}

/** The subject of a piece: `compstream.work.<process manager>.<kind>`. */
export function workSubject({ processManager, kind }: OfferedWork): string {
  return `compstream.work.${processManager}.${kind}`
}

/** The work queue between processes: a JetStream stream that forgets a message when it is acknowledged. */
export class JetStreamWorkQueue implements WorkQueue {
  readonly #nats: Nats
  #jetStream: JetStreamClient | undefined
  #consumer: Promise<Consumer> | undefined

  constructor(nats: Nats) {
    this.#nats = nats
    // the server that comes back may have forgotten everything
    nats.onChange(() => {
      this.#consumer = undefined
    })
  }

  get #client(): JetStreamClient {
    this.#jetStream ??= this.#nats.connection.jetstream({ timeout: REQUEST_MS })
    return this.#jetStream
  }

  async offer(work: readonly OfferedWork[]): Promise<boolean> {
    if (!this.#nats.connected) return false
    try {
      await this.#ready()
      await Promise.all(work.map((one) => this.#publish(one)))
      return true
    } catch {
      this.#consumer = undefined
      return false
    }
  }

  async next(signal: AbortSignal): Promise<TakenOffer | null> {
    while (!signal.aborted) {
      await this.#nats.available(signal)
      try {
        const message = await this.#pull(signal)
        const offer = message && taken(message)
        if (offer) return offer
        // a server answers nothing about a consumer that was deleted
        if (!message) this.#consumer = undefined
      } catch {
        this.#consumer = undefined
        await delay(RETRY_MS, null, { signal }).catch(() => undefined)
      }
    }
    return null
  }

  /** @throws while NATS does not answer. */
  async depth(): Promise<QueueDepth> {
    const manager = await this.#nats.connection.jetstreamManager({ timeout: REQUEST_MS, checkAPI: false })
    const info = await manager.consumers.info(WORK_STREAM, WORK_CONSUMER)
    return { waiting: info.num_pending, taken: info.num_ack_pending, redelivered: info.num_redelivered }
  }

  async #publish(work: OfferedWork): Promise<void> {
    const { processManager, kind, key, version } = work
    await this.#client.publish(workSubject(work), JSON.stringify([processManager, kind, key, version]), {
      msgID: `${processManager}/${kind}/${key}/${version}`,
      expect: { streamName: WORK_STREAM },
      timeout: REQUEST_MS,
    })
  }

  /**
   * One request for one message. With the connection requests are lost: then, too, it is time for a new one.
   * @returns null when none came.
   */
  async #pull(signal: AbortSignal): Promise<JsMsg | null> {
    const consumer = await this.#ready()
    const messages = await consumer.fetch({ max_messages: 1, expires: PULL_MS })
    const end = () => void messages.close()
    const stopHearing = this.#nats.onChange(end)
    signal.addEventListener('abort', end)
    try {
      if (signal.aborted) end()
      for await (const message of messages) return message
      return null
    } finally {
      stopHearing()
      signal.removeEventListener('abort', end)
      end()
    }
  }

  /** The consumer that all processes share, made with its stream where there is none. */
  #ready(): Promise<Consumer> {
    this.#consumer ??= (async () => {
      const manager = await this.#nats.connection.jetstreamManager({ timeout: REQUEST_MS })
      await manager.streams.info(WORK_STREAM).catch(() => manager.streams.add(STREAM))
      await manager.consumers
        .info(WORK_STREAM, WORK_CONSUMER)
        .catch(() => manager.consumers.add(WORK_STREAM, CONSUMER))
      return this.#client.consumers.get(WORK_STREAM, WORK_CONSUMER)
    })()
    return this.#consumer
  }
}

/** While the worker lives the server hears of it, so that the message stays with it. */
function taken(message: JsMsg): TakenOffer | null {
  const work = offered(message)
  if (work === null) {
    // not from here: nobody is to be bothered with it again
    message.term()
    return null
  }
  const working = setInterval(() => message.working(), ACK_WAIT_MS / 3)
  working.unref()
  return {
    work,
    acknowledge() {
      clearInterval(working)
      message.ack()
    },
  }
}

/** @returns null when the message is none of {@link JetStreamWorkQueue.offer}. */
function offered(message: JsMsg): OfferedWork | null {
  try {
    const parts = message.json<readonly unknown[]>()
    if (parts.length !== 4 || parts.some((part) => typeof part !== 'string')) return null
    const [processManager, kind, key, version] = parts as [string, string, string, string]
    return { processManager, kind, key, version }
  } catch {
    return null
  }
}
