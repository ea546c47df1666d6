import { z } from 'zod'
import { MASK } from '../../../application/commands/sealed-fields.ts'
import { listFinancingSessions } from '../../../application/operations/list-kept-things.ts'
import {
  FINANCING_STATUSES,
  type FinancingSession,
  financingSession,
  financingStatusAt,
  sessionStatusAt,
} from '../../../domain/payments/financing/financing-session.ts'
import { id, ofOne } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded, type OperatorHost } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { shownTime, whose } from '../host/values.ts'
import { Payer } from './payer.ts'

const Session = z
  .object({
    financing_session_id: id().describe('The `session_id` of its partner'),
    ...whose,
    policy_id: id(),
    status: z.enum(['pending', 'cancelled', 'expired']),
    financing_status: z.enum(FINANCING_STATUSES).describe('How the request to the provider stands'),
    hold_reason: z.string().nullable().describe('Why somebody has to look at it; null where nobody has to'),
    amount_cents: z.int(),
    customer: Payer,
    provider_request_id: z.string().nullable().describe('Its id at the provider; null until that has it'),
    quotes: z.int().describe('How many the provider has made'),
    invitation_status: z
      .enum(['sent', 'failed'])
      .nullable()
      .describe('Null: nobody was invited, or nobody knows what came of it'),
    created_at: shownTime(),
    expires_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorFinancingSession' })

export const financingSessionEndpoints = [
  endpoint({
    operation: 'listFinancingSessions',
    route: 'GET /financing-sessions',
    summary: 'List sessions of the financing test path, newest first',
    ...listOf(Session, { ...scope, employer_id: narrowing(id()) }),
    columns:
      'financing_session_id created_at environment status financing:financing_status amount_cents employer_id',
    handle: handleList(listFinancingSessions, shown),
  }),
  endpoint({
    operation: 'showFinancingSession',
    route: 'GET /financing-sessions/{financing_session_id}',
    summary: 'Show a session of the financing test path; its payer is masked',
    ...ofOne('financing_session_id', 'financing session'),
    answers: { 200: Session },
    handle: async ({ host, params }) =>
      shown(await loaded(host, financingSession, params.financing_session_id, 'financing session'), host),
  }),
]

function shown(session: FinancingSession, { app }: OperatorHost) {
  const { request, invitation, customer } = session
  const now = app.clock.now()
  return {
    ...session,
    status: sessionStatusAt(session, now),
    financing_status: financingStatusAt(session, now),
    hold_reason: request?.hold_reason ?? null,
    customer: { name: MASK, email: MASK, phone: customer.phone && MASK },
    provider_request_id: request?.provider_request_id ?? null,
    quotes: request?.quotes.length ?? 0,
    invitation_status: invitation?.status ?? null,
  }
}
