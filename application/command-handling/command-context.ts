import type { Environment } from '../../domain/kernel/ids.ts'
import { type Actor, derivedId, type KeyedRequest } from '../event-registry.ts'

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
  /** It may come again under the same id, with a key or as a piece of work: what an attempt stored long ago is found, too. */
  readonly mayRepeat?: boolean
  /** The request with a key that creates a stream, which must not be there yet; see `createOnce`. */
  readonly keyedRequest?: KeyedRequest
  /** What a request with a key is refused with when none was accepted under its key before. */
  readonly unlessRepeated?: Error | null | undefined
}

/** The id of one step of a request: the same in every attempt, and no other step's. */
export function commandIdOf(
  { commandId, ordinal = 0 }: CommandContext,
  stream: string,
  type: string,
): string {
  return derivedId(commandId, `${stream}/${type}/${ordinal}`)
}

/** The id of what a request creates: every attempt has the same one. */
export function createdId(
  { commandId }: Pick<CommandContext, 'commandId'>,
  { category }: { readonly category: string },
): string {
  return derivedId(commandId, category)
}
