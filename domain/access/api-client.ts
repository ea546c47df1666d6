import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { secret } from '../kernel/sealed.ts'

/** A partner's key pair for the REST APIs. The stream id is the client id itself. */
export const ApiClientIssued = eventType('ApiClientIssued', {
  /** `service_live_cli_…` or `service_test_cli_…`. */
  client_id: z.string(),
  tenant_id: id(),
  name: z.string(),
  environment: environment(),
  products: z.array(z.enum(['payroll', 'payments', 'all'])),
  /** Ids the key may act for, or `all`. An empty list grants nothing. */
  carrier_ids: z.union([z.literal('all'), z.array(id())]),
  employer_ids: z.union([z.literal('all'), z.array(id())]),
  request_signing: z.enum(['off', 'required']),
  /** SHA-256 of the client secret, hex. */
  secret_hash: secret(),
})
export const ApiClientSecretRotated = eventType('ApiClientSecretRotated', {
  client_id: z.string(),
  secret_hash: secret(),
})
export const ApiClientDeactivated = eventType('ApiClientDeactivated', { client_id: z.string() })

const events = [ApiClientIssued, ApiClientSecretRotated, ApiClientDeactivated] as const
export type ApiClientEvent = EventOf<(typeof events)[number]>
export interface ApiClient extends z.output<typeof ApiClientIssued.schema> {
  readonly status: 'active' | 'deactivated'
}
export type ApiClientCommand =
  | { readonly type: 'Issue'; readonly data: z.output<typeof ApiClientIssued.schema> }
  | { readonly type: 'RotateSecret'; readonly secretHash: string }
  | { readonly type: 'Deactivate' }

/** Whether the key may act for an employer, by its employer scope. */
export function mayActFor(client: Pick<ApiClient, 'employer_ids'>, employerId: string): boolean {
  return client.employer_ids === 'all' || client.employer_ids.includes(employerId)
}

/** Whether the key may see and report against policies of a carrier, by its carrier scope. */
export function mayUseCarrier(client: Pick<ApiClient, 'carrier_ids'>, carrierId: string): boolean {
  return client.carrier_ids === 'all' || client.carrier_ids.includes(carrierId)
}

export const apiClient: Decider<ApiClient | null, ApiClientCommand, ApiClientEvent> = {
  category: 'apiClient',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'ApiClientIssued':
        return { ...event.data, status: 'active' }
      case 'ApiClientSecretRotated':
        return { ...state!, secret_hash: event.data.secret_hash }
      case 'ApiClientDeactivated':
        return { ...state!, status: 'deactivated' }
    }
  },
  decide(command, state): readonly ApiClientEvent[] | Rejection {
    if (command.type === 'Issue') {
      if (state) return reject('conflict', 'client_exists', 'The client exists already')
      return [ApiClientIssued.of(command.data)]
    }
    if (!state) return reject('not_found', 'client_not_found', 'No such client')
    const { client_id } = state
    if (command.type === 'Deactivate') {
      return state.status === 'deactivated' ? [] : [ApiClientDeactivated.of({ client_id })]
    }
    if (state.status === 'deactivated') {
      return reject(
        'conflict',
        'client_deactivated',
        'The client is deactivated; its secret cannot be rotated',
      )
    }
    return [ApiClientSecretRotated.of({ client_id, secret_hash: command.secretHash })]
  },
}
