import {
  DiscardPolicy,
  ErrorCode,
  headers,
  type JetStreamClient,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
  type StreamInfoRequestOptions,
} from 'nats'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import {
  type IntegrationEvent,
  type IntegrationEventChannel,
  IntegrationEventRefused,
} from '../../../application/ports/integration-events.ts'
import { traceHeaders } from '../../../application/ports/tracing.ts'
import type { Nats } from './connection.ts'

export const INTEGRATION_STREAM = 'COMPSTREAM'

const PUBLISH_MS = 5_000
const DAY_MS = 86_400_000
/** JetStream's errors for a stream that does not exist, and for a message larger than it takes. */
const STREAM_NOT_FOUND = 10059
const MESSAGE_TOO_LARGE = 10054

/** How the stream is made where there is none; one that exists is used as it is. */
const STREAM: Partial<StreamConfig> & { name: string } = {
  name: INTEGRATION_STREAM,
  description: 'compstream integration events',
  subjects: ['compstream.live.>', 'compstream.sandbox.>'],
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
  max_age: nanos(7 * DAY_MS),
  max_bytes: 1024 ** 3,
  max_msg_size: 64 * 1024,
  duplicate_window: nanos(10 * 60_000),
}

/** The subject of an event: `compstream.<environment>.<tenant_id>.<event word>`. */
function subjectOf(event: Pick<IntegrationEvent, 'environment' | 'tenantId' | 'type'>): string {
  return `compstream.${event.environment}.${event.tenantId}.${event.type}`
}

/** Integration events in a JetStream stream; the event's id is the message id. */
export class JetStreamIntegrationEvents implements IntegrationEventChannel {
  readonly #nats: Nats
  readonly #replicas: number
  #client: JetStreamClient | undefined

  /** @param replicas of the stream, where it is made. */
  constructor(nats: Nats, replicas = 1) {
    this.#nats = nats
    this.#replicas = replicas
  }

  async exists(): Promise<boolean> {
    try {
      await this.#streamInfo()
      return true
    } catch (error) {
      if (errorCodeOf(error) === STREAM_NOT_FOUND) return false
      throw error
    }
  }

  async create(): Promise<void> {
    const manager = await this.#nats.connection.jetstreamManager({ timeout: technicalDeadline(PUBLISH_MS) })
    await manager.streams.add({ ...STREAM, num_replicas: this.#replicas })
  }

  async publish(event: IntegrationEvent): Promise<void> {
    if (!this.#nats.connected) throw new Error('NATS is not connected')
    const head = headers()
    head.set('Content-Type', 'application/json')
    for (const [name, value] of Object.entries(traceHeaders())) head.set(name, value)
    try {
      this.#client ??= this.#nats.connection.jetstream({ timeout: technicalDeadline(PUBLISH_MS) })
      for (let msgID = event.id; ; ) {
        const { duplicate, seq } = await this.#client.publish(subjectOf(event), event.text, {
          msgID,
          headers: head,
          expect: { streamName: INTEGRATION_STREAM },
          timeout: technicalDeadline(PUBLISH_MS),
        })
        // the ids of what was purged are remembered, and the message dropped: it needs an id that is not known
        if (!duplicate || (await this.#holds(seq))) return
        msgID = `${event.id}/${seq}`
      }
    } catch (error) {
      const isTooLarge =
        errorCodeOf(error) === MESSAGE_TOO_LARGE ||
        (error as { code?: unknown }).code === ErrorCode.MaxPayloadExceeded
      throw isTooLarge ? new IntegrationEventRefused(event, 'it is larger than the stream takes') : error
    }
  }

  /** Whether the stream still has the message of a sequence number. */
  async #holds(seq: number): Promise<boolean> {
    const { state } = await this.#streamInfo({ deleted_details: true })
    return seq >= state.first_seq && seq <= state.last_seq && !state.deleted?.includes(seq)
  }

  async #streamInfo(options?: Partial<StreamInfoRequestOptions>): Promise<StreamInfo> {
    const manager = await this.#nats.connection.jetstreamManager({ timeout: technicalDeadline(PUBLISH_MS) })
    return manager.streams.info(INTEGRATION_STREAM, options)
  }

  onLost(listener: () => void): () => void {
    return this.#nats.onChange((connected) => {
      if (!connected) listener()
    })
  }

  isAvailable(): boolean {
    return this.#nats.connected
  }

  available(signal: AbortSignal): Promise<void> {
    return this.#nats.available(signal)
  }
}

/** JetStream's own code of an error; undefined for errors of other origin. */
function errorCodeOf(error: unknown): number | undefined {
  return (error as { api_error?: { err_code?: number } }).api_error?.err_code
}
