import type { z } from 'zod'
import { MicroDepositsLeftOut } from '../../domain/banking/accounts/micro-deposits.ts'
import { BankCreditMatched, BankCreditUnmatched } from '../../domain/banking/credits/bank-credit.ts'
import {
  BankDebitCancelled,
  BankDebitFailed,
  BankDebitGated,
  BankDebitHeldUp,
  BankDebitLeftOut,
  BankDebitRejected,
  BankDebitReleased,
} from '../../domain/banking/debits/bank-debit-events.ts'
import { ReturnRateExceeded, ReturnRateRecovered } from '../../domain/banking/debits/return-rate.ts'
import {
  BankFileAnswered,
  BankFileCaughtUp,
  BankFileExposed,
  BankFileFetched,
  BankFileOverdue,
  BankFileTreatedAsSent,
  BankFileUncertain,
} from '../../domain/banking/files/bank-file-events.ts'
import {
  BankReportCleared,
  BankReportItemsParked,
  BankReportRefused,
} from '../../domain/banking/files/bank-report.ts'
import { ReconciliationMade } from '../../domain/banking/reconciliation/reconciliation.ts'
import type { EventType } from '../../domain/kernel/event-type.ts'
import { ProcessClockAgreed, ProcessClockDiffered } from '../../domain/operations/process-clock.ts'
import { ReadModelRebuildHeldBack } from '../../domain/operations/read-model-rebuild.ts'
import {
  PaymentLinkAmountDiffered,
  PaymentLinkHeldUp,
  PaymentLinkPaidAgain,
  PaymentLinkPlanNotStarted,
  PaymentLinkRefundFailed,
} from '../../domain/payments/links/payment-link-events.ts'
import {
  ProcessorNoticeCarriedOut,
  ProcessorNoticeNotUnderstood,
  ProcessorNoticeResolved,
} from '../../domain/payments/processor/processor-notice.ts'
import {
  PaymentSessionAmountDiffered,
  PaymentSessionHeldUp,
  PaymentSessionPaid,
  PaymentSessionPaidAgain,
  PaymentSessionPlanStopped,
} from '../../domain/payments/sessions/payment-session-events.ts'
import {
  SubscriptionChargeFailed,
  SubscriptionChargeOverdue,
  SubscriptionChargePaid,
  SubscriptionChargePaidAgain,
  SubscriptionEnded,
  SubscriptionHeldUp,
  SubscriptionPaymentDiffered,
} from '../../domain/payments/subscriptions/subscription-events.ts'
import { IntakeUnfinished } from '../../domain/policies/intake.ts'
import { PolicyNotActivated } from '../../domain/policies/policy.ts'
import { WebhookDeliveryDropped } from '../../domain/webhooks/webhook-event.ts'
import { WebhookSubscriptionDisabled } from '../../domain/webhooks/webhook-subscriptions.ts'
import { derivedId, type RecordedEvent } from '../commands/event-registry.ts'

/** Ids of what an alert is about, by their names. */
type About = Readonly<Record<string, string>>

/** Which events call for a person, and what for. */
export interface AlertKind {
  readonly type: EventType
  /** One sentence: what happened, and what to do. */
  readonly message: string
  /** What it is about; null where the event raises no alert. */
  readonly about: (data: never) => About | null
  /** What has one open alert at the most, which counts; absent where each event has an alert of its own. */
  readonly per?: (data: never) => string
  /** Events of the same `per` that settle it, so that it needs no acknowledgement. */
  readonly settledBy?: readonly EventType[]
}

function raisedBy<Type extends EventType>(
  type: Type,
  message: string,
  about: (data: z.output<Type['schema']>) => About | null,
  per?: (data: z.output<Type['schema']>) => string,
  settledBy?: readonly EventType[],
): AlertKind {
  return { type, message, about, ...(per && { per }), ...(settledBy && { settledBy }) }
}

/** Everything that calls for a person, by kind: one entry for each. */
export const ALERTS = {
  webhook_delivery_dropped: raisedBy(
    WebhookDeliveryDropped,
    'Webhooks were not accepted within 48 hours and are not sent any more: the partner has missed the events, of which ' +
      '`about` names the last',
    ({ event_id, subscription_id, delivery_id }) => ({ event_id, subscription_id, delivery_id }),
    ({ subscription_id }) => subscription_id,
  ),
  webhook_subscription_disabled: raisedBy(
    WebhookSubscriptionDisabled,
    'A webhook subscription was disabled after repeated failures: the partner receives nothing until it enables it again',
    ({ subscription_id, by }) => (by === 'failures' ? { subscription_id } : null),
    ({ subscription_id }) => subscription_id,
  ),
  policy_not_activated: raisedBy(
    PolicyNotActivated,
    'A policy that was paid for is not active: it is cancelled, or `holder_policy_id` has its number. Cancel that one ' +
      'and activate this one, or see to a refund. If there is no such policy, its creation broke off: create an active ' +
      'policy of that number first, which gets that id, and cancel it',
    ({ policy_id, holder_policy_id }) => ({
      policy_id,
      ...(holder_policy_id !== null && { holder_policy_id }),
    }),
  ),
  intake_unfinished: raisedBy(
    IntakeUnfinished,
    'A policy intake broke off an hour ago and was not sent again: its employer may be there, its policy is not. Have the ' +
      'partner send it again with the same `idempotency_key`, which finishes it',
    ({ intake_id, employer_id }) => ({ intake_id, employer_id }),
  ),
  payment_link_paid_again: raisedBy(
    PaymentLinkPaidAgain,
    'The card processor took money for a payment link that had been paid before: refund it there',
    ({ payment_link_id, processor_payment_id }) => ({ payment_link_id, processor_payment_id }),
  ),
  refund_failed: raisedBy(
    PaymentLinkRefundFailed,
    "A refund came back from the payer's bank: the payer has not got the money, whatever was told before. Pay it by " +
      'other means',
    ({ payment_link_id, refund_id, processor_refund_id }) =>
      processor_refund_id === null ? null : { payment_link_id, refund_id, processor_refund_id },
  ),
  payment_link_amount_differs: raisedBy(
    PaymentLinkAmountDiffered,
    'The card processor took another amount for a payment link than it asks for; the link is paid. Compare it with the ' +
      'payment there, and see to the difference',
    ({ payment_link_id, processor_payment_id }) => ({
      payment_link_id,
      ...(processor_payment_id !== null && { processor_payment_id }),
    }),
  ),
  payment_session_paid_again: raisedBy(
    PaymentSessionPaidAgain,
    'The card processor took money for a payment session that had been paid and is to be paid once: refund it there',
    ({ payment_session_id, processor_payment_id, is_wanted }) =>
      is_wanted ? null : { payment_session_id, processor_payment_id },
  ),
  payment_session_paid_twice: raisedBy(
    PaymentSessionPaid,
    'A payment session was paid by card while a bank debit for it is on its way: refund one of both',
    ({ payment_session_id, processor_payment_id, debit_leg_id }) =>
      debit_leg_id === null ? null : { payment_session_id, processor_payment_id, leg_id: debit_leg_id },
  ),
  payment_session_amount_differs: raisedBy(
    PaymentSessionAmountDiffered,
    'The card processor took another amount for a payment session than it asks for; it counts. Compare it with the ' +
      'payment there, and see to the difference',
    ({ payment_session_id, processor_payment_id }) => ({ payment_session_id, processor_payment_id }),
  ),
  down_payment_returned: raisedBy(
    PaymentSessionPlanStopped,
    'The down payment of a payment plan was returned by the bank: its further installments are not collected. Agree with ' +
      'the partner on how the policy is paid',
    ({ payment_session_id, reason }) => (reason === 'down_payment_returned' ? { payment_session_id } : null),
  ),
  down_payment_failed: raisedBy(
    PaymentSessionPlanStopped,
    'The down payment of a payment plan could not be debited, as its history says: its further installments are not ' +
      'collected. Agree with the partner on how the policy is paid',
    ({ payment_session_id, reason }) => (reason === 'down_payment_failed' ? { payment_session_id } : null),
  ),
  plan_account_disabled: raisedBy(
    PaymentSessionPlanStopped,
    'The bank returned an installment of a payment plan with a code by which its account is debited no more: its further ' +
      'installments are not collected. Agree with the partner on how the rest is paid',
    ({ payment_session_id, reason }) => (reason === 'account_disabled' ? { payment_session_id } : null),
  ),
  installments_stopped: raisedBy(
    PaymentSessionPlanStopped,
    'The policy of a payment plan was cancelled, so that its further installments are not collected. Settle what was ' +
      'paid against what was earned: refund the rest, or have what is missing paid otherwise',
    ({ payment_session_id, reason }) => (reason === 'policy_cancelled' ? { payment_session_id } : null),
  ),
  debit_left_out: raisedBy(
    BankDebitLeftOut,
    'The account of a bank debit cannot be read, so that its batch went without it: it has failed, and nothing is debited. ' +
      'See that the vault is whole, and agree with the partner on how the money is collected otherwise',
    ({ leg_id, batch_closes_at }) => ({ leg_id, batch_closes_at }),
  ),
  debit_quarantined: raisedBy(
    BankDebitGated,
    'The amount of a bank debit is more than twice the mean of what its employer was debited in the last 90 days, or its ' +
      'bank does not list the linked account any more: it is in quarantine until somebody releases or rejects it, which ends this alert',
    ({ leg_id, status }) => (status === 'quarantined' ? { leg_id } : null),
    ({ leg_id }) => leg_id,
    [BankDebitReleased, BankDebitRejected, BankDebitCancelled, BankDebitFailed],
  ),
  return_rate_exceeded: raisedBy(
    ReturnRateExceeded,
    'More of the debits of a tenant came back within 60 days than the rules allow: `rate` says which of the limits was ' +
      'passed. See which returns they are, and have the partner stop their cause; the alert ends when the rate is within its ' +
      'limit again',
    ({ return_rate_id, rate }) => ({ return_rate_id, rate }),
    ({ return_rate_id, rate }) => `${return_rate_id} ${rate}`,
    [ReturnRateRecovered],
  ),
  reconciliation_differs: raisedBy(
    ReconciliationMade,
    'A comparison of events, ledger, balances, credits and bank files found differences, which it lists: no money may be ' +
      'moved by hand on what the ledger shows before they are explained. What is wrong in a read model ends with its ' +
      'rebuild; what events themselves lack, a person has to settle with the bank',
    ({ reconciliation_id, difference_count }) => (difference_count > 0 ? { reconciliation_id } : null),
    () => 'all',
  ),
  debit_batch_held_up: raisedBy(
    BankDebitHeldUp,
    'The bank has been away for hours: the batch of debits that closed at `batch_closes_at`, of which `leg_id` is the ' +
      'oldest, waits for it. See that it can be reached; the batch then goes by itself',
    ({ leg_id, batch_closes_at }) => ({ leg_id, batch_closes_at }),
  ),
  bank_file_uncertain: raisedBy(
    BankFileUncertain,
    'A file for the bank is neither in the outbox nor marked as fetched: the bank may have it or not. Ask the bank, then ' +
      'have the file exposed again or treated as sent; nothing of it is sent again by itself. The alert ends when it is found',
    ({ file_id }) => ({ file_id }),
    ({ file_id }) => file_id,
    [BankFileExposed, BankFileFetched, BankFileTreatedAsSent, BankFileAnswered],
  ),
  bank_file_overdue: raisedBy(
    BankFileOverdue,
    'At 17:00 in New York on the first day on which its entries take effect, a file for the bank was not fetched, or not ' +
      'answered altogether: its debits wait. See why nobody fetches it, or ask the bank and have the file acknowledged or ' +
      'rejected; the alert ends once it is fetched and answered',
    ({ file_id }) => ({ file_id }),
    ({ file_id }) => file_id,
    [BankFileCaughtUp],
  ),
  bank_file_rejected: raisedBy(
    BankFileAnswered,
    'The bank rejected a file or some batches of it: their debits have failed. See to the reason, and agree with the ' +
      'partners on how the money is collected otherwise',
    ({ file_id, outcome }) => (outcome === 'rejected' ? { file_id } : null),
  ),
  bank_report_refused: raisedBy(
    BankReportRefused,
    'A file that came from the bank is not whole, or not for us: nothing of it counts. Have the bank send it again',
    ({ report_id }) => ({ report_id }),
  ),
  bank_report_items_parked: raisedBy(
    BankReportItemsParked,
    'Items of a file of the bank fit nothing that was sent: nothing followed from them. Look at each: apply it to the ' +
      'debit that it brings back, or see to it with the bank, and resolve it; the alert ends when none is parked any more',
    ({ report_id }) => ({ report_id }),
    ({ report_id }) => report_id,
    [BankReportCleared],
  ),
  micro_deposits_left_out: raisedBy(
    MicroDepositsLeftOut,
    'The account of two micro-deposits cannot be read: they are not sent. See that the vault is whole, and have the ' +
      'verification started anew',
    ({ deposits_id }) => ({ deposits_id }),
  ),
  bank_credit_unmatched: raisedBy(
    BankCreditUnmatched,
    'Money came whose reference names a bank debit that it does not fit: its amount or carrier is another one, or the ' +
      'debit was not submitted yet, or came back. If it is the money of that debit, have that acknowledged: it is ' +
      'matched then, do not record it again, and the alert ends. Else send it back',
    ({ credit_id, leg_id }) => (leg_id === null ? null : { credit_id, leg_id }),
    ({ credit_id }) => credit_id,
    [BankCreditMatched],
  ),
  plan_not_started: raisedBy(
    PaymentLinkPlanNotStarted,
    'The down payment of a plan was paid, and its monthly charges were not started: the policy is cancelled, or the card ' +
      'processor refused. Refund the down payment, or have the rest charged by another subscription',
    ({ payment_link_id, policy_id }) => ({ payment_link_id, policy_id }),
  ),
  payment_link_held_up: raisedBy(
    PaymentLinkHeldUp,
    'The card processor of a payment link has been away for hours, or its keys are not set any more: `work` waits for ' +
      'it. See that it can be reached and that its keys are right; what was under way then goes on by itself',
    ({ payment_link_id, work }) => ({ payment_link_id, work }),
  ),
  payment_session_held_up: raisedBy(
    PaymentSessionHeldUp,
    'The card processor of a checkout of a payment session has been away for hours, or its keys are not set any more: `work` ' +
      'waits for it. See that it can be reached and that its keys are right; an expiry then goes on by itself',
    ({ payment_session_id, work }) => ({ payment_session_id, work }),
  ),
  subscription_held_up: raisedBy(
    SubscriptionHeldUp,
    'The card processor of a subscription has been away for hours, its keys are not set any more, it refused to end ' +
      'what its policy no longer needs, or it says that one is paid which ended unpaid: `work` is not done, and it may go on ' +
      'to be charged. See that it can be reached and that its keys are right; what was refused, or is not wanted, end there',
    ({ subscription_id, work }) => ({ subscription_id, work }),
  ),
  processor_notice_not_understood: raisedBy(
    ProcessorNoticeNotUnderstood,
    'The card processor told something of `about_id` in a shape that is not understood: nothing followed from it. Look at ' +
      'the notice there. A release that understands it carries it out when its work is redriven; else see to it by hand, and ' +
      'resolve it. Both end this alert',
    ({ notice_id, about_id, processor_notice_id, type }) => ({
      notice_id,
      about_id,
      ...(processor_notice_id !== null && { processor_notice_id }),
      ...(type !== null && { type }),
    }),
    ({ notice_id }) => notice_id,
    [ProcessorNoticeCarriedOut, ProcessorNoticeResolved],
  ),
  subscription_charge_overdue: raisedBy(
    SubscriptionChargeOverdue,
    'A charge of a subscription has been due for three days, and the card processor told neither that it was paid nor that ' +
      'it failed. Look at the subscription there, and at whether its notices arrive; a word of the charge ends this alert',
    ({ subscription_id, number, due_at }) => ({
      subscription_id,
      installment_number: String(number),
      due_at,
    }),
    ({ subscription_id, number }) => `${subscription_id} ${number}`,
    [SubscriptionChargePaid, SubscriptionChargeFailed],
  ),
  plan_cancelled: raisedBy(
    SubscriptionEnded,
    'The policy of a plan was cancelled, so that its remaining installments are not charged any more. Settle what was ' +
      'paid against what was earned: refund the rest, or have what is missing charged otherwise',
    ({ subscription_id, reason }) => (reason === 'policy_cancelled' ? { subscription_id } : null),
  ),
  subscription_payment_differs: raisedBy(
    SubscriptionPaymentDiffered,
    'The card processor took another amount for a subscription than was agreed, or took one after it had ended; it counts ' +
      'as its installment. Compare it with the payment there, and see to the difference',
    ({ subscription_id, processor_payment_id }) => ({ subscription_id, processor_payment_id }),
  ),
  subscription_paid_again: raisedBy(
    SubscriptionChargePaidAgain,
    'The card processor took money for a subscription that was not owed: for a charge that had been paid, or after the ' +
      'last one. Refund it there',
    ({ subscription_id, processor_payment_id }) => ({ subscription_id, processor_payment_id }),
  ),
  rebuild_held_back: raisedBy(
    ReadModelRebuildHeldBack,
    'A rebuilt read model does not answer by itself: its rows differ from those that answer although both are of one ' +
      'version, or streams are dead-lettered that are not there. Find out which is right, then switch to it or cancel it',
    ({ projection, generation, reason }) => ({ projection, generation: String(generation), reason }),
  ),
  clock_skew: raisedBy(
    ProcessClockDiffered,
    "The clock of a process is more than 5 seconds away from PostgreSQL's: what it does comes too early or too late, and " +
      'times that it records are wrong. Have the clocks of all machines set by NTP; the alert ends when they agree',
    ({ process_id, skew_ms }) => ({ process_id, skew_ms: String(skew_ms) }),
    ({ process_id }) => process_id,
    [ProcessClockAgreed],
  ),
} as const satisfies Readonly<Record<string, AlertKind>>

export type AlertKindName = keyof typeof ALERTS
export const ALERT_KINDS = Object.keys(ALERTS) as [AlertKindName, ...AlertKindName[]]

/** The id of the alert that an event raises, counts for or settles: the same in every build of the read model. */
export function alertIdOf(
  kind: string,
  { per }: Pick<AlertKind, 'per'>,
  { stream, revision, data }: Pick<RecordedEvent, 'stream' | 'revision' | 'data'>,
): string {
  return derivedId(per ? `${kind} ${per(data as never)}` : `${stream}@${revision}`, 'alert')
}
