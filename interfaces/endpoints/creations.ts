import type { z } from 'zod'
import type { Application } from '../../application/commands/application.ts'
import type { CommandContext } from '../../application/commands/command-context.ts'
import { type KeyedCall, type KeyedWork, oncePerKey } from '../../application/commands/keyed-call.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { Answer } from './endpoint.ts'

/** A request that may carry an `Idempotency-Key`, and whose. */
export interface KeyedRequest extends Omit<KeyedCall, 'operation'> {
  readonly app: Application
}

/** What a POST that creates something does; it honours `Idempotency-Key`. */
type Creation<Created, Shown, Prepared> = Pick<KeyedWork<Prepared, never>, 'prepare'> & {
  readonly create: (context: CommandContext, prepared: Prepared) => Promise<Created | Rejection>
  readonly show: (created: Created) => Promise<Shown> | Shown
} & (
    | {
        /** The one aggregate that is created: a repeated key is answered by it, as it began. */
        readonly repeated: Decider<Created | null, never>
      }
    | {
        readonly idOf: (created: Created) => string
        /** What a repeated key is answered where several streams are written; null where a secret was handed out. */
        readonly repeated: ((id: string) => Promise<Shown>) | null
      }
  )

export const REPEATED = {
  answered: 'The same key and body are answered as the first time, with 200; another body is 409',
  secret: 'The same key and body are 409, which names the id: the secret was handed out once',
} as const

/** What a creation declares that is answered again: 201, and 200 where the key was used before. */
export function created<Schema extends z.ZodType>(schema: Schema) {
  return { idempotent: REPEATED.answered, answers: { 201: schema, 200: schema } } as const
}

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
export function create<Created, Shown, Prepared>(
  request: KeyedRequest,
  operation: string,
  creation: Creation<Created, Shown, Prepared>,
): Promise<Answer<200 | 201, Shown> | Rejection> {
  const { prepare, create, show } = creation
  const run = async (context: CommandContext, prepared: Prepared) => {
    const made = await create(context, prepared)
    if (isRejection(made)) return made
    const body = await show(made)
    if (!('idOf' in creation)) return { status: 201, body }
    const createdId = creation.idOf(made)
    return { status: 201, body, stored: { id: createdId }, createdId }
  }
  if (!('idOf' in creation)) {
    const { repeated: decider } = creation
    const answerOf = async ({ state }: { readonly state: Created | null }) => ({
      status: 201,
      body: await show(state!),
    })
    return answered(request, operation, { prepare, run, creates: { decider, answerOf } })
  }
  const { repeated } = creation
  const restore = (stored: unknown) => repeated?.((stored as { readonly id: string }).id)
  return answered(request, operation, { prepare, run, restore, secretAnswer: repeated === null })
}

/** What was created, or is there already by a key of its own in the body. */
export interface Found<Shown> {
  readonly isNew: boolean
  readonly id: string
  readonly shown: Shown
}

/** Creates something that a key in the body may name already: then it is answered with 200. Once for a key of the header. */
export async function createOrFind<Shown, Prepared>(
  request: KeyedRequest,
  operation: string,
  {
    create,
    ...checks
  }: Pick<KeyedWork<Prepared, never>, 'prepare' | 'tells'> & {
    readonly create: (context: CommandContext, prepared: Prepared) => Promise<Found<Shown> | Rejection>
  },
): Promise<Answer<200 | 201, Shown> | Rejection> {
  const outcome = await answered<200 | 201, Shown, Prepared>(request, operation, {
    ...checks,
    async run(context, prepared) {
      const found = await create(context, prepared)
      if (isRejection(found)) return found
      return { status: found.isNew ? 201 : 200, body: found.shown, createdId: found.id }
    },
  })
  if (isRejection(outcome)) return outcome
  const { status, data, options } = outcome
  return new Answer(status, data, { replayed: options.replayed || status === 200 })
}

/**
 * Does something that is answered with 200, once for a key: the same again is answered as the first time.
 * @param what the operation. Of a verb that hands out a secret, that and the id of whose: a key that was used is a conflict
 *   that names it.
 * @param prepare refuses the request before its key is claimed.
 */
export function once<Shown>(
  request: KeyedRequest,
  what: string | { readonly verb: string; readonly secretOf: string },
  run: (context: CommandContext) => Promise<Shown | Rejection>,
  prepare?: KeyedWork<undefined, never>['prepare'],
): Promise<Answer<200, Shown> | Rejection> {
  const secretOf = typeof what === 'object' ? what.secretOf : null
  const sent = secretOf === null ? request.sent : ''
  return answered({ ...request, sent }, typeof what === 'object' ? `${what.verb} ${secretOf}` : what, {
    prepare,
    async run(context) {
      const body = await run(context)
      return isRejection(body) ? body : { status: 200, body, ...(secretOf && { createdId: secretOf }) }
    },
    secretAnswer: secretOf !== null,
  })
}

async function answered<Status extends number, Shown, Prepared = undefined, State = never>(
  { app, ...call }: KeyedRequest,
  operation: string,
  work: KeyedWork<Prepared, State>,
): Promise<Answer<Status, Shown> | Rejection> {
  const outcome = await oncePerKey(app, { ...call, operation }, work)
  if (isRejection(outcome)) return outcome
  const { status, body, replayed } = outcome
  return new Answer(status as Status, body as Shown, { replayed })
}
