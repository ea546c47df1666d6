import { agentCredential } from '../../domain/access/agent-credential.ts'
import { apiClient } from '../../domain/access/api-client.ts'
import { inboundConnection } from '../../domain/access/inbound-connection.ts'
import { tenant } from '../../domain/access/tenant.ts'
import { achAccount } from '../../domain/banking/accounts/ach-account.ts'
import { bankAccount } from '../../domain/banking/accounts/bank-account.ts'
import { bankCredit } from '../../domain/banking/credits/bank-credit.ts'
import { bankDebit } from '../../domain/banking/debits/bank-debit.ts'
import { debitCollection } from '../../domain/banking/debits/debit-collection.ts'
import { bankFile } from '../../domain/banking/files/bank-file.ts'
import { bankReport } from '../../domain/banking/files/bank-report.ts'
import { bankConnection } from '../../domain/banking/linking/bank-connection.ts'
import { reconciliation } from '../../domain/banking/reconciliation/reconciliation.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { isSealed } from '../../domain/kernel/sealed.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { normalizeFein } from '../../domain/parties/fein.ts'
import { payrollCompany } from '../../domain/parties/payroll-company.ts'
import { type FinancingSession, financingSession } from '../../domain/payments/financing/financing-session.ts'
import { FinancingSessionCreated } from '../../domain/payments/financing/financing-session-events.ts'
import { linkAmountCents, paymentLink, statusAt } from '../../domain/payments/links/payment-link.ts'
import { processorNotice } from '../../domain/payments/processor/processor-notice.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import { sessionStatusAt } from '../../domain/payments/sessions/payment-session-status.ts'
import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import { intake } from '../../domain/policies/intake.ts'
import { policy, statusOn } from '../../domain/policies/policy.ts'
import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import { DIRECTORY_ENTRY } from '../access/list-directory.ts'
import type { Application } from '../commands/application.ts'
import { comparable } from '../commands/found-by.ts'
import { MASK, openedOne } from '../commands/sealed-fields.ts'
import { showEmployer } from '../parties/show-employers.ts'
import { showLink } from '../payments/links/show-links.ts'
import { showSession } from '../payments/sessions/show-sessions.ts'
import { type Parameter, statement } from '../queries/statement.ts'
import { isBeginningOf, type Sought } from './terms.ts'

/** What is known of a thing that was found. */
export interface FoundThing {
  /** What it is, for people; nothing personal. */
  readonly label: string
  /**
   * Whether a personal value, or a name, is still its own: rows of the search are only added. Absent: nothing that it is
   * found by ever changes.
   */
  readonly isStill?: (sought: Sought) => boolean | Promise<boolean>
}

/** Finds a thing by its id; null: there is none. */
type Finder = (app: Parts, id: string) => Promise<FoundThing | null>
export type Parts = Pick<Application, 'commands' | 'read' | 'readModels' | 'log' | 'personalData' | 'clock'>

/** @param label what a state is called. */
function ofLog<State, Command, Event extends DomainEvent>(
  decider: Decider<State | null, Command, Event>,
  label: (state: State, now: number) => string,
  isStill?: (app: Parts, state: State) => FoundThing['isStill'],
): Finder {
  return async (app, id) => {
    const { state } = await app.commands.load(decider, id)
    if (state === null) return null
    const still = isStill?.(app, state)
    return { label: label(state, app.clock.now()), ...(still && { isStill: still }) }
  }
}

const FILE = statement('search-payroll-file', (db, $: Parameter<{ readonly id: string }>) =>
  db
    .selectFrom('payroll_files')
    .select(['kind', 'file_name', 'policy_number', 'status', 'created_at'])
    .where('file_id', '=', $('id')),
)
const LEGACY = statement('search-legacy-collection', (db, $: Parameter<{ readonly id: string }>) =>
  db
    .selectFrom('legacy_collections')
    .select(['amount_cents', 'status'])
    .where('transaction_id', '=', $('id')),
)
const ALERT = statement('search-alert', (db, $: Parameter<{ readonly id: string }>) =>
  db.selectFrom('operator_alerts').select('kind').where('alert_id', '=', $('id')),
)

/** Everything that a search finds, by kind. */
export const THINGS: Readonly<Record<string, Finder>> = {
  tenant: ofLog(tenant, ({ name }) => name),
  carrier: ofLog(carrier, ({ name }) => name),
  payroll_company: ofLog(payrollCompany, ({ name }) => name),
  employer: ofLog(
    employer,
    ({ legal_name }) => (isSealed(legal_name) ? MASK : legal_name),
    (app, state) => (sought) => isStillOfEmployer(app, state, sought),
  ),
  policy: ofLog(policy, (one, now) => `${one.policy_number}, ${statusOn(one, now)}`),
  api_client: ofLog(apiClient, ({ name, status }) => `${name}, ${status}`),
  agent_credential: ofLog(agentCredential, ({ agent_name, status }) => `${agent_name}, ${status}`),
  inbound_connection: ofLog(
    inboundConnection,
    ({ environment, status }) => `${environment} connection, ${status}`,
  ),
  payroll_file: async ({ read }, id) => {
    const file = (await read.query(FILE, { id }))[0]
    if (!file) return null
    const what =
      file.file_name ?? (file.kind === 'sync' ? 'employee sync' : `payroll of ${file.policy_number}`)
    return { label: `${what}, ${file.status}` }
  },
  payment_link: ofLog(
    paymentLink,
    (one, now) => `${dollars(linkAmountCents(one))}, ${statusAt(one, now)}`,
    (app, link) =>
      async ({ name }) =>
        isSame((await showLink(app, link)).customer.email, name),
  ),
  payment_session: ofLog(
    paymentSession,
    (one, now) => `${dollars(one.amount_cents)}, ${sessionStatusAt(one, now)}`,
    (app, session) =>
      async ({ name }) =>
        isSame((await showSession(app, session)).customer.email, name),
  ),
  financing_session: ofLog(
    financingSession,
    ({ amount_cents }) => dollars(amount_cents),
    (app, session) =>
      async ({ name }) =>
        isSame(await payerOf(app, session), name),
  ),
  subscription: ofLog(
    subscription,
    ({ amount_cents, status }) => `${dollars(amount_cents)} monthly, ${status}`,
  ),
  debit: ofLog(bankDebit, ({ amount_cents, status }) => `${dollars(amount_cents)}, ${status}`),
  debit_collection: async ({ commands }, id) => {
    const { state } = await commands.load(debitCollection, id)
    // of a refused one nothing is kept but its id
    return state === null || state === 'refused' ? null : { label: `${state.entries.length} debits` }
  },
  bank_account: ofLog(bankAccount, ({ bank_name, status }) => `${bank_name}, ${status}`),
  ach_account: ofLog(
    achAccount,
    ({ bank_name, account, status }) => `${bank_name} …${account.account_last4}, ${status}`,
  ),
  bank_connection: ofLog(
    bankConnection,
    ({ institution_name, provider, status }) => `${institution_name ?? provider}, ${status}`,
  ),
  bank_credit: ofLog(bankCredit, ({ amount_cents, bank_date }) => `${dollars(amount_cents)} on ${bank_date}`),
  bank_file: ofLog(bankFile, ({ content, status }) => `${content?.name ?? 'not recorded'}, ${status}`),
  bank_report: ofLog(bankReport, ({ name, status }) => `${name}, ${status}`),
  legacy_collection: async ({ read }, id) => {
    const record = (await read.query(LEGACY, { id }))[0]
    return record ? { label: `${dollars(record.amount_cents)}, ${record.status}` } : null
  },
  processor_notice: ofLog(processorNotice, ({ type, status }) => `${type ?? 'notice'}, ${status}`),
  intake: ofLog(intake, ({ completed }) => (completed ? 'completed' : 'not completed')),
  reconciliation: ofLog(reconciliation, ({ trigger }) => trigger),
  webhook_subscription: async ({ read }, id) => {
    const one = (await read.query(DIRECTORY_ENTRY, { kind: 'webhook_subscription', id }))[0]
    return one && one.status !== 'deleted' ? { label: `${one.environment} webhooks` } : null
  },
  webhook_event: ofLog(webhookEvent, ({ event_type }) => event_type),
  alert: async ({ read }, id) => {
    const one = (await read.query(ALERT, { id }))[0]
    return one ? { label: one.kind } : null
  },
}

async function isStillOfEmployer(app: Parts, state: Employer, sought: Sought): Promise<boolean> {
  const { legal_name, contact_email, fein } = await showEmployer(app, state)
  if (sought.fein !== null && normalizeFein(fein) === sought.fein) return true
  const { name } = sought
  const isName = isSealed(state.legal_name) ? isSame(legal_name, name) : isBeginningOf(name, legal_name)
  return isName || isSame(contact_email, name)
}

async function payerOf({ personalData }: Parts, session: FinancingSession): Promise<string> {
  const { financing_session_id, customer } = session
  const opened = await openedOne(personalData, FinancingSessionCreated, { financing_session_id, customer })
  return opened.customer.email
}

function isSame(value: string | null, sought: string): boolean {
  return value !== null && comparable(value) === sought
}
