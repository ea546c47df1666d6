import { z } from 'zod'
import * as operators from '../../../application/access/operators.ts'
import { FIRST_ADMIN, OPERATOR_ROLES } from '../../../domain/access/operators.ts'
import { isId } from '../../../domain/kernel/ids.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { create, once, REPEATED } from '../../endpoints/creations.ts'
import { ofOne, optional, text, time, word } from '../../endpoints/fields.ts'
import { contextOf, endpoint, keyed } from '../host/api.ts'
import { reason, shownTime } from '../host/values.ts'

const role = word(...OPERATOR_ROLES)

const Operator = z
  .object({
    operator_id: z
      .string()
      .describe(`What events of the operator name as their actor; \`${FIRST_ADMIN}\` is the first admin`),
    name: z.string(),
    role,
    status: z.enum(['active', 'expired', 'revoked']),
    created_at: shownTime().nullable().describe('Null of the first admin'),
    expires_at: shownTime().nullable().describe('From then on the token is refused; null: never'),
  })
  .meta({ id: 'Operator' })
const OperatorWithToken = Operator.extend({
  token: z.string().describe('Shown this once'),
}).meta({ id: 'OperatorWithToken' })

const one = ofOne('operator_id', 'operator', (text) => isId(text) || text === FIRST_ADMIN)
const ADMINS = { roles: ['admin'] } as const
const LAST = 'The operator is the last active admin whose token does not expire'

export const operatorAccessEndpoints = [
  endpoint({
    ...ADMINS,
    operation: 'createOperator',
    route: 'POST /operators',
    summary: 'Create an operator with a role; the token is shown once',
    body: z.object({
      name: text(200).describe('Who it is; kept sealed'),
      role: role.describe(
        '`admin`: everything; `operator`: all but operators; `auditor`: reads everything, reveals for a reason; `support`: reads what is masked',
      ),
      expires_at: optional(time()).describe('From then on the token is refused; left out: never'),
    }),
    idempotent: REPEATED.secret,
    answers: { 201: OperatorWithToken },
    refuses: { 400: ['expiry_past'], 409: ['already_created'] },
    handle: (call) =>
      create(keyed(call), 'POST /operators', {
        create: (context) => operators.create(call.host.app, call.body, context),
        idOf: ({ operator }) => operator.operator_id,
        show: withToken,
        repeated: null,
      }),
  }),
  endpoint({
    operation: 'listOperators',
    route: 'GET /operators',
    summary: 'List the operators in the order of their creation, without their tokens',
    answers: { 200: z.array(Operator).readonly() },
    columns: 'operator_id name role status created_at expires_at',
    handle: ({ host }) => operators.listOperators(host.app),
  }),
  endpoint({
    operation: 'showMe',
    route: 'GET /operators/me',
    summary: 'Show whose token the request has',
    answers: { 200: Operator },
    async handle({ host, caller }) {
      const all = await operators.listOperators(host.app)
      return all.find(({ operator_id }) => operator_id === caller.operator_id)!
    },
  }),
  endpoint({
    ...ADMINS,
    operation: 'rotateOperator',
    route: 'POST /operators/{operator_id}/rotate',
    summary: 'Give an operator a new token, shown once; the old one ends at once',
    description:
      'Of the first admin the old one is the setting `OPERATOR_TOKEN`: it opens nothing any more, whatever it says.',
    ...one,
    body: z.object({
      expires_at: time()
        .nullish()
        .describe('From then on the token is refused; null: never; left out: as it is'),
    }),
    idempotent: REPEATED.secret,
    answers: { 200: OperatorWithToken },
    errors: {
      ...one.errors,
      409: `The operator is revoked, or \`expires_at\` is named and ${LAST.toLowerCase()}`,
    },
    refuses: { 400: ['expiry_past'], 409: ['already_created', 'last_admin', 'operator_revoked'] },
    handle(call) {
      const { operator_id } = call.params
      return once(keyed(call), { verb: 'rotate operator', secretOf: operator_id }, async (context) => {
        const rotated = await operators.rotate(call.host.app, operator_id, call.body.expires_at, context)
        return isRejection(rotated) ? rotated : withToken(rotated)
      })
    },
  }),
  endpoint({
    ...ADMINS,
    operation: 'revokeOperator',
    route: 'POST /operators/{operator_id}/revoke',
    summary: 'End an operator for good, from the next request on',
    ...one,
    body: z.object({ reason: reason() }),
    answers: { 200: Operator },
    errors: { ...one.errors, 409: LAST },
    refuses: { 409: ['last_admin'] },
    handle: (call) =>
      operators.revoke(call.host.app, call.params.operator_id, call.body.reason ?? null, contextOf(call)),
  }),
]

function withToken({ operator, token }: operators.IssuedOperator) {
  return { ...operator, token }
}
