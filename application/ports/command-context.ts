import type { Environment } from '../../domain/kernel/ids.ts'

/** The actor that caused an event. */
export interface Actor {
  readonly type: 'api_client' | 'agent' | 'inbound_connection' | 'operator' | 'payer' | 'system'
  readonly id: string
}

/** A request with a key, kept with the stream that it created: its id derives from the key, see `oncePerKey`. */
export interface KeyedRequest {
  /** Keyed fingerprint of the body: another body under the same key is another request. */
  readonly body_fingerprint: string
  /** What its answer needs and the aggregate does not know. */
  readonly answer?: Readonly<Record<string, string>>
}

/** On whose behalf and because of what a command runs. */
export interface CommandContext {
  readonly actor: Actor
  readonly tenantId: string | null
  readonly environment: Environment | null
  readonly correlationId: string
  /** Event or command that caused this one; default the correlation id. */
  readonly causationId?: string
  /**
   * The request, or the piece of work, that commands are steps of. Their own ids derive from it, from the stream, and
   * from the kind of command: see {@link ordinal}.
   */
  readonly commandId: string
  /** Tells commands of one kind on one stream apart, the same in every attempt; default 0. */
  readonly ordinal?: number
  /** The command may come again under its id, with a key or as a piece of work: what was stored long ago is found, too. */
  readonly mayRepeat?: boolean
  /** The request with a key that creates a stream, which must not be there yet; see `oncePerKey`. */
  readonly keyedRequest?: KeyedRequest
  /** Keyed fingerprints that what is stored is found by, see `findable`. */
  readonly foundBy?: readonly string[]
  /** What a request with a key is refused with when none was accepted under its key before. */
  readonly unlessRepeated?: Error | null | undefined
}
