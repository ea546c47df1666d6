import type { Application } from '../../application/commands/application.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import type { Sealed } from '../../domain/kernel/sealed.ts'
import type { PaymentSessionData } from '../../domain/payments/sessions/payment-session-events.ts'
import { newId } from './webhooks.ts'

const HOUR = 3_600_000

/** What a session of 5 dollars is created with, that expires in an hour. */
export function sessionData(
  { clock }: Pick<Application, 'clock'>,
  id: string,
  overrides: Partial<PaymentSessionData<'PaymentSessionCreated'>> = {},
): PaymentSessionData<'PaymentSessionCreated'> {
  const [owner, text] = [newId(), 'sld1.employer/x.AAAA' as Sealed]
  return {
    ...({ payment_session_id: id, tenant_id: owner, environment: 'live', mode: 'link' } as const),
    employer_id: owner,
    carrier_id: owner,
    policy_id: owner,
    replaces: null,
    created_by: null,
    amount_cents: 500,
    premium_cents: 500,
    fee_cents: 0,
    plan: null,
    description: null,
    line_items: [{ label: 'Premium', amount_cents: 500 }],
    single_use: true,
    config_version: 1,
    customer: { name: text, email: text, phone: null },
    token_hash: 'f'.repeat(64),
    token_prefix: 'abcdefgh',
    host_is_custom: false,
    created_at: isoTime(clock.now()),
    expires_at: isoTime(clock.now() + HOUR),
    ...overrides,
  }
}
