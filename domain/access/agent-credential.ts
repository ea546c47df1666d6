import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { secret } from '../kernel/sealed.ts'

/**
 * A credential of an AI agent on the tool server. A reservation of its key leads from a presented key to
 * its stream; ids of earlier credentials are the first 24 hex characters of the key's SHA-256.
 */
export const AgentCredentialIssued = eventType('AgentCredentialIssued', {
  credential_id: id(),
  agent_name: z.string(),
  entity_type: z.enum(['payroll_company', 'employer']),
  entity_id: z.string(),
  sandbox: z.boolean(),
  /** SHA-256 of the key, hex. */
  key_hash: secret(),
  api_key_prefix: z.string(),
  created_by: z.string().nullable(),
})
export const AgentCredentialRevoked = eventType('AgentCredentialRevoked', { credential_id: id() })

const events = [AgentCredentialIssued, AgentCredentialRevoked] as const
export type AgentCredentialEvent = EventOf<(typeof events)[number]>
export interface AgentCredential extends z.output<typeof AgentCredentialIssued.schema> {
  readonly status: 'active' | 'revoked'
}
export type AgentCredentialCommand =
  | { readonly type: 'Issue'; readonly data: z.output<typeof AgentCredentialIssued.schema> }
  | { readonly type: 'Revoke' }

export const agentCredential: Decider<AgentCredential | null, AgentCredentialCommand, AgentCredentialEvent> =
  {
    category: 'agentCredential',
    events,
    initialState: null,
    evolve(state, event) {
      return event.type === 'AgentCredentialIssued'
        ? { ...event.data, status: 'active' }
        : { ...state!, status: 'revoked' }
    },
    decide(command, state): readonly AgentCredentialEvent[] | Rejection {
      if (command.type === 'Issue') {
        if (state) return reject('conflict', 'credential_exists', 'The credential exists already')
        return [AgentCredentialIssued.of(command.data)]
      }
      if (!state) return reject('not_found', 'credential_not_found', 'No such credential')
      if (state.status === 'revoked') return []
      return [AgentCredentialRevoked.of({ credential_id: state.credential_id })]
    },
  }
