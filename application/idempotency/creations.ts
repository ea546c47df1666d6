import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import { idempotencyKey } from '../../domain/uniqueness/idempotency-key.ts'
import type { Application } from '../application.ts'
import { type CommandContext, createdId } from '../command-handling/command-context.ts'
import type { Creation } from '../command-handling/command-handler.ts'
import { isAway } from '../ports/unavailable.ts'
import { keepAnswer, keptAnswer } from './claims.ts'
import {
  fingerprintsOf,
  firstAnswer,
  type IdempotentAnswer,
  type IdempotentOutcome,
  type KeyedCall,
  keyReused,
  replayOf,
} from './keyed-call.ts'

/** How a request with a key creates one aggregate. */
export interface KeyedCreation<State, Command, Event extends DomainEvent> {
  readonly decider: Decider<State, Command, Event>
  /**
   * Creates the aggregate of the context's request, or goes on where an earlier attempt ended. What it throws refuses
   * the request, and leaves the key free when nothing is stored yet. An answer that needs more than what the first
   * append tells names what the log keeps of it (`stored`).
   * @param begun what an earlier attempt has stored: it was accepted, and must not be refused by what changed since.
   * @param context names the keyed request only where the aggregate must not be there yet.
   * @throws WrongExpectedRevision when it is there all the same.
   */
  readonly create: (context: CommandContext, begun: State | null) => Promise<IdempotentAnswer>
  /** The first answer again, null where the first append does not tell it. */
  readonly answerOf: (created: Creation<State>) => IdempotentAnswer | null | Promise<IdempotentAnswer | null>
  /** Looks for an earlier attempt before anything else: worth it where the work is larger than the look. */
  readonly looksFirst?: boolean
}

/**
 * Creates one aggregate from a request with a key. Its id derives from caller, operation and key: the new stream is
 * its own claim, and its first append keeps the fingerprint of the body. Who comes too late, or is refused by what
 * changed since, finds the stream: the same body gets the first answer again, another one a conflict.
 * @returns a conflict when the key was used for another body.
 */
export async function createOnce<State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands' | 'personalData' | 'readModels'>,
  call: KeyedCall,
  { decider, create, answerOf, looksFirst = false }: KeyedCreation<State, Command, Event>,
): Promise<IdempotentOutcome | Rejection> {
  const { ofKey, ofBody } = fingerprintsOf(app, call)
  const context = { ...call.context, commandId: ofKey, mayRepeat: true }
  const creating = { ...context, keyedRequest: { body_fingerprint: ofBody } }
  const look = () => app.commands.creationOf(decider, createdId(context, decider))
  let begun = looksFirst ? await look() : null
  for (;;) {
    if (begun) {
      if (begun.keyedRequest?.body_fingerprint !== ofBody) return keyReused()
      const first = (await answerOf(begun)) ?? (await answerKept())
      if (first) {
        await app.readModels.tellOf(decider, begun.position)
        return replayOf(first)
      }
    }
    try {
      const answer = await create(begun ? context : creating, begun?.state ?? null)
      if (answer.stored === undefined) return firstAnswer(answer)
      const other = await keepAnswer(app, ofKey, answer, context)
      return other ? replayOf(await keptAnswer(call, other)) : firstAnswer(answer)
    } catch (error) {
      if (begun || isAway(error)) throw error
      begun = await look()
      if (!begun) throw error
    }
  }

  async function answerKept(): Promise<IdempotentAnswer | null> {
    const { state } = await app.commands.load(idempotencyKey, ofKey)
    return state.answered ? keptAnswer(call, state) : null
  }
}
