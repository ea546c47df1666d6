import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { orThrow } from '../../domain/kernel/rejection.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'
import type { Application } from './application.ts'
import type { CommandContext } from './command-context.ts'
import { decideAll, type Loaded } from './command-handler.ts'
import { nextTurn } from './time-slices.ts'

/** What the stream of an upload says so far. */
export interface Upload {
  readonly received: { readonly chunk_count: number } | null
  readonly chunks_recorded: number
  /** Set when the upload was given up; no more chunks are taken then. */
  readonly failed?: object | null
}

/**
 * Appends what was received and its chunks, one per append, going on where another attempt of the same request ended,
 * also one that runs at the same time. Returns when all chunks are stored or the upload has failed.
 * @param receive the command that opens the stream and announces as many chunks as there are.
 * @param chunks the commands that record them.
 * @throws Error when an earlier attempt announced another number of chunks and some are missing still;
 *   WrongExpectedRevision when it is to be begun by a request with a key, and is there already.
 */
export async function uploadChunks<State extends Upload, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands' | 'log'>,
  decider: Decider<State, Command, Event>,
  id: string,
  receive: Command,
  chunks: readonly Command[],
  context: CommandContext,
): Promise<Loaded<State> & { readonly position: bigint }> {
  let at: Loaded<State> & { readonly position: bigint } = {
    state: decider.initialState,
    revision: -1,
    position: 0n,
  }
  for (;;) {
    const { received, chunks_recorded: first, failed } = at.state
    if (failed || first === received?.chunk_count) return at
    if (received && received.chunk_count !== chunks.length) {
      throw new Error(
        `The upload ${id} was announced with ${received.chunk_count} chunks and goes on with ${chunks.length}`,
      )
    }
    const chunk = chunks.slice(first, first + 1)
    const decided = orThrow(decideAll(decider, received ? chunk : [receive, ...chunk], at.state))
    // a repetition of the same would never end
    if (decided.events.length === 0) throw new Error(`The upload ${id} has nothing left to store`)
    // encoding a chunk holds the event loop, longest for EventStoreDB: of all large uploads, one does so per turn
    if (chunks.length > 1) await nextTurn()
    try {
      at = await app.commands.appendAt(decider, id, at, decided.events, context)
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error
      // what was begun under a key may hold another body: `oncePerKey` compares before it goes on
      if (at.revision < 0 && context.keyedRequest) throw error
      const stored = await app.commands.load(decider, id)
      if (stored.revision <= at.revision) throw error
      at = { ...stored, position: await app.log.head() }
    }
  }
}
