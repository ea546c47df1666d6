import { z } from 'zod'
import { type DataOf, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { sealContext, sealed, secret } from '../../kernel/sealed.ts'

/**
 * What happens to a financing session. Amounts are cents, times ISO 8601. Who pays, and who is insured, is sealed under
 * the employer's data key.
 */
const cents = () => z.int().min(0)
const session = { financing_session_id: id() }
const personal = (eventName: string) => () =>
  sealed({
    subject: 'employer',
    boundTo: ({ data, path }) =>
      sealContext(`financingSession-${data.financing_session_id}`, eventName, path.join('.')),
  })
const payer = personal('FinancingSessionCreated')
const insured = personal('FinancingRequested')
const recipient = personal('FinancingInvitationBegun')

export const quoteSchema = z.object({
  /** The provider's name of the quote. */
  quote_key: z.string().regex(/^[A-Za-z0-9_-]{1,100}$/),
  down_payment_cents: cents(),
  financed_cents: cents(),
  finance_charge_cents: cents(),
  installments: z.int().min(1),
  /** Of all but the last. */
  installment_cents: cents(),
  last_installment_cents: cents(),
})
export type FinancingQuote = z.output<typeof quoteSchema>

export const FinancingSessionCreated = eventType('FinancingSessionCreated', {
  ...session,
  tenant_id: id(),
  environment: environment(),
  /** The key that created it. */
  client_id: z.string(),
  employer_id: id(),
  carrier_id: id(),
  policy_id: id(),
  amount_cents: cents(),
  premium_cents: cents(),
  fee_cents: cents(),
  line_items: z.array(z.object({ label: z.string(), amount_cents: cents() })),
  description: z.string().nullable(),
  customer: z.object({ name: payer(), email: payer(), phone: payer().nullable() }),
  single_use: z.boolean(),
  /** Of the tenant's checkout settings. */
  config_version: z.int().min(1),
  created_by: z.string().nullable(),
  /** Keyed fingerprint of the request: another one under the same key is a conflict. */
  request_fingerprint: secret(),
  /** SHA-256 of the tokens, hexadecimal; they lie in the vault. */
  access_token_hash: secret(),
  checkout_token_hash: secret(),
  created_at: time(),
  expires_at: time(),
})
/** A partner asks for quotes. From now on they are asked for once. */
export const FinancingRequested = eventType('FinancingRequested', {
  ...session,
  request_fingerprint: secret(),
  insured: z.object({
    business_name: insured(),
    address: insured(),
    city: insured(),
    state: insured(),
    zip_code: insured(),
  }),
  requested_at: time(),
})
/** The request is about to be sent to the provider: from now on it may have got there. */
export const FinancingSubmissionBegun = eventType('FinancingSubmissionBegun', {
  ...session,
  attempt: z.int().min(1),
  begun_at: time(),
})
/** The provider was not reached: it knows nothing of the request. */
export const FinancingSubmissionUnsent = eventType('FinancingSubmissionUnsent', {
  ...session,
  attempt: z.int().min(1),
  at: time(),
})
/** The provider has the request, and works on it. */
export const FinancingSubmitted = eventType('FinancingSubmitted', {
  ...session,
  attempt: z.int().min(1),
  provider_request_id: z.string(),
  submitted_at: time(),
})
export const holdReason = z.enum([
  /** The provider did not answer in time: it may have the request. */
  'no_answer',
  /** The service stopped while it was being sent: the provider may have it. */
  'interrupted',
  'refused',
  /** The provider wants to look at it. */
  'review',
])
/** What became of the request has to be looked at; it is not sent again. */
export const FinancingHeld = eventType('FinancingHeld', { ...session, reason: holdReason, held_at: time() })
/** The provider's quotes. None of them is accepted or paid. */
export const FinancingQuotesReceived = eventType('FinancingQuotesReceived', {
  ...session,
  quotes: z.array(quoteSchema),
  received_at: time(),
})
/** Its time is over, or the provider's is. */
export const FinancingExpired = eventType('FinancingExpired', {
  ...session,
  by: z.enum(['time', 'provider']),
  expired_at: time(),
})
/** The provider says that a down payment was received. */
export const FinancingDownPaymentReported = eventType('FinancingDownPaymentReported', {
  ...session,
  notice_id: z.string(),
  amount_cents: cents(),
  /** The quote that it is the down payment of; null: of none. */
  quote_key: z.string().nullable(),
  reported_at: time(),
})
/** An invitation is about to be sent: from now on it may have got there, and no other one is sent. */
export const FinancingInvitationBegun = eventType('FinancingInvitationBegun', {
  ...session,
  to: recipient(),
  /** Keyed fingerprint of the recipient. */
  to_fingerprint: secret(),
  /** Where the page is, with `{token}` for the token; on the service's own host, its path. */
  page_address: z.string(),
  begun_at: time(),
})
export const FinancingInvitationEnded = eventType('FinancingInvitationEnded', {
  ...session,
  status: z.enum(['sent', 'failed']),
  at: time(),
})
export const FinancingSessionCancelled = eventType('FinancingSessionCancelled', {
  ...session,
  cancelled_at: time(),
})

export const financingSessionEvents = [
  FinancingSessionCreated,
  FinancingRequested,
  FinancingSubmissionBegun,
  FinancingSubmissionUnsent,
  FinancingSubmitted,
  FinancingHeld,
  FinancingQuotesReceived,
  FinancingExpired,
  FinancingDownPaymentReported,
  FinancingInvitationBegun,
  FinancingInvitationEnded,
  FinancingSessionCancelled,
] as const
export type FinancingSessionEvent = EventOf<(typeof financingSessionEvents)[number]>
export type FinancingSessionData<Type extends FinancingSessionEvent['type']> = DataOf<
  FinancingSessionEvent,
  Type
>
