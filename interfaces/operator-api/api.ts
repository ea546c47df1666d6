import { z } from 'zod'
import type { Application } from '../../application/application.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { UnreadableEvent } from '../../application/event-registry.ts'
import { runClaimed } from '../../application/idempotency/claims.ts'
import { createOnce } from '../../application/idempotency/creations.ts'
import type { IdempotentOutcome } from '../../application/idempotency/keyed-call.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import { recordOperatorAction } from '../../application/operations/operator-actions.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { ProjectionError } from '../../projections/runtime/projections.ts'
import type { Api } from '../endpoints/api.ts'
import { type Access, Answer, accepted, type Call, endpointsOf } from '../endpoints/endpoint.ts'
import type { OperatorGate } from '../http/bearer.ts'
import { SMALL_BODY } from '../http/body.ts'
import { HttpError, refusalOf, writeEnvelopeError } from '../http/errors.ts'
import type { OperatorServices } from './services.ts'

/** What handlers of the operator API work with. */
export interface OperatorHost {
  readonly app: Application
  readonly services: OperatorServices
  readonly gate: OperatorGate
}

const OF_PROJECTIONS = { not_found: 404, conflict: 409, unavailable: 503 } as const

/** Issues parties, policies and credentials, runs the machinery, and shows auditors what the log holds. */
export const operatorApi: Api = {
  name: 'operator',
  title: 'Operator API',
  description:
    'For operators and auditors: tenants, parties, policies and credentials; projections, work and the clock; ' +
    'streams of events and the proof that nothing was altered.',
  prefixes: ['/ops/v1'],
  securitySchemes: { operator: { type: 'http', scheme: 'bearer', description: 'The operator token' } },
  bodyLimit: SMALL_BODY,
  takesEmptyBodies: true,
  objectOf(value) {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>
    }
    throw badRequest('The body must be a JSON object')
  },
  unreadable: () => null,
  refuse(faults) {
    // what is wrong with a list as a whole goes before what is wrong in it
    const whole = faults.find(({ field }) => faults[0]!.field.startsWith(`${field}[`))
    const { field, message } = whole ?? faults[0]!
    return badRequest(`${field} ${message}`.trim())
  },
  rejected: (rejection) => refusalOf(rejection, null),
  refusalOf(error) {
    if (error instanceof UnreadableEvent) return new HttpError(409, null, error.message)
    if (!(error instanceof ProjectionError)) return null
    const headers: Record<string, string> = error.kind === 'unavailable' ? { 'Retry-After': '5' } : {}
    return new HttpError(OF_PROJECTIONS[error.kind], null, error.message, headers)
  },
  writeError: writeEnvelopeError,
  errorBody: z.object({ ok: z.literal(false), error: z.string(), message: z.string() }),
  envelope: {
    wrap: (data, pagination) =>
      pagination === undefined ? { ok: true, data } : { ok: true, data, pagination },
    schema: (data, pagination) => z.object({ ok: z.literal(true), data, ...(pagination && { pagination }) }),
  },
}

export const endpoint = endpointsOf<OperatorHost>(operatorApi)

/** The bearer of the operator token, and nobody else. */
export const operator: Access<Pick<OperatorHost, 'gate'>, null> = {
  security: [{ operator: [] }],
  errors: {
    401: 'The operator token is missing or wrong',
    403: 'The key of an agent does not open this API',
    429: 'Too many requests without the operator token',
  },
  async identify({ gate }, { request, response }) {
    await gate.require(request, response)
    return null
  },
}

/** A call of the operator, whatever the host. */
type OperatorCall = Call<Pick<OperatorHost, 'app'>, null, unknown, unknown, unknown>

/** The context of a command of a request, with a new command id. */
export function contextOf({ host, requestId }: Pick<OperatorCall, 'host' | 'requestId'>): CommandContext {
  return {
    actor: { type: 'operator', id: 'operator' },
    tenantId: null,
    environment: null,
    correlationId: requestId,
    commandId: host.app.randomness.commandId(),
  }
}

/** What a POST that creates something does; it honours `Idempotency-Key`. */
interface Creation<Created, Shown> {
  /** Why it would be refused, asked before a key is claimed; absent where `create` is one append. */
  readonly refuse?: (context: CommandContext) => Promise<Rejection | null>
  readonly create: (context: CommandContext) => Promise<Created | Rejection>
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

/** Creates something, once for a key. */
export function create<Created, Shown>(
  call: OperatorCall,
  operation: string,
  creation: Creation<Created, Shown> & { readonly repeated: null },
): Promise<Answer<201, Shown> | Rejection>
export function create<Created, Shown>(
  call: OperatorCall,
  operation: string,
  creation: Creation<Created, Shown>,
): Promise<Answer<200 | 201, Shown> | Rejection>
export async function create<Created, Shown>(
  call: OperatorCall,
  operation: string,
  { refuse, create, idOf, show, repeated }: Creation<Created, Shown>,
): Promise<Answer<200 | 201, Shown> | Rejection> {
  const { app } = call.host
  const context = contextOf(call)
  const { key } = call
  if (key === null) return new Answer(201, await show(accepted(await create(context))))

  const request = { caller: 'operator', operation, key, context, requestHash: await requestHash(call.sent) }
  const outcome =
    typeof repeated === 'object' && repeated !== null
      ? await createOnce(app, request, {
          decider: repeated,
          create: async (within) => ({ status: 201, body: await show(accepted(await create(within))) }),
          answerOf: async ({ state }) => ({ status: 201, body: await show(state!) }),
        })
      : await runClaimed(
          app,
          {
            ...request,
            secretAnswer: repeated === null,
            restore: (stored) => repeated?.((stored as { id: string }).id),
            check: async (claimedAs) =>
              (await refuse?.({ ...context, commandId: claimedAs ?? context.commandId })) ?? null,
          },
          async (within) => {
            const made = await create(within)
            if (isRejection(made)) return made
            const id = idOf(made)
            return { status: 201, body: await show(made), stored: { id }, createdId: id }
          },
        )
  return answerOf(outcome)
}

/**
 * Answers a verb that hands out a secret, once for a key: again it is a conflict that names what the secret is of.
 * @param what the verb, and the id of what it is done with.
 */
export async function handOut<Shown>(
  call: OperatorCall,
  what: { readonly verb: string; readonly id: string },
  run: (context: CommandContext) => Promise<Shown | Rejection>,
): Promise<Answer<200, Shown> | Rejection> {
  const context = contextOf(call)
  const { key } = call
  if (key === null) return new Answer(200, accepted(await run(context)))
  const { verb, id } = what
  const outcome = await runClaimed(
    call.host.app,
    {
      ...{ caller: 'operator', operation: `${verb} ${id}`, key, requestHash: '', context },
      secretAnswer: true,
    },
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

/** The aggregate that an id of a path names. @throws HttpError 404. @param isOne whether a text can be such an id. */
export async function loaded<State, Command, Event extends DomainEvent>(
  { app }: Pick<OperatorHost, 'app'>,
  decider: Decider<State | null, Command, Event>,
  id: string,
  what: string,
  isOne: (text: string) => boolean = isId,
): Promise<State> {
  const { state } = isOne(id) ? await app.commands.load(decider, id) : { state: null }
  if (state === null) throw notFound(`There is no such ${what}`)
  return state
}

/** Records what the operator does, before it is done. Details carry no personal data and no secrets. */
export async function record(
  call: Pick<OperatorCall, 'host' | 'requestId'>,
  action: string,
  target: string,
  details: Readonly<Record<string, string | number | null>> = {},
): Promise<void> {
  await recordOperatorAction(call.host.app, { action, target, details }, contextOf(call))
}

/** Refuses a change of what stays as it was made; a change may repeat it. @throws HttpError 400. */
export function refuseFixed(
  sent: Readonly<Record<string, unknown>>,
  fixed: Readonly<Record<string, unknown>>,
): void {
  for (const [name, value] of Object.entries(fixed)) {
    if (Object.hasOwn(sent, name) && sent[name] !== value) throw badRequest(`${name} cannot be changed`)
  }
}

/** A refusal of the request's shape; the message begins with the field's name. */
export function badRequest(message: string): HttpError {
  return new HttpError(400, null, message)
}

/** The refusal of what the present state or settings do not allow. */
export function conflict(message: string): HttpError {
  return new HttpError(409, null, message)
}

/** The refusal of an id or name that names nothing. */
export function notFound(message: string): HttpError {
  return new HttpError(404, null, message)
}
