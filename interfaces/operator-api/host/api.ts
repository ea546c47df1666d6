import { z } from 'zod'
import { LogDiffers, UnknownSignature } from '../../../application/audit/log-tree.ts'
import type { Application } from '../../../application/commands/application.ts'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import { UnreadableEvent } from '../../../application/commands/event-registry.ts'
import { recordOperatorAction } from '../../../application/operations/operator-actions.ts'
import type { Decider } from '../../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../../domain/kernel/event-type.ts'
import { isId } from '../../../domain/kernel/ids.ts'
import { ProjectionError } from '../../../projections/runtime/projections.ts'
import type { Api } from '../../endpoints/api.ts'
import type { KeyedRequest } from '../../endpoints/creations.ts'
import { type Access, type Call, endpointsOf } from '../../endpoints/endpoint.ts'
import { WITH_ENVELOPE } from '../../endpoints/envelope.ts'
import { machineReadable } from '../../endpoints/error-codes.ts'
import { type NamedThing, noSuch } from '../../endpoints/not-found.ts'
import type { OperatorGate } from '../../http/bearer.ts'
import { SMALL_BODY } from '../../http/body.ts'
import { type ErrorCode, type HttpCode, HttpError, refusalOf } from '../../http/errors.ts'
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
  ...WITH_ENVELOPE,
  rejected: (rejection) => refusalOf(rejection, null),
  refusalOf(error) {
    const refusal = WITH_ENVELOPE.refusalOf(error)
    if (refusal) return refusal
    const isOfLog = error instanceof LogDiffers || error instanceof UnknownSignature
    if (isOfLog || error instanceof UnreadableEvent) {
      return new HttpError(409, null, error.message)
    }
    if (!(error instanceof ProjectionError)) return null
    const headers: Record<string, string> = error.kind === 'unavailable' ? { 'Retry-After': '5' } : {}
    return new HttpError(OF_PROJECTIONS[error.kind], null, error.message, headers)
  },
  errors: { 409: 'An event of a stream that is needed cannot be read' },
  errorBody: z.object({ ok: z.literal(false), error: z.string(), message: z.string(), ...machineReadable }),
}

/** The bearer of the operator token. */
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

export const endpoint = endpointsOf<OperatorHost, null>(operatorApi, operator)

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

/** A request of the operator that may carry a key. */
export function keyed(call: OperatorCall): KeyedRequest {
  const { host, key, sent, unlessRepeated } = call
  const context = { ...contextOf(call), unlessRepeated }
  return { app: host.app, caller: 'operator', key, sent, context }
}

/** The aggregate that an id of a path names. @throws HttpError 404. @param isOne whether a text can be such an id. */
export async function loaded<State, Command, Event extends DomainEvent>(
  { app }: Pick<OperatorHost, 'app'>,
  decider: Decider<State | null, Command, Event>,
  id: string,
  what: NamedThing,
  isOne: (text: string) => boolean = isId,
): Promise<State> {
  const { state } = isOne(id) ? await app.commands.load(decider, id) : { state: null }
  if (state === null) throw noSuch(what)
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

/** A refusal of the request's shape; the message begins with the field's name. @param code what is wrong with it. */
export function badRequest(field: string, message: string, code: HttpCode = 'field_invalid'): HttpError {
  return new HttpError(400, null, message, { code, field })
}

/** The refusal of what the present state or settings do not allow. */
export function conflict(message: string): HttpError {
  return new HttpError(409, null, message)
}

/** The refusal of an id or name that names nothing. */
export function notFound(message: string, code?: ErrorCode): HttpError {
  return new HttpError(404, null, message, { code })
}
