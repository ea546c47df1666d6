import type { z } from 'zod'
import type * as credits from '../../domain/banking/credits/bank-credit.ts'
import type * as debits from '../../domain/banking/debits/bank-debit-events.ts'
import type * as collections from '../../domain/banking/debits/debit-collection.ts'
import type * as files from '../../domain/banking/files/bank-file-events.ts'
import type { DomainEvent, EventType } from '../../domain/kernel/event-type.ts'
import { dollars } from '../../domain/kernel/money.ts'
import type * as subjects from '../../domain/operations/data-subject.ts'
import type * as actions from '../../domain/operations/operator-action.ts'
import type * as employees from '../../domain/parties/employee-sync.ts'
import type * as employers from '../../domain/parties/employer.ts'
import type * as links from '../../domain/payments/links/payment-link-events.ts'
import type * as customers from '../../domain/payments/processor/processor-customer.ts'
import type * as sessions from '../../domain/payments/sessions/payment-session-events.ts'
import type * as subscriptions from '../../domain/payments/subscriptions/subscription-events.ts'
import type * as payroll from '../../domain/payroll/payroll-file-events.ts'
import type * as policies from '../../domain/policies/policy.ts'
import type * as deliveries from '../../domain/webhooks/webhook-event.ts'
import type * as webhooks from '../../domain/webhooks/webhook-subscriptions.ts'
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

/** Sentences of event types that modules export, by their names. */
type Sentences<Module> = {
  readonly [Name in keyof Module]?: Module[Name] extends EventType<string, infer Schema>
    ? Say<z.output<Schema>>
    : never
}

const OF_PARTIES = {
  PolicyIssued: (data, by) => {
    const { policy_number, status, effective_date, expiration_date } = data
    return `Policy ${policy_number} was issued${by} as ${words(status)}, from ${effective_date} to ${expiration_date}`
  },
  PolicyTermsChanged: ({ policy_id: _, ...terms }, by) => `Terms were changed${by}: ${names(terms)}`,
  PolicyCancelled: ({ reason }, by) => `The policy was cancelled${by}${because(reason)}`,
  PolicyActivated: (_, by) => `The policy became active${by}`,
  PolicyNotActivated: ({ reason, holder_policy_id: holder }) =>
    reason === 'policy_cancelled'
      ? 'The policy could not become active: it is cancelled'
      : `The policy could not become active: its number is that of policy ${holder ?? 'unknown'}`,
  EmployerRegistered: (_, by) => `The employer was registered${by}`,
  EmployerDetailsChanged: ({ employer_id: _, ...details }, by) =>
    `Details of the employer were changed${by}: ${names(details)}`,
  EmployerLinkedToPayrollCompany: ({ payroll_company_id: id }, by) =>
    `The employer was linked to payroll company ${id}${by}`,
  EmployerUnlinkedFromPayrollCompany: ({ payroll_company_id: id }, by) =>
    `The link of the employer to payroll company ${id} was ended${by}`,
  ProcessorCustomerCreated: ({ processor }, by) =>
    `The employer became a customer of the card processor ${processor}${by}`,
  PersonalDataErased: ({ subject }, by) => `Personal data of ${subject} were erased${by}`,
} satisfies Sentences<typeof policies & typeof employers & typeof customers & typeof subjects>

const ofChunk = ({ chunk }: { readonly chunk: number }) => `Part ${chunk + 1}`

const OF_PAYROLL = {
  PayrollFileReceived: ({ row_count, policy_number, period, source }, by) => {
    const of = period === null ? '' : ` for ${period.start} to ${period.end}`
    const how = { tool: 'by a tool call', report: 'by report', inbound_webhook: 'by signed webhook' }
    return `A payroll file of ${rows(row_count)} for policy ${policy_number}${of} came ${how[source.kind]}${by}`
  },
  PayrollFileProcessed: ({ validation: { green, red }, wages, premium, policy_revision }) => {
    const base = `By revision ${policy_revision} of the policy, ${green} of ${rows(green + red)} are valid`
    const owed =
      premium === null ? 'no premium could be worked out' : `premium ${dollars(premium.premium_cents)}`
    return `${base}: auditable wages ${dollars(wages.auditable_cents)}, ${owed}`
  },
  PayrollRowsRecorded: (data) => `${ofChunk(data)} of the file was recorded: ${rows(data.rows.length)}`,
  PayrollFileNormalized: ({ row_count, policy_revision }) =>
    `All ${rows(row_count)} were recorded; they are held against revision ${policy_revision} of the policy`,
  PayrollRowsValidated: (data) =>
    `${ofChunk(data)} was validated: ${data.green} of ${rows(data.green + data.red)} are valid`,
  PayrollWagesCalculated: (data) =>
    `Auditable wages of part ${data.chunk + 1} are ${dollars(data.auditable_cents)}`,
  PayrollPremiumCalculated: ({ chunk, premium_cents, completed }) => {
    const part = `Premium of part ${chunk + 1} is ${dollars(premium_cents)}`
    return completed ? `${part}; of the whole file it is ${dollars(completed.premium_cents)}` : part
  },
  PayrollFileFailed: ({ stage, error }) => `The file failed in ${words(stage)}: ${ended(error)}`,
  EmployeeSyncReceived: ({ record_count }, by) => `A file of ${record_count} changes of employees came${by}`,
  EmployeeChangesRecorded: (data) =>
    `${ofChunk(data)} of the file was recorded: ${data.changes.length} changes of employees`,
} satisfies Sentences<typeof payroll & typeof employees>

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

const OF_DEBITS = {
  BankDebitCreated: ({ amount_cents, source }, by) =>
    `A bank debit of ${dollars(amount_cents)} was created${by} from ${sources[source]}`,
  BankDebitGated: ({ status, gate, reason }) =>
    `The debit ${stops[status]} at the gate ${gate}${because(words(reason))}`,
  BankDebitReleased: ({ note }, by, before) => {
    const { status } = (before?.type === 'BankDebitGated' ? before.data : {}) as { status?: string }
    const from = status === 'quarantined' ? ' from quarantine' : ''
    return `The debit was released${from}${by}${because(note)}`
  },
  BankDebitRejected: ({ note }, by) => `The debit was rejected${by}${because(note)}`,
  BankDebitCancelled: (_, by) => `The debit was cancelled${by}`,
  BankDebitFailed: ({ note }) => `The debit failed: ${ended(note)}`,
  BankDebitScheduled: ({ batch_closes_at: closes, effective_date: date }, by) =>
    `The debit was scheduled${by} for the batch that closes at ${closes}, to take effect on ${date}`,
  BankDebitLeftOut: () => 'The batch went without the debit, since its account cannot be read: it has failed',
  BankDebitHeldUp: ({ since }) => `The batch of the debit waits for the bank, which is away since ${since}`,
  BankDebitInFile: ({ file_id, trace_number, entry_date }) =>
    `The debit stands in bank file ${file_id} under trace number ${trace_number}, to take effect on ${entry_date}`,
  BankDebitSubmitted: ({ effective_date }) => `The bank has the debit, to take effect on ${effective_date}`,
  BankDebitReported: ({ processor_status, settled_on }, by) => {
    const word =
      processor_status === null
        ? 'News of the debit came'
        : `The debit was reported ${words(processor_status)}`
    return `${word}${by}${settled_on === null ? '' : `: its money counts as moved from ${settled_on}`}`
  },
  BankDebitProcessed: () => 'Nothing came back in the days that a return takes: the debit is processed',
  BankDebitMatched: ({ bank_transaction_id, bank_date, confidence }) =>
    `Its money was found in bank transaction ${bank_transaction_id} of ${bank_date}, with ${confidence} confidence`,
  BankDebitReturned: ({ return_code }, by) => `The debit came back with return code ${return_code}${by}`,
  BankDebitRepresented: ({ representment, effective_date, note }, by) =>
    `The debit was presented again${by}, time ${representment}, to take effect on ${effective_date}${because(note)}`,
  DebitCollectionAccepted: ({ entries }, by) =>
    `A batch collection of ${count(entries.length, 'debit')} was accepted${by}`,
  DebitCollectionRefused: (_, by) => `The batch collection was refused${by}`,
  BankCreditReceived: ({ amount_cents, bank_transaction_id: id, bank_date }, by) =>
    `${dollars(amount_cents)} came in by bank transaction ${id} of ${bank_date}, reported${by || ' by the bank'}`,
  BankCreditMatched: ({ leg_id, confidence }) =>
    `The credit was taken for debit ${leg_id}, with ${confidence} confidence`,
  BankCreditUnmatched: () => "The credit is no debit's money",
} satisfies Sentences<typeof debits & typeof collections & typeof credits>

const OF_BANK_FILES = {
  BankFileBegun: ({ count: entries }) => `A bank file of ${count(entries, 'entry', 'entries')} was begun`,
  BankFileRecorded: ({ name, debit_cents }) =>
    `The content of bank file ${name} was recorded: debits of ${dollars(debit_cents)}`,
  BankFileExposed: () => 'The bank file was put into the outbox',
  BankFileFetched: () => 'The bank file was fetched',
  BankFileUncertain: () => 'Whether the bank has the file is unknown: it is not where it should be',
  BankFileExposureRepeated: ({ note }, by) =>
    `The bank file was put into the outbox again${by}${because(note)}`,
  BankFileRestaged: () => 'The bank file stands in the outbox again, not yet under its name',
  BankFileTreatedAsSent: ({ note }, by) => `The bank file was taken for sent${by}${because(note)}`,
  BankFileAnswered: ({ outcome, batch_numbers: batches, reason, report_id }, by) => {
    const which = batches.length === 0 ? 'the bank file' : `batch ${batches.join(', ')} of the bank file`
    const told = report_id === null ? by : `, as report ${report_id} says`
    return `The bank ${outcome} ${which}${told}${because(reason)}`
  },
  BankFileOverdue: () => 'The bank file is overdue: it was not fetched, or not answered altogether',
  BankFileCaughtUp: () => 'The bank file was fetched and answered after all',
} satisfies Sentences<typeof files>

const CHANNELS = { email: 'email', sms: 'text message' } as const

const OF_LINKS = {
  PaymentLinkCreated: ({ premium_cents, fee_cents, payment_type, expires_at }, by) => {
    const total = dollars(premium_cents + fee_cents)
    return `A payment link over ${total} (${words(payment_type)}) was created${by}; it expires at ${expires_at}`
  },
  PaymentLinkSent: ({ channel }) => `The link was sent by ${CHANNELS[channel]}`,
  PaymentLinkDeliveryFailed: ({ channel }) => `The link could not be sent by ${CHANNELS[channel]}`,
  PaymentLinkPaid: ({ amount_cents, late, simulated }) =>
    `${dollars(amount_cents)} ${simulated ? 'were paid in simulation' : 'were paid'} for the link${late ? ', late' : ''}`,
  PaymentLinkPaidAgain: ({ amount_cents }) =>
    `${dollars(amount_cents)} were paid again: somebody has to give them back`,
  PaymentLinkAmountDiffered: ({ amount_cents, asked_cents }) =>
    `${dollars(amount_cents)} were paid where ${dollars(asked_cents)} were asked for`,
  PaymentLinkPlanNotStarted: ({ reason }) =>
    `The monthly charges of the plan were not started${because(words(reason))}`,
  PaymentLinkHeldUp: ({ work, since }) => `The card processor is awaited since ${since} for: ${words(work)}`,
  PaymentLinkPaymentFailed: () => 'An attempt to pay the link failed',
  PaymentLinkCancelled: (_, by) => `The link was cancelled${by}`,
  PaymentLinkExpired: () => 'The link expired',
  PaymentLinkRefundRequested: ({ amount_cents, reason }, by) =>
    `A refund of ${dollars(amount_cents)} was asked for${by}${because(words(reason))}`,
  PaymentLinkRefunded: ({ amount_cents }) => `${dollars(amount_cents)} were refunded`,
  PaymentLinkRefundFailed: ({ refund_id }) => `Refund ${refund_id} failed`,
} satisfies Sentences<typeof links>

const stopped = {
  down_payment_returned: 'the down payment came back',
  down_payment_failed: 'the down payment failed',
  account_disabled: 'the account is debited no more',
  policy_cancelled: 'the policy was cancelled',
} as const

const OF_SESSIONS = {
  PaymentSessionCreated: ({ amount_cents, plan, expires_at }, by) =>
    `A payment session over ${dollars(amount_cents)}${plan ? ' with a plan' : ''} was created${by}; it expires at ${expires_at}`,
  PaymentSessionInvited: ({ channel, status }, by) =>
    status === 'sent'
      ? `The payer was invited by ${CHANNELS[channel]}${by && `, asked for${by}`}`
      : `The payer could not be invited by ${CHANNELS[channel]}`,
  PaymentSessionOpened: () => 'The payer opened the page',
  PaymentSessionCheckoutBegun: ({ processor }) => `A checkout was opened at the card processor ${processor}`,
  PaymentSessionCheckoutClosed: () => 'The checkout was closed: nobody can pay there any more',
  PaymentSessionPaymentProcessing: () => 'The payer paid in a way whose outcome comes days later',
  PaymentSessionPaid: ({ amount_cents, late }) =>
    `${dollars(amount_cents)} were paid for the session${late ? ', late' : ''}`,
  PaymentSessionPaidAgain: ({ amount_cents, is_wanted }) =>
    `${dollars(amount_cents)} were paid again${is_wanted ? '' : ': somebody has to give them back'}`,
  PaymentSessionAmountDiffered: ({ amount_cents, asked_cents }) =>
    `${dollars(amount_cents)} were paid where ${dollars(asked_cents)} were asked for`,
  PaymentSessionPaymentFailed: () => 'An attempt to pay the session failed',
  PaymentSessionDebitArranged: ({ leg_id, instalments }, by) => {
    const now = leg_id === null ? 'nothing now' : `debit ${leg_id} now`
    return `Payment from a bank account was arranged${by}: ${now}, ${count(instalments.length, 'installment')} later`
  },
  PaymentSessionInstalmentMinted: ({ number, leg_id }) =>
    `Installment ${number} fell due: debit ${leg_id} is created`,
  PaymentSessionDebitConfirmed: ({ leg_id, by }) =>
    `The money of debit ${leg_id} is there, as the ${by} says`,
  PaymentSessionPlanStopped: ({ reason }) => `No further installment is collected because ${stopped[reason]}`,
  PaymentSessionHeldUp: ({ work, since }) =>
    `The card processor is awaited since ${since} for: ${words(work)}`,
  PaymentSessionCancelled: (_, by) => `The session was cancelled${by}`,
  PaymentSessionExpired: () => 'The session expired',
  PaymentSessionReplaced: ({ replaced_by }, by) => `The session was replaced${by} by session ${replaced_by}`,
} satisfies Sentences<typeof sessions>

const endings = {
  requested: 'as was asked for',
  policy_cancelled: 'with its policy',
  payment_failed: 'because its payments kept failing',
  never_paid: 'because its first payment never came',
  completed: 'after its last charge',
  processor: 'by the card processor',
} as const

const OF_SUBSCRIPTIONS = {
  SubscriptionStarted: ({ amount_cents, charges, source }, by) =>
    `Monthly charges of ${dollars(amount_cents)} (${charges ?? 'until they are cancelled'}) began${by}${source === 'plan' ? ' as the rest of a plan' : ''}`,
  SubscriptionChargePaid: ({ number, amount_cents }) =>
    `Charge ${number} of ${dollars(amount_cents)} was paid`,
  SubscriptionChargePaidAgain: ({ number, amount_cents }) =>
    `${dollars(amount_cents)} were taken for charge ${number} and not owed: somebody has to give them back`,
  SubscriptionPaymentDiffered: ({ number, amount_cents, asked_cents }) =>
    `${dollars(amount_cents)} were taken for charge ${number} where ${dollars(asked_cents)} were asked for`,
  SubscriptionChargeFailed: ({ number, failure_code }) =>
    `A try of charge ${number} failed${failure_code === null ? '' : ` with ${failure_code}`}`,
  SubscriptionStatusReported: ({ status }) =>
    `The card processor says that the subscription is ${words(status)}`,
  SubscriptionCancellationRequested: ({ reason }, by) =>
    reason === 'policy_cancelled'
      ? 'The subscription is to end because its policy was cancelled'
      : `The end of the subscription was asked for${by}`,
  SubscriptionCancellationWithdrawn: () => 'The card processor did not end the subscription: it goes on',
  SubscriptionHeldUp: ({ work, since }) => `The card processor is awaited since ${since} for: ${words(work)}`,
  SubscriptionChargeOverdue: ({ number, due_at }) =>
    `Charge ${number} is overdue: it was due at ${due_at}, and no news of it came`,
  SubscriptionEnded: ({ reason }) => `The subscription ended ${endings[reason]}`,
} satisfies Sentences<typeof subscriptions>

const OF_WEBHOOKS = {
  WebhookEventRaised: ({ event_type }) => `Event ${event_type} was raised for webhooks`,
  WebhookDeliveryDropped: ({ subscription_id: id }) =>
    `Subscription ${id} did not take the event within 48 hours: it is not sent there any more`,
  WebhookSubscriptionRegistered: ({ events }, by) =>
    `A webhook subscription to ${count(events.length, 'event type')} was registered${by}`,
  WebhookSubscriptionChanged: ({ subscription_id: _, at: __, ...changed }, by) =>
    `The webhook subscription was changed${by}: ${names(changed)}`,
  WebhookSecretRotated: (_, by) => `The secret of the webhook subscription was rotated${by}`,
  WebhookSubscriptionDisabled: (data, by) =>
    `The webhook subscription was switched off${by}${data.by === 'failures' ? ' because deliveries kept failing' : ''}`,
  WebhookSubscriptionEnabled: (_, by) => `The webhook subscription was switched on${by}`,
  WebhookSubscriptionDeleted: (_, by) => `The webhook subscription was deleted${by}`,
} satisfies Sentences<typeof deliveries & typeof webhooks>

const OF_OPERATORS = {
  // recorded before it is done, and where it is refused then as well
  OperatorActed: ({ action, target, details: { reason } }, by) => {
    const why = because(typeof reason === 'string' ? reason : null)
    return `The action ${words(action)} was asked for${by}${target === '' ? '' : ` on ${target}`}${why}`
  },
} satisfies Sentences<typeof actions>

const SENTENCES: ReadonlyMap<string, Say<never>> = new Map(
  Object.entries<Say<never>>({
    ...OF_PARTIES,
    ...OF_PAYROLL,
    ...OF_DEBITS,
    ...OF_BANK_FILES,
    ...OF_LINKS,
    ...OF_SESSIONS,
    ...OF_SUBSCRIPTIONS,
    ...OF_WEBHOOKS,
    ...OF_OPERATORS,
  }),
)

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
