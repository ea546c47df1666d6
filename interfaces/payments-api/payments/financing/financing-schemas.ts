import { z } from 'zod'
import type {
  FinancingCheckout,
  FinancingCheckoutRequest,
} from '../../../../application/payments/financing/checkout.ts'
import type {
  ShownFinancingSession,
  ShownInvitation,
} from '../../../../application/payments/financing/show-session.ts'
import {
  FINANCING_STATUSES,
  type FinancingSession,
  sessionStatusAt,
} from '../../../../domain/payments/financing/financing-session.ts'
import {
  date,
  email,
  id,
  isoMoment,
  optional,
  state,
  text,
  withDefault,
  word,
  wrongType,
} from '../../../endpoints/fields.ts'
import type { ShownPaymentSession } from '../sessions/payment-session-schemas.ts'
import { newPaymentSession } from '../sessions/payment-session-schemas.ts'

export const FINANCED = 'PREMIUM_FINANCE'
const KEY = 'must be 8 to 128 letters, digits, underscores or hyphens'
const USD = 'must be usd'

/** A field that has no meaning here, and is refused wherever it is sent. */
const refused = (why: string) =>
  z
    .unknown()
    .refine((value) => value === undefined || value === null, { error: why })
    .meta({ description: 'Refused', override: { type: 'null' } })
    .optional()
const noPlan = () => refused('is not for financing sessions: they sell no payment plan')

const ordinary = newPaymentSession.shape
const session = {
  billing_method: word(FINANCED),
  idempotency_key: z
    .string(wrongType(KEY))
    .regex(/^[A-Za-z0-9_-]{8,128}$/, KEY)
    .describe('Of the account: the same request again is about the same session; another one is 409'),
  employer_id: ordinary.employer_id,
  policy_id: ordinary.policy_id,
  carrier_id: ordinary.carrier_id,
  amount_cents: ordinary.amount_cents,
  premium_cents: ordinary.premium_cents,
  fee_cents: ordinary.fee_cents,
  fee_breakdown: ordinary.fee_breakdown,
  currency: withDefault(z.string().regex(/^usd$/i, USD), 'usd'),
  description: ordinary.description,
  customer: ordinary.customer,
  mode: withDefault(word('embedded'), 'embedded'),
  ttl_minutes: ordinary.ttl_minutes,
  single_use: ordinary.single_use,
  created_by: ordinary.created_by,
  total_installments: noPlan(),
  down_payment_percent: noPlan(),
  down_payment_cents: noPlan(),
  down_payment_months: noPlan(),
}

/** The request for a financing session. */
export const newFinancingSession = z.object({
  ...session,
  deliver: refused('is not for the creation of financing sessions: invite with the financing checkout'),
})

const noTexts = () => refused('is not for financing sessions: there are no texts')

/** The request for quotes. */
export const financingCheckoutRequest = z.object({
  ...session,
  insured: z.object({
    business_name: text(200).describe('The name of the employer'),
    address: text(200),
    city: text(200),
    state: state(),
    zip_code: text(20),
  }),
  policy: optional(
    z.object({
      effective_date: optional(date()),
      expiration_date: optional(date()),
      policy_number: optional(text(100)),
    }),
  ).describe('What the stored policy must be'),
  deliver: optional(
    z.object({
      email: withDefault(z.boolean(), false).describe('Invite by email once the checkout is ready'),
      email_to: optional(email()).describe('On the list of test recipients; default: customer.email'),
      sms: noTexts(),
      sms_to: noTexts(),
    }),
  ),
})

export function checkoutRequestOf(body: z.output<typeof financingCheckoutRequest>): FinancingCheckoutRequest {
  const { insured, policy, deliver, customer } = body
  return {
    session: body,
    insured,
    policy: {
      effective_date: policy?.effective_date ?? null,
      expiration_date: policy?.expiration_date ?? null,
      policy_number: policy?.policy_number ?? null,
    },
    inviteTo: deliver?.email ? (deliver.email_to ?? customer.email) : null,
  }
}

export const CreatedFinancingSession = z
  .object({
    id: id(),
    session_id: id(),
    status: z.enum(['pending', 'cancelled', 'expired']),
    environment: z.literal('sandbox'),
    mode: z.literal('embedded'),
    expires_at: isoMoment(),
  })
  .meta({ id: 'CreatedFinancingSession' })

/** A session as its creation is answered. @param now epoch milliseconds. */
export function showCreatedFinancing(session: FinancingSession, now: number) {
  const { financing_session_id, expires_at } = session
  return {
    id: financing_session_id,
    session_id: financing_session_id,
    status: sessionStatusAt(session, now),
    environment: 'sandbox' as const,
    mode: 'embedded' as const,
    expires_at,
  }
}

export const FinancingCheckoutAnswer = z
  .object({
    session_id: id(),
    environment: z.literal('sandbox'),
    status: z.enum(['ready', 'pending', 'on_hold', 'expired', 'payment_reported']),
    checkout_token: z.string().optional().describe('Opens the financing component; only of what is `ready`'),
    finance_access_token: z.string().describe('Opens the page `/pay/{finance_access_token}`'),
    expires_at: isoMoment(),
    delivery: z
      .array(
        z.object({
          channel: z.literal('email'),
          to: z.string(),
          status: z.enum(['sent', 'failed']),
          at: isoMoment(),
          error: z.string().optional().describe('Why it did not go out, for people'),
        }),
      )
      .optional()
      .describe('Once an invitation was attempted'),
    delivery_ok: z.boolean().optional(),
  })
  .meta({ id: 'FinancingCheckout' })

export function showFinancingCheckout(
  { session, status, checkoutToken, accessToken }: FinancingCheckout,
  invitation: ShownInvitation | null,
) {
  return {
    session_id: session.financing_session_id,
    environment: 'sandbox' as const,
    status,
    ...(checkoutToken === null ? {} : { checkout_token: checkoutToken }),
    finance_access_token: accessToken,
    expires_at: session.expires_at,
    ...(invitation && { delivery: [delivered(invitation)], delivery_ok: invitation.status === 'sent' }),
  }
}

function delivered({ to, status, at }: ShownInvitation) {
  const error = status === 'failed' ? { error: 'The invitation could not be sent' } : {}
  return { channel: 'email' as const, to, status, at, ...error }
}

export const FinancingStatusAnswer = z
  .object({
    session_id: id(),
    status: z.enum(FINANCING_STATUSES),
    quote_count: z.int().optional().describe('Only while the status is `quote_ready`'),
  })
  .meta({ id: 'FinancingStatus' })

export const FinancingPageAnswer = z
  .object({
    id: id(),
    seller: z.object({
      display_name: z.string().nullable(),
      logo_url: z.string().nullable(),
      accent_color: z.string().nullable(),
      support_email: z.string().nullable(),
    }),
    currency: z.literal('usd'),
    amount_cents: z.int(),
    line_items: z.array(z.object({ label: z.string(), amount_cents: z.int() })),
    description: z.string().nullable(),
    finance: z.object({
      status: z.enum(FINANCING_STATUSES),
      quote_count: z.int().optional(),
      expires_at: isoMoment(),
    }),
  })
  .meta({ id: 'FinancingPage' })

/** A financing session in the form of all payment sessions. */
export function showAsPaymentSession({
  session,
  status,
  customer,
  invitation,
}: ShownFinancingSession): z.input<typeof ShownPaymentSession> {
  const { error, ...sent } = invitation ? delivered(invitation) : { error: undefined }
  return {
    ...session,
    id: session.financing_session_id,
    token_prefix: null,
    billing_method: FINANCED,
    mode: 'embedded',
    status,
    customer,
    host_is_custom: false,
    delivery: 'to' in sent ? [{ ...sent, ...(error && { reason: error }) }] : [],
    delivery_ok: invitation?.status !== 'failed',
    line_items: [...session.line_items],
    opened_at: null,
    scheduled_at: null,
    paid_at: null,
  }
}
