import { convertToCommandError, EventStoreDBClient, NotLeaderError } from '@eventstore/db-client'
import { StreamsClient, StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { EventStoreRefused, EventStoreUnavailable, isRefusal, oneLine } from './errors.ts'
import { decodeAppendAnswer, decodeReadAnswer } from './wire.ts'

/** Messages of a read or a subscription as they come from the server. */
export type ReadCall = Awaited<ReturnType<RawClient['read']>>
/** The stream that carries many appends at once, and their answers. */
export type AppendCall = Awaited<ReturnType<RawClient['append']>>

const TO_LEADER = { requiresLeader: true }
const NO_DEADLINE = { deadline: Number.POSITIVE_INFINITY }
const KEEP_ALIVE_MS = 10_000

const { read: READ, batchAppend: APPEND } = StreamsService

/**
 * The client's connection without what it makes of events: its own operations parse JSON and write it anew, which
 * would not keep the text of data and metadata; nor do they tell which append a failure belongs to.
 */
class RawClient extends EventStoreDBClient {
  static open(url: string): RawClient {
    const client = EventStoreDBClient.connectionString(url)
    return Object.setPrototypeOf(client, RawClient.prototype) as RawClient
  }

  read(request: ReadReq) {
    const call = this.GRPCStreamCreator(StreamsClient, 'read', (client) =>
      client.makeServerStreamRequest(
        READ.path,
        READ.requestSerialize,
        decodeReadAnswer,
        request,
        ...this.callArguments(TO_LEADER, NO_DEADLINE),
      ),
    )
    return call()
  }

  append() {
    const call = this.GRPCStreamCreator(StreamsClient, 'append', (client) =>
      client.makeBidiStreamRequest(
        APPEND.path,
        (request: Buffer) => request,
        decodeAppendAnswer,
        ...this.callArguments(TO_LEADER, NO_DEADLINE),
      ),
    )
    return call()
  }

  async end(): Promise<void> {
    const channel = this.getChannel()
    await this.dispose()
    await channel.then(
      (open) => open.close(),
      () => undefined,
    )
  }
}

/**
 * A connection to the server, or to the leader of a cluster. After a failure the next call connects afresh: left to
 * itself gRPC would wait longer and longer, up to two minutes, before it looks at a server that has come back.
 */
export class EventStoreConnection {
  /** `host:port`, several with a comma; for messages. */
  readonly target: string
  readonly #url: string
  #client: RawClient | undefined
  #used = false
  #opened = 0
  #closed = false

  /** @throws EventStoreRefused when the connection string cannot be used. */
  constructor(url: string) {
    this.#url = url.replace(/^kurrentdb/, 'esdb')
    this.target = targetOf(url)
    try {
      this.#client = this.#connect()
    } catch (error) {
      throw new EventStoreRefused(this.target, oneLine(error))
    }
  }

  /** Begins a read or a subscription. @throws what the connection threw, classified by {@link failureOf}. */
  read(request: ReadReq): Promise<ReadCall> {
    return this.#call((client) => client.read(request))
  }

  /** Opens a stream for appends. */
  append(): Promise<AppendCall> {
    return this.#call((client) => client.append())
  }

  /** Takes note of an error, and says what it means. */
  failureOf(error: unknown): Error {
    if (error instanceof EventStoreUnavailable) return error
    const known = error instanceof Error ? convertToCommandError(error) : new Error(String(error))
    if (isRefusal(known) || isRefusal(error)) {
      return new EventStoreRefused(this.target, oneLine(error) || oneLine(known))
    }
    // the client goes to the leader that the answer names
    if (!(known instanceof NotLeaderError)) this.#drop()
    return new EventStoreUnavailable(this.target, oneLine(error))
  }

  close(): Promise<void> {
    this.#closed = true
    const client = this.#client
    this.#client = undefined
    return client && this.#used ? end(client) : Promise.resolve()
  }

  async #call<T>(call: (client: RawClient) => Promise<T>): Promise<T> {
    if (this.#closed) throw new EventStoreUnavailable(this.target, 'the event log is closed')
    this.#used = true
    return call(this.#current())
  }

  #current(): RawClient {
    this.#client ??= this.#connect()
    return this.#client
  }

  #drop(): void {
    const client = this.#client
    if (!client || !this.#used || this.#closed) return
    this.#client = undefined
    this.#used = false
    void end(client)
  }

  #connect(): RawClient {
    this.#opened += 1
    return RawClient.open(withKeepAlive(this.#url, this.#opened))
  }
}

async function end(client: RawClient): Promise<void> {
  await client.end().catch(() => undefined)
}

/** Connections whose settings differ do not share gRPC's memory of failed attempts. */
function withKeepAlive(url: string, nth: number): string {
  const given = /[?&]keepAliveInterval=(-?\d+)/i.exec(url)
  if (given && Number(given[1]) < 0) return url
  const interval = Math.max(Number(given?.[1] ?? KEEP_ALIVE_MS), KEEP_ALIVE_MS) + (nth % 1000)
  if (given) return url.replace(/([?&]keepAliveInterval=)-?\d+/i, `$1${interval}`)
  return `${url}${url.includes('?') ? '&' : '?'}keepAliveInterval=${interval}`
}

function targetOf(url: string): string {
  const [, hosts] = /^[a-z+]+:\/\/(?:[^@/]*@)?([^/?]+)/i.exec(url) ?? []
  return hosts ?? 'the given address'
}
