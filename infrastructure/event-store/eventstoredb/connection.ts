import {
  convertToCommandError,
  EventStoreDBClient,
  NotLeaderError,
  StreamDeletedError,
} from '@eventstore/db-client'
import { StreamsClient, StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { type ConnectionString, readConnectionString } from './connection-string.ts'
import {
  EventStoreRefused,
  EventStoreUnavailable,
  isOfOneCall,
  isRefusal,
  oneLine,
  StreamTampered,
} from './errors.ts'
import { decodeAppendAnswer, decodeReadAnswer } from './wire.ts'

/** Messages of a read or a subscription as they come from the server. */
export type ReadCall = Awaited<ReturnType<RawClient['read']>>
/** The stream that carries many appends at once, and their answers. */
export type AppendCall = Awaited<ReturnType<RawClient['append']>>

const TO_LEADER = { requiresLeader: true }
const NO_DEADLINE = { deadline: Number.POSITIVE_INFINITY }

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
  readonly #address: ConnectionString
  #client: RawClient | undefined
  /** Which connection a call was made on: when many calls fail with one, those on the next are left alone. */
  readonly #madeOn = new WeakMap<ReadCall | AppendCall, RawClient>()
  #used = false
  #opened = 0
  #closed = false

  /** @throws EventStoreRefused when the connection string cannot be used. */
  constructor(url: string) {
    try {
      this.#address = readConnectionString(url)
    } catch (error) {
      throw new EventStoreRefused('the given address', oneLine(error))
    }
    this.target = this.#address.target
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

  /**
   * Takes note of an error, and says what it means.
   * @param call that failed; without it the connection as it is now is meant.
   */
  failureOf(error: unknown, call?: ReadCall | AppendCall): Error {
    if (error instanceof EventStoreUnavailable) return error
    const known = commandError(error)
    if (known instanceof StreamDeletedError) return new StreamTampered(known.streamName, 'it was deleted')
    if (isRefusal(known) || isRefusal(error)) {
      return new EventStoreRefused(this.target, oneLine(error) || oneLine(known))
    }
    // the client goes to the leader that the answer names
    if (!(known instanceof NotLeaderError) && !isOfOneCall(error)) {
      this.#drop(call ? this.#madeOn.get(call) : this.#client)
    }
    return new EventStoreUnavailable(this.target, oneLine(error))
  }

  close(): Promise<void> {
    this.#closed = true
    const client = this.#client
    this.#client = undefined
    return client && this.#used ? end(client) : Promise.resolve()
  }

  async #call<T extends ReadCall | AppendCall>(call: (client: RawClient) => Promise<T>): Promise<T> {
    if (this.#closed) throw new EventStoreUnavailable(this.target, 'the event log is closed')
    this.#used = true
    const client = this.#current()
    const made = await call(client)
    this.#madeOn.set(made, client)
    return made
  }

  #current(): RawClient {
    this.#client ??= this.#connect()
    return this.#client
  }

  /** Ends a connection, with all calls on it, unless another has taken its place. */
  #drop(failed: RawClient | undefined): void {
    const client = this.#client
    if (!client || client !== failed || !this.#used || this.#closed) return
    this.#client = undefined
    this.#used = false
    void end(client)
  }

  #connect(): RawClient {
    this.#opened += 1
    return RawClient.open(this.#address.forClient(this.#opened))
  }
}

async function end(client: RawClient): Promise<void> {
  await client.end().catch(() => undefined)
}

function commandError(error: unknown): Error {
  try {
    return error instanceof Error ? convertToCommandError(error) : new Error(String(error))
  } catch {
    // the client expects more of an answer than there is
    return error as Error
  }
}
