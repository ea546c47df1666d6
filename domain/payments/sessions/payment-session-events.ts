import { z } from 'zod'
import { debitedAccount } from '../../banking/debits/debited-account.ts'
import { type DataOf, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { sealContext, sealed, secret } from '../../kernel/sealed.ts'
import { deliveryChannel } from '../links/payment-link-events.ts'
import { processorKind } from '../processor/processor-kinds.ts'
import { sessionPlanSchema } from './session-plan.ts'

/** What happens to a payment session. Amounts are cents, times ISO 8601. The payer is sealed under the employer's data key. */
const cents = () => z.int().min(0)
const session = { payment_session_id: id() }
const personal = (eventName: string) =>
  sealed({
    subject: 'employer',
    boundTo: ({ data, path }) =>
      sealContext(`paymentSession-${data.payment_session_id}`, eventName, path.join('.')),
  })
const payer = () => personal('PaymentSessionCreated')
const recipient = () => personal('PaymentSessionInvited')

export const sessionMode = z.enum(['link', 'embedded'])

export const PaymentSessionCreated = eventType('PaymentSessionCreated', {
  ...session,
  tenant_id: id(),
  environment: environment(),
  employer_id: id(),
  carrier_id: id(),
  policy_id: id(),
  mode: sessionMode,
  /** What is charged at signing: the total, or the down payment of the plan. */
  amount_cents: cents(),
  premium_cents: cents(),
  fee_cents: cents(),
  line_items: z.array(z.object({ label: z.string(), amount_cents: cents() })),
  plan: sessionPlanSchema.nullable(),
  description: z.string().nullable(),
  customer: z.object({ name: payer(), email: payer(), phone: payer().nullable() }),
  single_use: z.boolean(),
  /** Of the tenant's checkout settings. */
  config_version: z.int().min(1),
  /** SHA-256 of what opens it, hexadecimal: the token in its address, or the client secret of an embedded one. */
  token_hash: secret().nullable(),
  token_prefix: z.string().nullable(),
  /** Its address is the partner's own. */
  host_is_custom: z.boolean(),
  /** The session that it stands for now. */
  replaces: id().nullable(),
  created_by: z.string().nullable(),
  created_at: time(),
  expires_at: time(),
})
/** A mail or text provider took over an invitation, or refused it. */
export const PaymentSessionInvited = eventType('PaymentSessionInvited', {
  ...session,
  channel: deliveryChannel,
  to: recipient(),
  status: z.enum(['sent', 'failed']),
  reason: z.string().nullable(),
  at: time(),
})
/** The customer saw it for the first time. */
export const PaymentSessionOpened = eventType('PaymentSessionOpened', { ...session, opened_at: time() })
/** The card processor keeps a checkout open, by which it can be paid. */
export const PaymentSessionCheckoutBegun = eventType('PaymentSessionCheckoutBegun', {
  ...session,
  checkout_id: id(),
  processor: processorKind,
  processor_checkout_id: z.string(),
  at: time(),
})
/** Nobody can pay by the checkout any more. */
export const PaymentSessionCheckoutClosed = eventType('PaymentSessionCheckoutClosed', {
  ...session,
  checkout_id: id(),
  at: time(),
})
const payment = {
  ...session,
  payment_id: id(),
  checkout_id: id(),
  processor_payment_id: z.string(),
  amount_cents: cents(),
  paid_at: time(),
}
/**
 * The customer paid at the checkout in a way whose outcome comes days later: a bank debit by the card processor. Nobody can pay
 * there any more, and the money may come.
 */
export const PaymentSessionPaymentProcessing = eventType('PaymentSessionPaymentProcessing', {
  ...session,
  checkout_id: id(),
  at: time(),
})
/** The card processor took the money: by card, or from a bank account where it offers that. */
export const PaymentSessionPaid = eventType('PaymentSessionPaid', {
  ...payment,
  /** The money came when the session could not be paid any more. */
  late: z.boolean(),
  /** A debit of the same money that is on its way. */
  debit_leg_id: id().nullable(),
})
/** The card processor took money for a session that had been paid. */
export const PaymentSessionPaidAgain = eventType('PaymentSessionPaidAgain', {
  ...payment,
  /** False: the session may be paid once only, and somebody has to give the money back. */
  is_wanted: z.boolean(),
  /** The money came when the session could not be paid any more. */
  late: z.boolean().optional(),
})
/** The card processor took another amount than the session asks for: somebody has to see to the difference. */
export const PaymentSessionAmountDiffered = eventType('PaymentSessionAmountDiffered', {
  ...payment,
  asked_cents: cents(),
})
export const PaymentSessionPaymentFailed = eventType('PaymentSessionPaymentFailed', {
  ...session,
  failure_id: id(),
  failure_message: z.string(),
  failed_at: time(),
  /** Where it was tried. */
  checkout_id: id().optional(),
  /** The checkout is over: it failed there days later. A declined attempt leaves it open. */
  ends_checkout: z.boolean().optional(),
})
/** The customer chose to pay from a bank account, now or by the installments of the plan. Nothing is collected yet. */
export const PaymentSessionDebitArranged = eventType('PaymentSessionDebitArranged', {
  ...session,
  /** The debit; null where nothing is paid at signing. */
  leg_id: id().nullable(),
  account: debitedAccount,
  /** What the customer authorized for later, in the spelling that is stored; those of 0 cents are left out. */
  instalments: z.array(z.object({ number: z.int().min(1), amount_cents: z.int().min(1), due_at: time() })),
  scheduled_at: time(),
})
/**
 * An installment fell due, and its debit is created: what ends the session from now on leaves it. The name is as it is
 * stored.
 */
export const PaymentSessionInstalmentMinted = eventType('PaymentSessionInstalmentMinted', {
  ...session,
  number: z.int().min(1),
  leg_id: id(),
  at: time(),
})
/** The debit was matched in the bank account that received it, or the processor reports it settled. */
export const PaymentSessionDebitConfirmed = eventType('PaymentSessionDebitConfirmed', {
  ...session,
  leg_id: id(),
  by: z.enum(['bank', 'processor']),
  /** The debit is a plan's down payment: the session stays scheduled. */
  sells_plan: z.boolean(),
  at: time(),
})
/** No further installment is collected. */
export const PaymentSessionPlanStopped = eventType('PaymentSessionPlanStopped', {
  ...session,
  reason: z.enum(['down_payment_returned', 'down_payment_failed', 'account_disabled', 'policy_cancelled']),
  /** The return code of the debit after which its account is debited no more; absent: the account stays. */
  disabled_by: z.string().optional(),
  at: time(),
})
/** What the card processor is to do waits: it has been away for hours, or is not configured any more. */
export const PaymentSessionHeldUp = eventType('PaymentSessionHeldUp', {
  ...session,
  work: z.enum(['checkout', 'arrange-debit', 'cancel', 'reissue', 'expire']),
  since: time(),
  at: time(),
})
export const PaymentSessionCancelled = eventType('PaymentSessionCancelled', {
  ...session,
  cancelled_at: time(),
})
export const PaymentSessionExpired = eventType('PaymentSessionExpired', { ...session, expired_at: time() })
/** Another session stands for it. One that could be paid is cancelled by that. */
export const PaymentSessionReplaced = eventType('PaymentSessionReplaced', {
  ...session,
  replaced_by: id(),
  replaced_at: time(),
})

export const paymentSessionEvents = [
  PaymentSessionCreated,
  PaymentSessionInvited,
  PaymentSessionOpened,
  PaymentSessionCheckoutBegun,
  PaymentSessionCheckoutClosed,
  PaymentSessionPaymentProcessing,
  PaymentSessionPaid,
  PaymentSessionPaidAgain,
  PaymentSessionAmountDiffered,
  PaymentSessionPaymentFailed,
  PaymentSessionDebitArranged,
  PaymentSessionInstalmentMinted,
  PaymentSessionDebitConfirmed,
  PaymentSessionPlanStopped,
  PaymentSessionHeldUp,
  PaymentSessionCancelled,
  PaymentSessionExpired,
  PaymentSessionReplaced,
] as const
export type PaymentSessionEvent = EventOf<(typeof paymentSessionEvents)[number]>
export type PaymentSessionData<Type extends PaymentSessionEvent['type']> = DataOf<PaymentSessionEvent, Type>
