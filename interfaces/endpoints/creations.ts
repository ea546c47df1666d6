import type { z } from 'zod'
import type { Application } from '../../application/commands/application.ts'
import { runClaimed } from '../../application/commands/claims.ts'
import type { CommandContext } from '../../application/commands/command-context.ts'
import { createOnce } from '../../application/commands/creations.ts'
import type { IdempotentOutcome } from '../../application/commands/keyed-call.ts'
import { requestHash } from '../../application/commands/request-hash.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { Answer, accepted } from './endpoint.ts'

/** A request that may carry an `Idempotency-Key`, and whose. */
export interface KeyedRequest {
  readonly app: Application
  /** Who sent it: keys of two callers never meet. */
  readonly caller: string
  readonly key: string | null
  /** The body as it was sent. */
  readonly sent: Readonly<Record<string, unknown>>
  /** With a new command id, which counts where there is no key. */
  readonly context: CommandContext
}

/** What a POST that creates something does; it honours `Idempotency-Key`. */
export interface Creation<Created, Shown, Prepared> {
  /** Refuses it, or finds what `create` needs, before a key is claimed; absent where `create` is one append. */
  readonly prepare?: (context: CommandContext) => Promise<Prepared | Rejection>
  readonly create: (context: CommandContext, prepared: Prepared) => Promise<Created | Rejection>
  readonly idOf: (created: Created) => string
  readonly show: (created: Created) => Promise<Shown> | Shown
  /**
   * How a repeated key is answered: by the one aggregate that is created, as it began; where several streams are
   * written, by what is read again under the id; not at all where a secret was handed out.
   */
  readonly repeated: Decider<Created | null, never> | ((id: string) => Promise<Shown>) | null
}

/** The answers of a creation: 201, and 200 where the key was used before. */
export function created<Schema extends z.ZodType>(schema: Schema) {
  return { 201: schema, 200: schema } as const
}

export const REPEATED = {
  answered: 'The same key and body are answered as the first time, with 200; another body is 409',
  secret: 'The same key and body are 409, which names the id: the secret was handed out once',
} as const

/** Creates something, once for a key. @param operation what the key is used for, the same in every release. */
export function create<Created, Shown, Prepared>(
  request: KeyedRequest,
  operation: string,
  creation: Creation<Created, Shown, Prepared> & { readonly repeated: null },
): Promise<Answer<201, Shown> | Rejection>
export function create<Created, Shown, Prepared>(
  request: KeyedRequest,
  operation: string,
  creation: Creation<Created, Shown, Prepared>,
): Promise<Answer<200 | 201, Shown> | Rejection>
export async function create<Created, Shown, Prepared>(
  { app, caller, key, sent, context }: KeyedRequest,
  operation: string,
  { prepare, create, idOf, show, repeated }: Creation<Created, Shown, Prepared>,
): Promise<Answer<200 | 201, Shown> | Rejection> {
  const make = async (within: CommandContext) => {
    const prepared = await prepare?.(within)
    return isRejection(prepared) ? prepared : create(within, prepared as Prepared)
  }
  if (key === null) return new Answer(201, await show(accepted(await make(context))))

  const request = { caller, operation, key, context, requestHash: await requestHash(sent) }
  const outcome =
    typeof repeated === 'object' && repeated !== null
      ? await createOnce(app, request, {
          decider: repeated,
          create: async (within) => ({ status: 201, body: await show(accepted(await make(within))) }),
          answerOf: async ({ state }) => ({ status: 201, body: await show(state!) }),
        })
      : await runClaimed(
          app,
          {
            ...request,
            secretAnswer: repeated === null,
            restore: (stored) => repeated?.((stored as { id: string }).id),
            ...(prepare && { prepare }),
          },
          async (within, prepared) => {
            const made = await create(within, prepared)
            if (isRejection(made)) return made
            const id = idOf(made)
            return { status: 201, body: await show(made), stored: { id }, createdId: id }
          },
        )
  return answerOf(outcome)
}

/** What was created, or is there already by a key of its own in the body. */
export interface Found<Shown> {
  readonly isNew: boolean
  readonly id: string
  readonly shown: Shown
}

/** Creates something that a key in the body may name already: then it is answered with 200. Once for a key of the header. */
export async function createOrFind<Shown, Prepared>(
  { app, caller, key, sent, context }: KeyedRequest,
  operation: string,
  { prepare, create }: Pick<Creation<Found<Shown>, Shown, Prepared>, 'prepare' | 'create'>,
): Promise<Answer<200 | 201, Shown> | Rejection> {
  const run = async (within: CommandContext, prepared: Prepared) => {
    const found = await create(within, prepared)
    if (isRejection(found)) return found
    return { status: found.isNew ? 201 : 200, body: found.shown, createdId: found.id }
  }
  const unkeyed = async () => {
    const prepared = await prepare?.(context)
    return isRejection(prepared) ? prepared : run(context, prepared as Prepared)
  }
  const keyed = async (key: string) =>
    runClaimed(
      app,
      { caller, operation, key, requestHash: await requestHash(sent), context, ...(prepare && { prepare }) },
      run,
    )
  const outcome = key === null ? await unkeyed() : await keyed(key)
  if (isRejection(outcome)) return outcome
  const { status, body, replayed } = { replayed: false, ...outcome }
  return new Answer(status as 200 | 201, body as Shown, { replayed: replayed || status === 200 })
}

/** Does something that is answered with 200, once for a key: the same again is answered as the first time. */
export async function once<Shown>(
  { app, caller, key, sent, context }: KeyedRequest,
  operation: string,
  run: (context: CommandContext) => Promise<Shown | Rejection>,
): Promise<Answer<200, Shown> | Rejection> {
  if (key === null) return new Answer(200, accepted(await run(context)))
  const outcome = await runClaimed(
    app,
    { caller, operation, key, requestHash: await requestHash(sent), context },
    async (within) => {
      const body = await run(within)
      return isRejection(body) ? body : { status: 200, body }
    },
  )
  return answerOf(outcome)
}

/**
 * Answers a verb that hands out a secret, once for a key: again it is a conflict that names what the secret is of.
 * @param what the verb, and the id of what it is done with.
 */
export async function handOut<Shown>(
  { app, caller, key, context }: KeyedRequest,
  { verb, id }: { readonly verb: string; readonly id: string },
  run: (context: CommandContext) => Promise<Shown | Rejection>,
): Promise<Answer<200, Shown> | Rejection> {
  if (key === null) return new Answer(200, accepted(await run(context)))
  const outcome = await runClaimed(
    app,
    { caller, operation: `${verb} ${id}`, key, requestHash: '', context, secretAnswer: true },
    async (within) => {
      const body = await run(within)
      return isRejection(body) ? body : { status: 200, body, createdId: id }
    },
  )
  return answerOf(outcome)
}

function answerOf<Status extends number, Shown>(
  outcome: IdempotentOutcome | Rejection,
): Answer<Status, Shown> | Rejection {
  if (isRejection(outcome)) return outcome
  const { status, body, replayed } = outcome
  return new Answer(status as Status, body as Shown, { replayed })
}
