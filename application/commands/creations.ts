import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { idempotencyKey } from '../../domain/kernel/idempotency-key.ts'
import { orThrow, type Rejection } from '../../domain/kernel/rejection.ts'
import { isAway } from '../ports/unavailable.ts'
import type { Application } from './application.ts'
import { answerCommand, keptAnswer } from './claims.ts'
import { type CommandContext, createdId } from './command-context.ts'
import type { Creation } from './command-handler.ts'
import {
  type Fingerprints,
  type IdempotentAnswer,
  type IdempotentOutcome,
  type KeyedCall,
  keyReused,
  oncePerKey,
  type Performed,
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
}

/**
 * Creates one aggregate from a request with a key. Its id derives from caller, operation and key: the new stream is
 * its own claim, and its first append keeps the fingerprint of the body. The stream is looked at before anything is
 * sealed or checked, and again by who comes too late, or is refused by what changed since: the same body gets the
 * first answer again, another one a conflict.
 * @returns a conflict when the key was used for another body.
 */
export function createOnce<State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands' | 'personalData' | 'readModels'>,
  call: KeyedCall,
  creation: KeyedCreation<State, Command, Event>,
): Promise<IdempotentOutcome | Rejection> {
  return oncePerKey(app, call, (fingerprints) => attempt(app, call, creation, fingerprints))
}

async function attempt<State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands' | 'readModels'>,
  call: KeyedCall,
  { decider, create, answerOf }: KeyedCreation<State, Command, Event>,
  { ofKey, ofBody }: Fingerprints,
): Promise<Performed> {
  const context = { ...call.context, commandId: ofKey, mayRepeat: true }
  const creating = { ...context, keyedRequest: { body_fingerprint: ofBody } }
  const id = createdId(context, decider)
  const look = () => app.commands.creationOf(decider, id)
  let begun = await look()
  for (;;) {
    if (begun) {
      if (begun.keyedRequest?.body_fingerprint !== ofBody) return keyReused(id)
      const first = (await answerOf(begun)) ?? (await answerKept())
      if (first) {
        await app.readModels.tellOf(decider, begun.position)
        return { fresh: false, answer: first }
      }
    }
    if (!begun && call.context.unlessRepeated) throw call.context.unlessRepeated
    try {
      const answer = await create(begun ? context : creating, begun?.state ?? null)
      if (answer.stored === undefined) return { fresh: true, answer }
      const kept = orThrow(
        await app.commands.execute(idempotencyKey, ofKey, answerCommand(ofKey, answer), context),
      )
      if (kept.events.length > 0) return { fresh: true, answer }
      return { fresh: false, answer: await keptAnswer(call, kept.state) }
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
