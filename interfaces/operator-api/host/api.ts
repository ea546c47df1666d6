import { z } from 'zod'
import { LogDiffers, UnknownSignature } from '../../../application/audit/log-tree.ts'
import type { Application } from '../../../application/commands/application.ts'
import { type CommandContext, newContext } from '../../../application/commands/command-context.ts'
import { UnreadableEvent } from '../../../application/commands/event-registry.ts'
import { maskedData } from '../../../application/commands/sealed-fields.ts'
import { recordOperatorAction } from '../../../application/operations/operator-actions.ts'
import type { Operator, OperatorRole } from '../../../domain/access/operators.ts'
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
import { nameCaller } from '../../http/answers.ts'
import type { OperatorGate } from '../../http/bearer.ts'
import { SMALL_BODY } from '../../http/body.ts'
import { type ErrorCode, HttpError, refusalOf } from '../../http/errors.ts'
import { AUDITING, type RoledEndpoint, reveals, rolesOf } from './roles.ts'
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
  hasCommands: true,
  securitySchemes: { operator: { type: 'http', scheme: 'bearer', description: 'The token of an operator' } },
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

/** Operators whose roles a declaration names may call. @param rolesOf whom an endpoint is for. */
export function forOperators<Host extends Pick<OperatorHost, 'app' | 'gate'>>(
  rolesOf: (endpoint: RoledEndpoint) => readonly OperatorRole[],
) {
  return (endpoint: RoledEndpoint): Access<Host, Operator> => {
    const roles = rolesOf(endpoint)
    return {
      security: [{ operator: [] }],
      errors: {
        401: 'The token of an operator is missing or wrong, has expired or was revoked',
        403: `The operation is for the roles ${roles.join(', ')}; the key of an agent does not open it`,
        429: 'Too many requests without the token of an operator',
      },
      async identify({ app, gate }, { request, response }) {
        const operator = await gate.require(app, request, response, roles)
        if (reveals(endpoint, request)) gate.requireRole(operator, AUDITING, request, response)
        nameCaller(response, operator.operator_id)
        return operator
      },
      seenBy: (host, { role }) =>
        role === 'support'
          ? { ...host, app: { ...host.app, personalData: maskedData(host.app.personalData) } }
          : host,
    }
  }
}

export const endpoint = endpointsOf<OperatorHost, Operator>(operatorApi, forOperators(rolesOf))

/** A call of an operator, whatever the host. */
type OperatorCall = Call<Pick<OperatorHost, 'app'>, Operator, unknown, unknown, unknown>

/** The context of a command of a request, with a new command id. */
export function contextOf({
  host,
  caller,
  requestId,
}: Pick<OperatorCall, 'host' | 'caller' | 'requestId'>): CommandContext {
  return newContext(host.app, { type: 'operator', id: caller.operator_id }, requestId)
}

/** A request of the operator that may carry a key. */
export function keyed(call: OperatorCall): KeyedRequest {
  const { host, caller, key, sent, unlessRepeated } = call
  const context = { ...contextOf(call), unlessRepeated }
  return { app: host.app, caller: caller.operator_id, key, sent, context }
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
  call: Pick<OperatorCall, 'host' | 'caller' | 'requestId'>,
  action: string,
  target: string,
  details: Readonly<Record<string, string | number | null>> = {},
): Promise<void> {
  await recordOperatorAction(call.host.app, { action, target, details }, contextOf(call))
}

/** Records that personal fields were opened, and why, before they are answered. @throws HttpError 400 for an auditor without a reason. */
export async function recordReveal(
  call: Pick<OperatorCall, 'host' | 'caller' | 'requestId'> & {
    readonly query: { readonly reason?: string | undefined }
  },
  target: string,
  details: Readonly<Record<string, string | number>>,
): Promise<void> {
  const { reason } = call.query
  if (call.caller.role === 'auditor' && reason === undefined) {
    throw badRequest(
      'reason',
      'reason is required: auditors open personal fields for a reason',
      'field_missing',
    )
  }
  await record(call, 'reveal', target, reason === undefined ? details : { ...details, reason })
}

/** A refusal of the request's shape; the message begins with the field's name. @param code what is wrong with it. */
export function badRequest(field: string, message: string, code: ErrorCode = 'field_invalid'): HttpError {
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
