import { setTimeout as delay } from 'node:timers/promises'
import {
  AckPolicy,
  type Consumer,
  type ConsumerConfig,
  DiscardPolicy,
  Empty,
  type JetStreamClient,
  type JsMsg,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type { WorkHint, WorkQueue } from '../../../application/ports/work-queue.ts'
import type { Nats } from './connection.ts'

export const WORK_STREAM = 'COMPSTREAM_WORK'
const WORK_CONSUMER = 'workers'

const SUBJECT = 'compstream.work'
const REQUEST_MS = 2_000
const RETRY_MS = 500
/** How long one request for the next hint stands at the server. */
const PULL_MS = 30_000

/** How the stream is made where there is none; one that exists is used as it is. */
const STREAM: Partial<StreamConfig> & { name: string } = {
  name: WORK_STREAM,
  description: 'one empty message for each piece of work that is due',
  subjects: [`${SUBJECT}.>`],
  retention: RetentionPolicy.Workqueue,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
  // polling has found it long before
  max_age: nanos(10 * 60_000),
  max_bytes: 64 * 1024 ** 2,
}

const CONSUMER: Partial<ConsumerConfig> = {
  durable_name: WORK_CONSUMER,
  ack_policy: AckPolicy.Explicit,
}

/** The subject of a kind of work, which is all that a message says: `compstream.work.<process manager>.<kind>`. */
export function workSubject({ processManager, kind }: WorkHint): string {
  return `${SUBJECT}.${processManager}.${kind}`
}

/** The work queue between processes: a JetStream stream that forgets a message as soon as it was taken. */
export class JetStreamWorkQueue implements WorkQueue {
  readonly #nats: Nats
  readonly #replicas: number
  #jetStream: JetStreamClient | undefined
  #consumer: Promise<Consumer> | undefined

  /** @param replicas of the stream, where it is made. */
  constructor(nats: Nats, replicas = 1) {
    this.#nats = nats
    this.#replicas = replicas
    // the server that comes back may have forgotten everything
    nats.onChange(() => {
      this.#consumer = undefined
    })
  }

  get #client(): JetStreamClient {
    this.#jetStream ??= this.#nats.connection.jetstream({ timeout: technicalDeadline(REQUEST_MS) })
    return this.#jetStream
  }

  async offer(hints: readonly WorkHint[]): Promise<boolean> {
    if (!this.#nats.connected) return false
    const options = { expect: { streamName: WORK_STREAM }, timeout: technicalDeadline(REQUEST_MS) }
    try {
      await this.#ready()
      await Promise.all(hints.map((hint) => this.#client.publish(workSubject(hint), Empty, options)))
      return true
    } catch {
      this.#consumer = undefined
      return false
    }
  }

  async next(signal: AbortSignal): Promise<WorkHint | null> {
    while (!signal.aborted) {
      await this.#nats.available(signal)
      try {
        const message = await this.#pull(signal)
        // a server answers nothing about a consumer that was deleted
        if (!message) this.#consumer = undefined
        else {
          // a process that dies now loses a hint, no work
          message.ack()
          const [processManager, kind] = message.subject.slice(SUBJECT.length + 1).split('.')
          if (processManager && kind) return { processManager, kind }
        }
      } catch {
        this.#consumer = undefined
        await delay(RETRY_MS, null, { signal }).catch(() => undefined)
      }
    }
    return null
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
      const manager = await this.#nats.connection.jetstreamManager({ timeout: technicalDeadline(REQUEST_MS) })
      await manager.streams
        .info(WORK_STREAM)
        .catch(() => manager.streams.add({ ...STREAM, num_replicas: this.#replicas }))
      await manager.consumers
        .info(WORK_STREAM, WORK_CONSUMER)
        .catch(() => manager.consumers.add(WORK_STREAM, CONSUMER))
      return this.#client.consumers.get(WORK_STREAM, WORK_CONSUMER)
    })()
    return this.#consumer
  }
}
