import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { isHashOf } from './tokens.ts'

/** A session that a partner's page shows in a frame; null when there is none of that id. */
export async function embeddedSession(
  { commands }: Pick<Application, 'commands'>,
  id: string,
): Promise<PaymentSession | null> {
  const state = await stateOf({ commands }, paymentSession, id)
  return state?.mode === 'embedded' ? state : null
}

/** Whether a text is the client secret that an embedded session was answered with. */
export function isSecretOf({ token_hash }: PaymentSession, text: string): boolean {
  return token_hash !== null && isHashOf(token_hash, text)
}
