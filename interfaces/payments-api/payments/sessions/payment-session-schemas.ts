import { z } from 'zod'
import type { HandedOutSession } from '../../../../application/payments/sessions/create-session.ts'
import type { Invitation } from '../../../../application/payments/sessions/invite.ts'
import type { ShownSession } from '../../../../application/payments/sessions/show-sessions.ts'
import { type Rejection, reject } from '../../../../domain/kernel/rejection.ts'
import { SESSION_STATUSES } from '../../../../domain/payments/sessions/payment-session-status.ts'
import { MOST_SESSION_INSTALLMENTS } from '../../../../domain/payments/sessions/session-plan.ts'
import {
  email,
  id,
  isoMoment,
  optional,
  reference,
  text,
  wholeNumber,
  withDefault,
  word,
  wrongType,
} from '../../../endpoints/fields.ts'
import { withoutNulls } from '../../../endpoints/shown.ts'

const MOST_LINES = 200
/** What fees take on the payer's page at the most, which stays below 50 KiB with all else that is on it. */
const MOST_SHOWN_BYTES = 18 * 1024
/** Of a line of the page beside its label. */
const LINE_BYTES = 65
const FEES_TOO_LONG = `must come to ${MOST_SHOWN_BYTES} bytes at the most: ${LINE_BYTES} for each, and its label in UTF-8, where & < > " ' take 6`

const PHONE = 'must be a US number such as +12025550123'
const phone = () => z.string(wrongType(PHONE)).regex(/^\+1\d{10}$/, PHONE)

/** A number within bounds; else the words say which. */
function between(number: z.ZodInt | z.ZodNumber, min: number, max: number) {
  const what = `must be from ${min} to ${max}`
  return number.min(min, what).max(max, what)
}
const ttlMinutes = () => optional(between(z.int(), 15, 10_080))

const deliver = z.object({
  email: withDefault(z.boolean(), false).describe('Send the invitation by email now'),
  sms: withDefault(z.boolean(), false).describe('Send the invitation by text now'),
  email_to: optional(email()).describe('Default: customer.email'),
  sms_to: optional(phone()).describe('Default: customer.phone'),
})

function shownBytes(fees: readonly { readonly label: string }[]): number {
  const label = ({ label }: { readonly label: string }) =>
    Buffer.byteLength(label) + 5 * (label.match(/[&<>"']/g)?.length ?? 0)
  return fees.reduce((sum, fee) => sum + LINE_BYTES + label(fee), 0)
}

/** The request for a payment session. */
export const newPaymentSession = z
  .object({
    employer_id: reference(),
    policy_id: reference(),
    carrier_id: optional(reference()).describe('Required unless the key is for exactly one carrier'),
    amount_cents: optional(wholeNumber()).describe('The whole total; required without premium_cents'),
    premium_cents: optional(wholeNumber()).describe('The premium alone'),
    fee_cents: optional(wholeNumber()).describe('Fees on top of the premium'),
    fee_breakdown: optional(
      z
        .array(z.object({ label: text(200), amount_cents: wholeNumber() }))
        .max(MOST_LINES)
        .refine((fees) => shownBytes(fees) <= MOST_SHOWN_BYTES, FEES_TOO_LONG),
    ).describe(
      `The fees one by one, as the page shows them; they sum to fee_cents. The list ${FEES_TOO_LONG}`,
    ),
    description: optional(text(500)).describe('Shown to the customer'),
    customer: z.object({ name: text(200), email: email(), phone: optional(phone()) }),
    mode: withDefault(word('link', 'embedded'), 'link'),
    ttl_minutes: ttlMinutes().describe('How long it can be paid; default as configured'),
    single_use: optional(z.boolean()).describe('Default as configured'),
    deliver: optional(deliver),
    created_by: optional(text(200)),
    total_installments: optional(between(z.int(), 1, MOST_SESSION_INSTALLMENTS)).describe(
      'Sells a payment plan: monthly installments after the down payment',
    ),
    down_payment_percent: optional(between(z.number(), 0, 100)).describe('Of the total; only of a plan'),
    down_payment_cents: optional(wholeNumber()).describe('Wins over the percentage; only of a plan'),
    down_payment_months: z
      .unknown()
      .refine((value) => value === undefined || value === null, {
        error: 'is not for payment sessions: use down_payment_percent or down_payment_cents',
      })
      .meta({ description: 'Refused', override: { type: 'null' } })
      .optional(),
  })
  .superRefine((body, context) => {
    const wrong = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (body.mode === 'link') return
    if (asksForDelivery(body.deliver)) wrong('deliver', 'is not for the mode embedded')
    for (const name of ['total_installments', 'down_payment_percent', 'down_payment_cents'] as const) {
      if (body[name] !== null) wrong(name, 'is not for the mode embedded: a plan is sold by link')
    }
  })
export type NewSessionBody = z.output<typeof newPaymentSession>

export const reissueRequest = z.object({
  ttl_minutes: ttlMinutes().describe('How long it can be paid; default as configured'),
  deliver: optional(deliver),
})

/** Of an embedded session every field of `deliver` is refused. */
export function asksForDelivery(sent: NewSessionBody['deliver']): boolean {
  return sent !== null
}

/** Where invitations go to. */
export function invitationsOf(
  wanted: NewSessionBody['deliver'],
  customer: NewSessionBody['customer'],
): readonly Invitation[] | Rejection {
  if (wanted === null) return []
  const to = wanted.sms_to ?? customer.phone
  if (wanted.sms && to === null) {
    const why = 'deliver.sms_to is required, as the customer has no phone'
    return reject('invalid', 'sms_without_number', why, 'deliver.sms_to')
  }
  return [
    ...(wanted.email ? [{ channel: 'email' as const, to: wanted.email_to ?? customer.email }] : []),
    ...(wanted.sms && to !== null ? [{ channel: 'sms' as const, to }] : []),
  ]
}

const lineItems = z.array(z.object({ label: z.string(), amount_cents: z.int() }))
const status = z.enum(SESSION_STATUSES)

const Delivery = z
  .object({
    channel: z.enum(['email', 'sms']),
    to: z.string(),
    status: z.enum(['sent', 'failed']),
    at: isoMoment(),
    reason: z.string().optional().describe('Why it was not sent'),
  })
  .meta({ id: 'InvitationDelivery' })

const shared = {
  mode: z.enum(['link', 'embedded']),
  status,
  amount_cents: z.int().describe('What is charged now: the total, or the down payment of a plan'),
  line_items: lineItems.describe('What the total is made of'),
  expires_at: isoMoment(),
  single_use: z.boolean(),
  host_is_custom: z.boolean().describe('The page is on the partner’s own address'),
  config_version: z.int().describe('Of the checkout settings'),
  delivery: z.array(Delivery),
  delivery_ok: z.boolean().describe('Every invitation was handed over'),
}

const LinkSession = z
  .object({
    id: id(),
    url: z.string().describe('The page; shown once, and whoever has it may pay'),
    token_prefix: z.string(),
    ...shared,
    replaces: id().optional(),
  })
  .meta({ id: 'CreatedPaymentSession' })
const EmbeddedSession = z
  .object({
    id: id(),
    client_secret: z.string().describe('Mounts the checkout; shown once'),
    publishable_key: z.string(),
    status,
    config_version: z.int(),
    replaces: id().optional(),
  })
  .meta({ id: 'CreatedEmbeddedSession' })
export const CreatedSession = z.union([LinkSession, EmbeddedSession])

export const ShownPaymentSession = z
  .object({
    id: id(),
    token_prefix: z.string().nullable(),
    billing_method: z.literal('PREMIUM_FINANCE').optional().describe('Of financing test sessions'),
    ...shared,
    employer_id: id(),
    policy_id: id(),
    carrier_id: id(),
    premium_cents: z.int(),
    fee_cents: z.int(),
    description: z.string().nullable(),
    customer: z.object({
      name: z.string().describe('`(erased)` after an erasure, as the rest'),
      email: z.string(),
      phone: z.string().nullable(),
    }),
    created_by: z.string().nullable(),
    leg_id: id().optional().describe('The bank debit, once it is arranged'),
    late_payment: z.literal(true).optional().describe('The money came when it could not be paid any more'),
    replaces: id().optional(),
    replaced_by: id().optional(),
    created_at: isoMoment(),
    updated_at: isoMoment(),
    opened_at: isoMoment().nullable(),
    scheduled_at: isoMoment().nullable(),
    paid_at: isoMoment().nullable(),
    cancelled_at: isoMoment().nullable(),
  })
  .meta({ id: 'PaymentSession' })

/** A session as it is handed out: with its address, or with what mounts its checkout. */
export function showHandedOut({ session, url, checkout }: HandedOutSession, shown: ShownSession) {
  const { payment_session_id: id, status, config_version, token_prefix } = session
  const replaces = withoutNulls({ replaces: session.replaces })
  if (checkout) return { id, ...checkout, status, config_version, ...replaces }
  return { ...sharedOf(shown), id, url: url!, token_prefix: token_prefix!, ...replaces }
}

/** A session as it is read. */
export function showPaymentSession(shown: ShownSession) {
  const { replaces, replaced_by, debit, paid_late } = shown.session
  return {
    ...sharedOf(shown),
    id: shown.session.payment_session_id,
    customer: shown.customer,
    ...withoutNulls({ replaces, replaced_by, leg_id: debit?.leg_id ?? null }),
    ...(paid_late && { late_payment: true as const }),
    scheduled_at: debit?.scheduled_at ?? null,
  }
}

/** What all answers show of a session; its answers leave out what they do not name. */
function sharedOf({ session, status, invitations }: ShownSession) {
  const { replaces: _replaces, replaced_by: _replacedBy, ...fields } = session
  return {
    ...fields,
    line_items: [...session.line_items],
    status,
    delivery: invitations.map(({ reason, ...sent }) => ({ ...sent, ...withoutNulls({ reason }) })),
    delivery_ok: invitations.every(({ status }) => status === 'sent'),
  }
}
