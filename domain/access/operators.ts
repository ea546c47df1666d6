import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType, time } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { type Sealed, sealContext, sealed, secret } from '../kernel/sealed.ts'

/** What operators may do, see docs/operators/operators.md. */
export const OPERATOR_ROLES = ['admin', 'operator', 'auditor', 'support'] as const
export type OperatorRole = (typeof OPERATOR_ROLES)[number]

/** The id of the first admin, whose events of before there were others carry it too. */
export const FIRST_ADMIN = 'operator'
const operatorId = () => z.union([z.literal(FIRST_ADMIN), id()])

export const OperatorCreated = eventType('OperatorCreated', {
  operator_id: id(),
  /** Of a person: sealed under a key of its own. */
  name: sealed({
    subject: 'person',
    boundTo: ({ data }) => nameContext(data.operator_id as string),
  }),
  role: z.enum(OPERATOR_ROLES),
  created_at: time(),
  expires_at: time().nullable(),
  /** SHA-256 of the token, hex. */
  token_hash: secret(),
})
export const OperatorTokenRotated = eventType('OperatorTokenRotated', {
  operator_id: operatorId(),
  expires_at: time().nullable(),
  token_hash: secret(),
})
export const OperatorRevoked = eventType('OperatorRevoked', {
  operator_id: operatorId(),
  reason: z.string().nullable(),
})

const events = [OperatorCreated, OperatorTokenRotated, OperatorRevoked] as const
export type OperatorsEvent = EventOf<(typeof events)[number]>

export interface Operator {
  readonly operator_id: string
  /** Null of the first admin. */
  readonly name: Sealed | null
  readonly role: OperatorRole
  /** Null of the first admin. */
  readonly created_at: string | null
  readonly expires_at: string | null
  /** Null while the token of the first admin is the setting's. */
  readonly token_hash: string | null
  readonly status: 'active' | 'revoked'
}
/** Operators by id, in the order of their creation. */
export type Operators = Readonly<Record<string, Operator>>

export type OperatorsCommand =
  | { readonly type: 'Create'; readonly data: z.output<typeof OperatorCreated.schema> }
  | {
      readonly type: 'RotateToken'
      readonly operatorId: string
      readonly tokenHash: string
      /** Undefined: it stays as it is. */
      readonly expiresAt: string | null | undefined
      /** ISO 8601, like all times of events. */
      readonly at: string
    }
  | { readonly type: 'Revoke'; readonly operatorId: string; readonly reason: string | null }

/** Stream id of the one register of operators. */
export const OPERATORS_ID = 'service'

/** What the sealed name of an operator is bound to. */
export function nameContext(operatorId: string): string {
  return sealContext(`operators-${OPERATORS_ID}`, 'OperatorCreated', operatorId)
}

const NEVER_ALONE = reject(
  'conflict',
  'last_admin',
  'The operator is the last active admin whose token does not expire; create another one first',
)
const PAST = reject('invalid', 'expiry_past', 'expires_at must be in the future', 'expires_at')

/**
 * Everybody who may call the operator API: one stream, so that the log itself keeps the last admin. An admin whose
 * token expires is none that can be left alone.
 */
export const operators: Decider<Operators, OperatorsCommand, OperatorsEvent> = {
  category: 'operators',
  events,
  initialState: {
    [FIRST_ADMIN]: {
      operator_id: FIRST_ADMIN,
      name: null,
      role: 'admin',
      created_at: null,
      expires_at: null,
      token_hash: null,
      status: 'active',
    },
  },
  evolve(state, event) {
    const { operator_id } = event.data
    const before = state[operator_id]!
    switch (event.type) {
      case 'OperatorCreated':
        return { ...state, [operator_id]: { ...event.data, status: 'active' } }
      case 'OperatorTokenRotated':
        return { ...state, [operator_id]: { ...before, ...event.data } }
      case 'OperatorRevoked':
        return { ...state, [operator_id]: { ...before, status: 'revoked' } }
    }
  },
  decide(command, state): readonly OperatorsEvent[] | Rejection {
    if (command.type === 'Create') {
      const { data } = command
      if (data.expires_at !== null && data.expires_at <= data.created_at) return PAST
      return [OperatorCreated.of(data)]
    }
    const operator = state[command.operatorId]
    if (!operator) return reject('not_found', 'operator_not_found', 'There is no such operator')
    const { operator_id } = operator
    const isNeeded = !Object.values(state).some((one) => one !== operator && canStayAlone(one))
    if (command.type === 'Revoke') {
      if (operator.status === 'revoked') return []
      if (isNeeded) return NEVER_ALONE
      return [OperatorRevoked.of({ operator_id, reason: command.reason })]
    }
    if (operator.status === 'revoked') {
      return reject('conflict', 'operator_revoked', 'The operator is revoked; its token cannot be rotated')
    }
    const { at, expiresAt: expires_at = operator.expires_at, tokenHash: token_hash } = command
    if (expires_at !== null && expires_at <= at) return PAST
    if (expires_at !== null && isNeeded) return NEVER_ALONE
    return [OperatorTokenRotated.of({ operator_id, expires_at, token_hash })]
  },
}

function canStayAlone({ role, status, expires_at }: Operator): boolean {
  return role === 'admin' && status === 'active' && expires_at === null
}
