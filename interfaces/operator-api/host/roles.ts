import type { IncomingMessage } from 'node:http'
import { OPERATOR_ROLES, type OperatorRole } from '../../../domain/access/operators.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { queryOf } from '../../http/server.ts'

/** What an endpoint declares, as far as it tells whom it is for. */
export type RoledEndpoint = Pick<Endpoint<never>, 'method' | 'roles' | 'query'>

export const CHANGING: readonly OperatorRole[] = ['admin', 'operator']
/** Who sees everything: what is masked to others, and what proves the log. */
export const AUDITING: readonly OperatorRole[] = ['admin', 'operator', 'auditor']

/** Whom an endpoint is for: what it declares; else reads are for everybody, changes for admins and operators. */
export function rolesOf({ method, roles }: RoledEndpoint): readonly OperatorRole[] {
  return roles ?? (method === 'GET' ? OPERATOR_ROLES : CHANGING)
}

/** Whether an endpoint that can opens personal fields for a request. */
export function reveals({ query }: RoledEndpoint, request: IncomingMessage): boolean {
  return query?.shape.reveal !== undefined && queryOf(request).get('reveal') === 'true'
}
