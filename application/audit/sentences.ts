import type { z } from 'zod'
import {
  BankCreditMatched,
  BankCreditReceived,
  BankCreditUnmatched,
} from '../../domain/banking/credits/bank-credit.ts'
import * as debits from '../../domain/banking/debits/bank-debit-events.ts'
import {
  DebitCollectionAccepted,
  DebitCollectionRefused,
} from '../../domain/banking/debits/debit-collection.ts'
import * as files from '../../domain/banking/files/bank-file-events.ts'
import type { DomainEvent, EventType } from '../../domain/kernel/event-type.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { PersonalDataErased } from '../../domain/operations/data-subject.ts'
import { OperatorActed } from '../../domain/operations/operator-action.ts'
import { EmployeeChangesRecorded, EmployeeSyncReceived } from '../../domain/parties/employee-sync.ts'
import * as employers from '../../domain/parties/employer.ts'
import * as links from '../../domain/payments/links/payment-link-events.ts'
import { ProcessorCustomerCreated } from '../../domain/payments/processor/processor-customer.ts'
import * as sessions from '../../domain/payments/sessions/payment-session-events.ts'
import * as subscriptions from '../../domain/payments/subscriptions/subscription-events.ts'
import * as payroll from '../../domain/payroll/payroll-file-events.ts'
import * as policies from '../../domain/policies/policy.ts'
import { WebhookDeliveryDropped, WebhookEventRaised } from '../../domain/webhooks/webhook-event.ts'
import * as webhooks from '../../domain/webhooks/webhook-subscriptions.ts'
import type { Actor } from '../commands/event-registry.ts'

/**
 * What an event says, in a sentence for people. Sentences hold no value that an event type declares as sealed or secret:
 * every reader of events sees them.
 */

/**
 * The sentence of an event.
 * @param by ` by …`, empty where the service acted by itself.
 * @param before the event before it in its stream.
 */
type Say<Data> = (data: Data, by: string, before: DomainEvent | undefined) => string

const SENTENCES: ReadonlyMap<string, Say<never>> = new Map([
  ...ofParties(),
  ...ofPayroll(),
  ...ofDebits(),
  ...ofLinks(),
  ...ofSessions(),
  ...ofSubscriptions(),
  ...ofWebhooks(),
  // recorded before it is done, and where it is refused then as well
  says(OperatorActed, ({ action, target, details: { reason } }, by) => {
    const why = because(typeof reason === 'string' ? reason : null)
    return `The action ${words(action)} was asked for${by}${target === '' ? '' : ` on ${target}`}${why}`
  }),
])

/** Whether an event type has a sentence of its own. */
export function hasSentence(type: string): boolean {
  return SENTENCES.has(type)
}

/**
 * What an event says; of a type without a sentence, its name in words.
 * @param event as its type declares it.
 * @param before the event before it in its stream, where that is known.
 */
export function sentenceOf(
  event: DomainEvent & { readonly metadata: { readonly actor?: Actor } },
  before?: DomainEvent,
): string {
  const by = actorOf(event.metadata.actor)
  const say = SENTENCES.get(event.type) as Say<unknown> | undefined
  return `${say ? say(event.data, by, before) : `${wordsOf(event.type)}${by}`}.`
}

/** An event type's name in words: `Bank file exposed`. */
export function wordsOf(type: string): string {
  return type.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

/** Who caused an event, as it stands in a sentence. */
export function actorOf(actor: Actor | undefined): string {
  switch (actor?.type) {
    case 'operator':
      return actor.id === 'operator' ? ' by the operator' : ` by operator ${actor.id}`
    case 'api_client':
      return ` by the partner's key ${actor.id}`
    case 'agent':
      return ` by agent ${actor.id}`
    case 'inbound_connection':
      return ` through inbound connection ${actor.id}`
    case 'payer':
      return ' by the payer'
    default:
      return ''
  }
}

function says<Schema extends z.ZodType>(
  type: EventType<string, Schema>,
  say: Say<z.output<Schema>>,
): readonly [string, Say<never>] {
  return [type.name, say]
}

function ofParties() {
  const { PolicyIssued, PolicyTermsChanged, PolicyCancelled, PolicyActivated, PolicyNotActivated } = policies
  return [
    says(PolicyIssued, (data, by) => {
      const { policy_number, status, effective_date, expiration_date } = data
      return `Policy ${policy_number} was issued${by} as ${words(status)}, from ${effective_date} to ${expiration_date}`
    }),
    says(PolicyTermsChanged, ({ policy_id: _, ...terms }, by) => `Terms were changed${by}: ${names(terms)}`),
    says(PolicyCancelled, ({ reason }, by) => `The policy was cancelled${by}${because(reason)}`),
    says(PolicyActivated, (_, by) => `The policy became active${by}`),
    says(PolicyNotActivated, ({ reason, holder_policy_id: holder }) =>
      reason === 'policy_cancelled'
        ? 'The policy could not become active: it is cancelled'
        : `The policy could not become active: its number is that of policy ${holder ?? 'unknown'}`,
    ),
    says(employers.EmployerRegistered, (_, by) => `The employer was registered${by}`),
    says(
      employers.EmployerDetailsChanged,
      ({ employer_id: _, ...details }, by) => `Details of the employer were changed${by}: ${names(details)}`,
    ),
    says(
      employers.EmployerLinkedToPayrollCompany,
      ({ payroll_company_id: id }, by) => `The employer was linked to payroll company ${id}${by}`,
    ),
    says(
      employers.EmployerUnlinkedFromPayrollCompany,
      ({ payroll_company_id: id }, by) => `The link of the employer to payroll company ${id} was ended${by}`,
    ),
    says(
      ProcessorCustomerCreated,
      ({ processor }, by) => `The employer became a customer of the card processor ${processor}${by}`,
    ),
    says(PersonalDataErased, ({ subject }, by) => `Personal data of ${subject} were erased${by}`),
  ]
}

function ofPayroll() {
  const ofChunk = ({ chunk }: { readonly chunk: number }) => `Part ${chunk + 1}`
  return [
    says(payroll.PayrollFileReceived, ({ row_count, policy_number, period, source }, by) => {
      const of = period === null ? '' : ` for ${period.start} to ${period.end}`
      const how = { tool: 'by a tool call', report: 'by report', inbound_webhook: 'by signed webhook' }
      return `A payroll file of ${rows(row_count)} for policy ${policy_number}${of} came ${how[source.kind]}${by}`
    }),
    says(payroll.PayrollFileProcessed, ({ validation: { green, red }, wages, premium, policy_revision }) => {
      const base = `By revision ${policy_revision} of the policy, ${green} of ${rows(green + red)} are valid`
      const owed =
        premium === null ? 'no premium could be worked out' : `premium ${dollars(premium.premium_cents)}`
      return `${base}: auditable wages ${dollars(wages.auditable_cents)}, ${owed}`
    }),
    says(
      payroll.PayrollRowsRecorded,
      (data) => `${ofChunk(data)} of the file was recorded: ${rows(data.rows.length)}`,
    ),
    says(
      payroll.PayrollFileNormalized,
      ({ row_count, policy_revision }) =>
        `All ${rows(row_count)} were recorded; they are held against revision ${policy_revision} of the policy`,
    ),
    says(
      payroll.PayrollRowsValidated,
      (data) => `${ofChunk(data)} was validated: ${data.green} of ${rows(data.green + data.red)} are valid`,
    ),
    says(
      payroll.PayrollWagesCalculated,
      (data) => `Auditable wages of part ${data.chunk + 1} are ${dollars(data.auditable_cents)}`,
    ),
    says(payroll.PayrollPremiumCalculated, ({ chunk, premium_cents, completed }) => {
      const part = `Premium of part ${chunk + 1} is ${dollars(premium_cents)}`
      return completed ? `${part}; of the whole file it is ${dollars(completed.premium_cents)}` : part
    }),
    says(
      payroll.PayrollFileFailed,
      ({ stage, error }) => `The file failed in ${words(stage)}: ${ended(error)}`,
    ),
    says(
      EmployeeSyncReceived,
      ({ record_count }, by) => `A file of ${record_count} changes of employees came${by}`,
    ),
    says(
      EmployeeChangesRecorded,
      (data) => `${ofChunk(data)} of the file was recorded: ${data.changes.length} changes of employees`,
    ),
  ]
}

function ofDebits() {
  const { BankDebitCreated, BankDebitGated, BankDebitReleased, BankDebitRejected, BankDebitInFile } = debits
  const sources = {
    session: 'a payment session',
    instalment: 'an installment of a payment session',
    api: 'a call',
    collection: 'a batch collection',
    payroll_file: 'a payroll file',
  } as const
  const stops = {
    failed: 'failed',
    legacy_collected: 'was stopped as collected by the legacy service',
    cancelled: 'was cancelled',
    quarantined: 'was put into quarantine',
  } as const
  return [
    says(
      BankDebitCreated,
      ({ amount_cents, source }, by) =>
        `A bank debit of ${dollars(amount_cents)} was created${by} from ${sources[source]}`,
    ),
    says(
      BankDebitGated,
      ({ status, gate, reason }) => `The debit ${stops[status]} at the gate ${gate}${because(words(reason))}`,
    ),
    says(BankDebitReleased, ({ note }, by, before) => {
      const { status } = (before?.type === BankDebitGated.name ? before.data : {}) as { status?: string }
      const from = status === 'quarantined' ? ' from quarantine' : ''
      return `The debit was released${from}${by}${because(note)}`
    }),
    says(BankDebitRejected, ({ note }, by) => `The debit was rejected${by}${because(note)}`),
    says(debits.BankDebitCancelled, (_, by) => `The debit was cancelled${by}`),
    says(debits.BankDebitFailed, ({ note }) => `The debit failed: ${ended(note)}`),
    says(
      debits.BankDebitScheduled,
      ({ batch_closes_at: closes, effective_date: date }, by) =>
        `The debit was scheduled${by} for the batch that closes at ${closes}, to take effect on ${date}`,
    ),
    says(
      debits.BankDebitLeftOut,
      () => 'The batch went without the debit, since its account cannot be read: it has failed',
    ),
    says(
      debits.BankDebitHeldUp,
      ({ since }) => `The batch of the debit waits for the bank, which is away since ${since}`,
    ),
    says(
      BankDebitInFile,
      ({ file_id, trace_number, entry_date }) =>
        `The debit stands in bank file ${file_id} under trace number ${trace_number}, to take effect on ${entry_date}`,
    ),
    says(
      debits.BankDebitSubmitted,
      ({ effective_date }) => `The bank has the debit, to take effect on ${effective_date}`,
    ),
    says(debits.BankDebitReported, ({ processor_status, settled_on }, by) => {
      const word =
        processor_status === null
          ? 'News of the debit came'
          : `The debit was reported ${words(processor_status)}`
      return `${word}${by}${settled_on === null ? '' : `: its money counts as moved from ${settled_on}`}`
    }),
    says(
      debits.BankDebitProcessed,
      () => 'Nothing came back in the days that a return takes: the debit is processed',
    ),
    says(
      debits.BankDebitMatched,
      ({ bank_transaction_id, bank_date, confidence }) =>
        `Its money was found in bank transaction ${bank_transaction_id} of ${bank_date}, with ${confidence} confidence`,
    ),
    says(
      debits.BankDebitReturned,
      ({ return_code }, by) => `The debit came back with return code ${return_code}${by}`,
    ),
    says(
      debits.BankDebitRepresented,
      ({ representment, effective_date, note }, by) =>
        `The debit was presented again${by}, time ${representment}, to take effect on ${effective_date}${because(note)}`,
    ),
    says(
      DebitCollectionAccepted,
      ({ entries }, by) => `A batch collection of ${count(entries.length, 'debit')} was accepted${by}`,
    ),
    says(DebitCollectionRefused, (_, by) => `The batch collection was refused${by}`),
    says(
      BankCreditReceived,
      ({ amount_cents, bank_transaction_id: id, bank_date }, by) =>
        `${dollars(amount_cents)} came in by bank transaction ${id} of ${bank_date}, reported${by || ' by the bank'}`,
    ),
    says(
      BankCreditMatched,
      ({ leg_id, confidence }) => `The credit was taken for debit ${leg_id}, with ${confidence} confidence`,
    ),
    says(BankCreditUnmatched, () => "The credit is no debit's money"),
    ...ofBankFiles(),
  ]
}

function ofBankFiles() {
  return [
    says(
      files.BankFileBegun,
      ({ count: entries }) => `A bank file of ${count(entries, 'entry', 'entries')} was begun`,
    ),
    says(
      files.BankFileRecorded,
      ({ name, debit_cents }) =>
        `The content of bank file ${name} was recorded: debits of ${dollars(debit_cents)}`,
    ),
    says(files.BankFileExposed, () => 'The bank file was put into the outbox'),
    says(files.BankFileFetched, () => 'The bank file was fetched'),
    says(
      files.BankFileUncertain,
      () => 'Whether the bank has the file is unknown: it is not where it should be',
    ),
    says(
      files.BankFileExposureRepeated,
      ({ note }, by) => `The bank file was put into the outbox again${by}${because(note)}`,
    ),
    says(files.BankFileRestaged, () => 'The bank file stands in the outbox again, not yet under its name'),
    says(
      files.BankFileTreatedAsSent,
      ({ note }, by) => `The bank file was taken for sent${by}${because(note)}`,
    ),
    says(files.BankFileAnswered, ({ outcome, batch_numbers: batches, reason, report_id }, by) => {
      const which = batches.length === 0 ? 'the bank file' : `batch ${batches.join(', ')} of the bank file`
      const told = report_id === null ? by : `, as report ${report_id} says`
      return `The bank ${outcome} ${which}${told}${because(reason)}`
    }),
    says(
      files.BankFileOverdue,
      () => 'The bank file is overdue: it was not fetched, or not answered altogether',
    ),
    says(files.BankFileCaughtUp, () => 'The bank file was fetched and answered after all'),
  ]
}

function ofLinks() {
  return [
    says(links.PaymentLinkCreated, ({ premium_cents, fee_cents, payment_type, expires_at }, by) => {
      const total = dollars(premium_cents + fee_cents)
      return `A payment link over ${total} (${words(payment_type)}) was created${by}; it expires at ${expires_at}`
    }),
    says(links.PaymentLinkSent, ({ channel }) => `The link was sent by ${CHANNELS[channel]}`),
    says(
      links.PaymentLinkDeliveryFailed,
      ({ channel }) => `The link could not be sent by ${CHANNELS[channel]}`,
    ),
    says(
      links.PaymentLinkPaid,
      ({ amount_cents, late, simulated }) =>
        `${dollars(amount_cents)} ${simulated ? 'were paid in simulation' : 'were paid'} for the link${late ? ', late' : ''}`,
    ),
    says(
      links.PaymentLinkPaidAgain,
      ({ amount_cents }) => `${dollars(amount_cents)} were paid again: somebody has to give them back`,
    ),
    says(
      links.PaymentLinkAmountDiffered,
      ({ amount_cents, asked_cents }) =>
        `${dollars(amount_cents)} were paid where ${dollars(asked_cents)} were asked for`,
    ),
    says(
      links.PaymentLinkPlanNotStarted,
      ({ reason }) => `The monthly charges of the plan were not started${because(words(reason))}`,
    ),
    says(
      links.PaymentLinkHeldUp,
      ({ work, since }) => `The card processor is awaited since ${since} for: ${words(work)}`,
    ),
    says(links.PaymentLinkPaymentFailed, () => 'An attempt to pay the link failed'),
    says(links.PaymentLinkCancelled, (_, by) => `The link was cancelled${by}`),
    says(links.PaymentLinkExpired, () => 'The link expired'),
    says(
      links.PaymentLinkRefundRequested,
      ({ amount_cents, reason }, by) =>
        `A refund of ${dollars(amount_cents)} was asked for${by}${because(words(reason))}`,
    ),
    says(links.PaymentLinkRefunded, ({ amount_cents }) => `${dollars(amount_cents)} were refunded`),
    says(links.PaymentLinkRefundFailed, ({ refund_id }) => `Refund ${refund_id} failed`),
  ]
}

function ofSessions() {
  const stopped = {
    down_payment_returned: 'the down payment came back',
    down_payment_failed: 'the down payment failed',
    account_disabled: 'the account is debited no more',
    policy_cancelled: 'the policy was cancelled',
  } as const
  return [
    says(
      sessions.PaymentSessionCreated,
      ({ amount_cents, plan, expires_at }, by) =>
        `A payment session over ${dollars(amount_cents)}${plan ? ' with a plan' : ''} was created${by}; it expires at ${expires_at}`,
    ),
    says(sessions.PaymentSessionInvited, ({ channel, status }, by) =>
      status === 'sent'
        ? `The payer was invited by ${CHANNELS[channel]}${by && `, asked for${by}`}`
        : `The payer could not be invited by ${CHANNELS[channel]}`,
    ),
    says(sessions.PaymentSessionOpened, () => 'The payer opened the page'),
    says(
      sessions.PaymentSessionCheckoutBegun,
      ({ processor }) => `A checkout was opened at the card processor ${processor}`,
    ),
    says(
      sessions.PaymentSessionCheckoutClosed,
      () => 'The checkout was closed: nobody can pay there any more',
    ),
    says(
      sessions.PaymentSessionPaymentProcessing,
      () => 'The payer paid in a way whose outcome comes days later',
    ),
    says(
      sessions.PaymentSessionPaid,
      ({ amount_cents, late }) => `${dollars(amount_cents)} were paid for the session${late ? ', late' : ''}`,
    ),
    says(
      sessions.PaymentSessionPaidAgain,
      ({ amount_cents, is_wanted }) =>
        `${dollars(amount_cents)} were paid again${is_wanted ? '' : ': somebody has to give them back'}`,
    ),
    says(
      sessions.PaymentSessionAmountDiffered,
      ({ amount_cents, asked_cents }) =>
        `${dollars(amount_cents)} were paid where ${dollars(asked_cents)} were asked for`,
    ),
    says(sessions.PaymentSessionPaymentFailed, () => 'An attempt to pay the session failed'),
    says(sessions.PaymentSessionDebitArranged, ({ leg_id, instalments }, by) => {
      const now = leg_id === null ? 'nothing now' : `debit ${leg_id} now`
      return `Payment from a bank account was arranged${by}: ${now}, ${count(instalments.length, 'installment')} later`
    }),
    says(
      sessions.PaymentSessionInstalmentMinted,
      ({ number, leg_id }) => `Installment ${number} fell due: debit ${leg_id} is created`,
    ),
    says(
      sessions.PaymentSessionDebitConfirmed,
      ({ leg_id, by }) => `The money of debit ${leg_id} is there, as the ${by} says`,
    ),
    says(
      sessions.PaymentSessionPlanStopped,
      ({ reason }) => `No further installment is collected because ${stopped[reason]}`,
    ),
    says(
      sessions.PaymentSessionHeldUp,
      ({ work, since }) => `The card processor is awaited since ${since} for: ${words(work)}`,
    ),
    says(sessions.PaymentSessionCancelled, (_, by) => `The session was cancelled${by}`),
    says(sessions.PaymentSessionExpired, () => 'The session expired'),
    says(
      sessions.PaymentSessionReplaced,
      ({ replaced_by }, by) => `The session was replaced${by} by session ${replaced_by}`,
    ),
  ]
}

function ofSubscriptions() {
  const endings = {
    requested: 'as was asked for',
    policy_cancelled: 'with its policy',
    payment_failed: 'because its payments kept failing',
    never_paid: 'because its first payment never came',
    completed: 'after its last charge',
    processor: 'by the card processor',
  } as const
  return [
    says(
      subscriptions.SubscriptionStarted,
      ({ amount_cents, charges, source }, by) =>
        `Monthly charges of ${dollars(amount_cents)} (${charges ?? 'until they are cancelled'}) began${by}${source === 'plan' ? ' as the rest of a plan' : ''}`,
    ),
    says(
      subscriptions.SubscriptionChargePaid,
      ({ number, amount_cents }) => `Charge ${number} of ${dollars(amount_cents)} was paid`,
    ),
    says(
      subscriptions.SubscriptionChargePaidAgain,
      ({ number, amount_cents }) =>
        `${dollars(amount_cents)} were taken for charge ${number} and not owed: somebody has to give them back`,
    ),
    says(
      subscriptions.SubscriptionPaymentDiffered,
      ({ number, amount_cents, asked_cents }) =>
        `${dollars(amount_cents)} were taken for charge ${number} where ${dollars(asked_cents)} were asked for`,
    ),
    says(
      subscriptions.SubscriptionChargeFailed,
      ({ number, failure_code }) =>
        `A try of charge ${number} failed${failure_code === null ? '' : ` with ${failure_code}`}`,
    ),
    says(
      subscriptions.SubscriptionStatusReported,
      ({ status }) => `The card processor says that the subscription is ${words(status)}`,
    ),
    says(subscriptions.SubscriptionCancellationRequested, ({ reason }, by) =>
      reason === 'policy_cancelled'
        ? 'The subscription is to end because its policy was cancelled'
        : `The end of the subscription was asked for${by}`,
    ),
    says(
      subscriptions.SubscriptionCancellationWithdrawn,
      () => 'The card processor did not end the subscription: it goes on',
    ),
    says(
      subscriptions.SubscriptionHeldUp,
      ({ work, since }) => `The card processor is awaited since ${since} for: ${words(work)}`,
    ),
    says(
      subscriptions.SubscriptionChargeOverdue,
      ({ number, due_at }) => `Charge ${number} is overdue: it was due at ${due_at}, and no news of it came`,
    ),
    says(subscriptions.SubscriptionEnded, ({ reason }) => `The subscription ended ${endings[reason]}`),
  ]
}

function ofWebhooks() {
  return [
    says(WebhookEventRaised, ({ event_type }) => `Event ${event_type} was raised for webhooks`),
    says(
      WebhookDeliveryDropped,
      ({ subscription_id: id }) =>
        `Subscription ${id} did not take the event within 48 hours: it is not sent there any more`,
    ),
    says(
      webhooks.WebhookSubscriptionRegistered,
      ({ events }, by) =>
        `A webhook subscription to ${count(events.length, 'event type')} was registered${by}`,
    ),
    says(
      webhooks.WebhookSubscriptionChanged,
      ({ subscription_id: _, at: __, ...changed }, by) =>
        `The webhook subscription was changed${by}: ${names(changed)}`,
    ),
    says(webhooks.WebhookSecretRotated, (_, by) => `The secret of the webhook subscription was rotated${by}`),
    says(
      webhooks.WebhookSubscriptionDisabled,
      (data, by) =>
        `The webhook subscription was switched off${by}${data.by === 'failures' ? ' because deliveries kept failing' : ''}`,
    ),
    says(webhooks.WebhookSubscriptionEnabled, (_, by) => `The webhook subscription was switched on${by}`),
    says(webhooks.WebhookSubscriptionDeleted, (_, by) => `The webhook subscription was deleted${by}`),
  ]
}

const CHANNELS = { email: 'email', sms: 'text message' } as const

/** A code as words: `policy_cancelled`, `start-plan`. */
function words<Text extends string | null>(code: Text): Text {
  return (code?.replaceAll(/(?<=[A-Za-z])[_-](?=[A-Za-z])/g, ' ') ?? null) as Text
}

function because(reason: string | null): string {
  return reason === null ? '' : ` because: ${ended(reason)}`
}

/** Text of others, whose end is that of the sentence. */
function ended(text: string): string {
  return text.trim().replace(/\.$/, '')
}

function names(changed: object): string {
  return Object.keys(changed).map(words).join(', ')
}

function rows(number: number): string {
  return count(number, 'row')
}

function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`
}
