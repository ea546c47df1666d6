import {
  PaymentSessionCreated,
  PaymentSessionInvited,
} from '../../../domain/payments/sessions/payment-session-events.ts'
import {
  type PaymentSession,
  type SessionStatus,
  sessionStatusAt,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import { opened } from '../../commands/sealed-fields.ts'
import type { Customer } from './create-session.ts'

/** A session as its partner sees it: the payer is opened, `(erased)` where the employer's data key was destroyed. */
export interface ShownSession {
  readonly session: PaymentSession
  /** As of now: one whose time is over reads `expired`. */
  readonly status: SessionStatus
  readonly customer: Customer
  readonly invitations: readonly (Omit<PaymentSession['invitations'][number], 'to'> & {
    readonly to: string
  })[]
}

/** Opens what is sealed of sessions, all in one go. */
export async function showSessions(
  { personalData, clock }: Pick<Application, 'personalData' | 'clock'>,
  sessions: readonly PaymentSession[],
): Promise<readonly ShownSession[]> {
  const sealed = sessions.flatMap(({ payment_session_id, customer, invitations }) => [
    { schema: PaymentSessionCreated.schema, data: { payment_session_id, customer } },
    ...invitations.map((one) => ({
      schema: PaymentSessionInvited.schema,
      data: { payment_session_id, ...one },
    })),
  ])
  const { data } = await opened(personalData, sealed)
  const now = clock.now()
  let next = 0
  return sessions.map((session) => {
    const { customer } = data[next] as Pick<ShownSession, 'customer'>
    const invitations = data.slice(
      next + 1,
      next + 1 + session.invitations.length,
    ) as ShownSession['invitations']
    next += 1 + session.invitations.length
    return { session, status: sessionStatusAt(session, now), customer, invitations }
  })
}

/** One session as its partner sees it. */
export async function showSession(
  app: Pick<Application, 'personalData' | 'clock'>,
  session: PaymentSession,
): Promise<ShownSession> {
  return (await showSessions(app, [session]))[0]!
}
