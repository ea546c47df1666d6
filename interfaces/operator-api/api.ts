import { z } from 'zod'
import type { Application } from '../../application/application.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { UnreadableEvent } from '../../application/event-registry.ts'
import { runClaimed } from '../../application/idempotency/claims.ts'
import { createOnce } from '../../application/idempotency/creations.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
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
  refuse: ([fault]) => badRequest(`${fault!.field} ${fault!.message}`.trim()),
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
export async function create<Created, Shown>(
  call: OperatorCall,
  operation: string,
  { create, idOf, show, repeated }: Creation<Created, Shown>,
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
          },
          async (within) => {
            const made = accepted(await create(within))
            const id = idOf(made)
            return { status: 201, body: await show(made), stored: { id }, createdId: id }
          },
        )
  const { status, body, replayed } = accepted(outcome)
  return new Answer(status as 200 | 201, body as Shown, { replayed })
}

/** A refusal of the request's shape; the message begins with the field's name. */
export function badRequest(message: string): HttpError {
  return new HttpError(400, null, message)
}

/** The refusal of an id or name that names nothing. */
export function notFound(message: string): HttpError {
  return new HttpError(404, null, message)
}
