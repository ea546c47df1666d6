import type { Rejection } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  type FinancingStatus,
  financingStatusAt,
  sessionClosed,
  sessionStatusAt,
} from '../../../domain/payments/financing/financing-session.ts'
import {
  FinancingInvitationBegun,
  FinancingSessionCreated,
} from '../../../domain/payments/financing/financing-session-events.ts'
import type { Application } from '../../commands/application.ts'
import { opened } from '../../commands/sealed-fields.ts'

/** What became of an invitation; one of which nobody knows what came has failed. */
export interface ShownInvitation {
  readonly to: string
  readonly status: 'sent' | 'failed'
  readonly at: string
}

/** A financing session as its partner sees it, with its payer. */
export interface ShownFinancingSession {
  readonly session: FinancingSession
  readonly status: ReturnType<typeof sessionStatusAt>
  readonly customer: { readonly name: string; readonly email: string; readonly phone: string | null }
  readonly invitation: ShownInvitation | null
}

/** How the financing of a session stands, in the words of all its pages. */
export interface ShownFinancing {
  readonly status: FinancingStatus
  /** While quotes are open. */
  readonly quote_count?: number
}

/** How the financing of a session stands. Nobody is asked, and nothing is changed by that. */
export function showFinancingStatus(
  { clock }: Pick<Application, 'clock'>,
  session: FinancingSession,
): ShownFinancing {
  const status = financingStatusAt(session, clock.now())
  return status === 'quote_ready' ? { status, quote_count: session.request!.quotes.length } : { status }
}

/** The same of a session that is open, or a conflict. */
export function openFinancingStatus(
  app: Pick<Application, 'clock'>,
  session: FinancingSession,
): ShownFinancing | Rejection {
  return session.cancelled_at === null ? showFinancingStatus(app, session) : sessionClosed()
}

/** Opens what is sealed of a session; `(erased)` where the employer's data key was destroyed. */
export async function showFinancingSession(
  { personalData, clock }: Pick<Application, 'personalData' | 'clock'>,
  session: FinancingSession,
): Promise<ShownFinancingSession> {
  const { financing_session_id, customer, invitation } = session
  const { data } = await opened(personalData, [
    { schema: FinancingSessionCreated.schema, data: { financing_session_id, customer } },
    ...(invitation
      ? [
          {
            schema: FinancingInvitationBegun.schema,
            data: { financing_session_id, to: invitation.to },
          },
        ]
      : []),
  ])
  const [plain, invited] = data as readonly [Pick<ShownFinancingSession, 'customer'>, { to: string }?]
  return {
    session,
    status: sessionStatusAt(session, clock.now()),
    customer: plain.customer,
    invitation:
      invitation && invited
        ? { to: invited.to, status: invitation.status ?? 'failed', at: invitation.at }
        : null,
  }
}
