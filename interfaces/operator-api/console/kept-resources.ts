import type { StoryKind } from '../../../application/audit/story-streams.ts'
import type { Resource } from './resource.ts'

/** A list of things that are looked at here, and nothing else. @param id the field of their ids. */
function kept(path: string, id: string, title: string, about: string, story?: StoryKind): Resource {
  return {
    path,
    title,
    about,
    list: `GET /${path}`,
    show: `GET /${path}/{${id}}`,
    story,
    isListed: true,
  }
}

/** Everything that the service keeps and that has no place of its own in the console. */
export const keptResources: readonly Resource[] = [
  kept('tenants', 'tenant_id', 'Tenants', 'Whom this installation serves.'),
  kept('carriers', 'carrier_id', 'Carriers', 'Insurers that premium is collected for.'),
  kept('payroll-companies', 'payroll_company_id', 'Payroll companies', 'Who reports for employers.'),
  kept('employers', 'employer_id', 'Employers', 'Who reports payroll and pays premium.', 'employer'),
  kept('policies', 'policy_id', 'Policies', 'What employers are insured by.', 'policy'),
  kept('intakes', 'intake_id', 'Intakes', 'Calls that took in an employer and its policy.'),
  kept('api-clients', 'client_id', 'API clients', 'Keys of partners.'),
  kept('agent-credentials', 'credential_id', 'Agent credentials', 'Keys of agents on the tool server.'),
  kept('inbound-connections', 'connection_id', 'Inbound connections', 'Who pushes signed payroll.'),
  kept('payroll-files', 'file_id', 'Payroll files', 'Payroll rows, and changes of employees.', 'file'),
  kept('payment-links', 'payment_link_id', 'Payment links', 'Hosted checkouts, each paid once.', 'link'),
  kept(
    'payment-sessions',
    'payment_session_id',
    'Payment sessions',
    'Payments by card or bank debit.',
    'session',
  ),
  kept('subscriptions', 'subscription_id', 'Subscriptions', 'Monthly charges of cards.', 'subscription'),
  kept('financing-sessions', 'financing_session_id', 'Financing sessions', 'The financing test path.'),
  kept(
    'processor-notices',
    'notice_id',
    'Processor notices',
    'What was not understood of the card processor.',
  ),
  kept('bank-accounts', 'bank_account_id', 'Bank accounts', 'Accounts as they are shown to people.'),
  kept('ach-accounts', 'ach_account_id', 'ACH accounts', 'Accounts that money is moved with.'),
  kept('bank-connections', 'connection_id', 'Bank connections', 'Links to accounts at banks.'),
  kept('bank-credits', 'credit_id', 'Bank credits', 'Money that came in, and the debits that it is of.'),
  kept('debit-collections', 'collection_id', 'Debit collections', 'Debits that one call asked for.'),
  kept('legacy-collections', 'transaction_id', 'Legacy collections', 'What the legacy service collected.'),
  kept('webhook-events', 'event_id', 'Webhook events', 'Events that were raised for partners.', 'webhook'),
  kept(
    'webhook-subscriptions',
    'subscription_id',
    'Webhook subscriptions',
    'Where partners receive events.',
    'webhook',
  ),
]
