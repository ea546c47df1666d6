import { bankCredit } from '../../domain/banking/credits/bank-credit.ts'
import { bankDebit } from '../../domain/banking/debits/bank-debit.ts'
import {
  BankDebitCreated,
  BankDebitInFile,
  BankDebitMatched,
} from '../../domain/banking/debits/bank-debit-events.ts'
import { debitCollection } from '../../domain/banking/debits/debit-collection.ts'
import { bankFile } from '../../domain/banking/files/bank-file.ts'
import { type Aggregate, streamOf } from '../../domain/kernel/decider.ts'
import type { EventOf, EventType } from '../../domain/kernel/event-type.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { dataSubject, dataSubjectId } from '../../domain/operations/data-subject.ts'
import { employeeSync } from '../../domain/parties/employee-sync.ts'
import { employer } from '../../domain/parties/employer.ts'
import { paymentLink } from '../../domain/payments/links/payment-link.ts'
import { processorCustomer } from '../../domain/payments/processor/processor-customer.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import {
  PaymentSessionDebitArranged,
  PaymentSessionInstalmentMinted,
} from '../../domain/payments/sessions/payment-session-events.ts'
import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import { payrollFile } from '../../domain/payroll/payroll-file.ts'
import { PayrollFileReceived } from '../../domain/payroll/payroll-file-events.ts'
import { policy } from '../../domain/policies/policy.ts'
import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import {
  subscriptionsId,
  type WebhookSubscriptions,
  webhookSubscriptions,
} from '../../domain/webhooks/webhook-subscriptions.ts'
import { DIRECTORY_ENTRY } from '../access/list-directory.ts'
import { creditIdOf } from '../banking/credits/bank-credits.ts'
import { payrollDebitId } from '../banking/debits/payroll-debits.ts'
import type { Application } from '../commands/application.ts'
import { eventsOf } from '../commands/events-of.ts'
import { employerSubject } from '../commands/sealing.ts'
import { planSubscriptionId } from '../payments/subscriptions/plan-subscriptions.ts'
import type { StoredEvent } from '../ports/event-log.ts'
import { findCurrent } from '../queries/find-current.ts'

/** Which streams tell the story of a thing. */

/** What has a story. */
export const STORY_KINDS = [
  'policy',
  'employer',
  'file',
  'link',
  'session',
  'debit',
  'subscription',
  'webhook',
] as const
export type StoryKind = (typeof STORY_KINDS)[number]

/** A thing that a story is about, or leads to. */
export interface Thing {
  readonly kind: StoryKind
  readonly id: string
}

/** The streams that belong to a thing as a whole. */
export interface StoryStreams {
  /** What the thing is. */
  readonly root: string
  /** Others, with all their events. */
  readonly others: readonly string[]
  /** Where a stream tells of several things: which events are about this one, and what the state of this one is. */
  readonly part?: {
    readonly holds: (event: StoredEvent) => boolean
    readonly of: (state: unknown) => unknown
  }
}

/** Categories of the streams in stories, with what their things are. Others have none of their own. */
const KIND_OF: Readonly<Record<string, StoryKind>> = {
  [policy.category]: 'policy',
  [employer.category]: 'employer',
  [payrollFile.category]: 'file',
  [employeeSync.category]: 'file',
  [paymentLink.category]: 'link',
  [paymentSession.category]: 'session',
  [bankDebit.category]: 'debit',
  [subscription.category]: 'subscription',
  [webhookEvent.category]: 'webhook',
}

/** Everything that may stand in a story. */
export const STORY_AGGREGATES: readonly Pick<Aggregate, 'category' | 'events'>[] = [
  policy,
  employer,
  processorCustomer,
  dataSubject,
  payrollFile,
  employeeSync,
  paymentLink,
  paymentSession,
  bankDebit,
  debitCollection,
  bankFile,
  bankCredit,
  subscription,
  webhookEvent,
  webhookSubscriptions,
]

/** The thing whose stream it is; null: that has no story of its own. */
export function thingOf(category: string, id: string): Thing | null {
  const kind = KIND_OF[category]
  return kind === undefined ? null : { kind, id }
}

/** Events of a thing that are looked through for the streams that they name, at the most. */
const LOOKED_THROUGH = 1_000

/**
 * The streams of a thing, as far as they are there now.
 * @returns null when there is no such thing.
 */
export async function storyStreams(app: Application, { kind, id }: Thing): Promise<StoryStreams | null> {
  if (!isId(id)) return null
  switch (kind) {
    case 'policy':
      return { root: streamOf(policy, id), others: [] }
    case 'employer': {
      const subject = dataSubjectId(employerSubject(app.personalData, id))
      const others = [streamOf(processorCustomer, id), streamOf(dataSubject, subject)]
      return { root: streamOf(employer, id), others }
    }
    case 'file':
      return ofFile(app, id)
    case 'link':
      return { root: streamOf(paymentLink, id), others: [streamOf(subscription, planSubscriptionId(id))] }
    case 'session':
      return ofSession(app, id)
    case 'debit':
      return ofDebit(app, id)
    case 'subscription':
      return { root: streamOf(subscription, id), others: [] }
    case 'webhook':
      return ofWebhook(app, id)
  }
}

async function ofFile(app: Application, id: string): Promise<StoryStreams> {
  const root = streamOf(payrollFile, id)
  const [received] = await dataOf(app, root, PayrollFileReceived, 1)
  if (!received) return { root: streamOf(employeeSync, id), others: [] }
  return { root, others: [streamOf(bankDebit, payrollDebitId(id, received.policy_id))] }
}

async function ofSession(app: Application, id: string): Promise<StoryStreams> {
  const root = streamOf(paymentSession, id)
  const arranged = await dataOf(app, root, PaymentSessionDebitArranged)
  const minted = await dataOf(app, root, PaymentSessionInstalmentMinted)
  const debits = [...arranged, ...minted].flatMap(({ leg_id }) => leg_id ?? [])
  return { root, others: [...new Set(debits)].map((debit) => streamOf(bankDebit, debit)) }
}

async function ofDebit(app: Application, id: string): Promise<StoryStreams> {
  const root = streamOf(bankDebit, id)
  const [created] = await dataOf(app, root, BankDebitCreated, 1)
  if (!created) return { root, others: [] }
  const { collection_id: collection, carrier_id } = created
  const files = await dataOf(app, root, BankDebitInFile)
  const matches = await dataOf(app, root, BankDebitMatched)
  const others = [
    ...(collection === null ? [] : [streamOf(debitCollection, collection)]),
    ...files.map(({ file_id }) => streamOf(bankFile, file_id)),
    ...matches.map((match) => streamOf(bankCredit, creditIdOf(carrier_id, match.bank_transaction_id))),
  ]
  return { root, others: [...new Set(others)] }
}

/** An event for partners, or a subscription, also a deleted one: its stream is that of its tenant. */
async function ofWebhook(app: Application, id: string): Promise<StoryStreams | null> {
  const root = streamOf(webhookEvent, id)
  if ((await app.log.readStream(root, { maxCount: 1 })).length > 0) return { root, others: [] }
  const holds = ({ data }: StoredEvent) =>
    (JSON.parse(data) as { subscription_id?: unknown } | null)?.subscription_id === id
  const of = (state: unknown) =>
    (state as WebhookSubscriptions).subscriptions.find(({ _id }) => _id === id) ?? null
  const find = async () =>
    (await app.read.query(DIRECTORY_ENTRY, { kind: 'webhook_subscription', id }))[0] ?? null
  const place = await findCurrent(app, 'directory', find)
  if (place === null) return null
  const stream = streamOf(webhookSubscriptions, subscriptionsId(place.tenant_id, place.environment!))
  return { root: stream, others: [], part: { holds, of } }
}

/** The data of the events of a type in a stream. @param most events that are looked through. */
async function dataOf<Type extends EventType>(
  { log, registry }: Pick<Application, 'log' | 'registry'>,
  stream: string,
  type: Type,
  most = LOOKED_THROUGH,
): Promise<readonly EventOf<Type>['data'][]> {
  const found: EventOf<Type>['data'][] = []
  let looked = 0
  for await (const event of eventsOf(log, stream, { pageSize: Math.min(most, 100) })) {
    if (event.type === type.name) found.push(registry.decode(event).data as EventOf<Type>['data'])
    looked += 1
    if (looked >= most) break
  }
  return found
}
