/** What the resources of all APIs are, by the first part of their paths, with the states that they go through. */
export const TAG_TEXTS: Readonly<Record<string, string>> = {
  '/api/v2': 'The same operations under `/api/v2`.',
  ach: 'Debits of bank accounts.\n\n`pending` → `Scheduled` → `submitted` → `processed` → `returned`; before it is submitted, a debit can become `cancelled`, `failed`, `quarantined` or `legacy_collected`. A `quarantined` one is released or rejected by an operator.',
  'ach-accounts':
    'Bank accounts that money is moved with.\n\n`unverified` → `active` → `disabled`; an operator enables a disabled one again.',
  'agent-credentials':
    'Credentials of agents, as operators see them.\n\n`active` → `revoked`: a revoked one stays so.',
  agents: 'Credentials of agents.\n\n`active` → `revoked`: a revoked one stays so.',
  'api-clients':
    'Keys of partners, each with its scope.\n\n`active` → `deactivated`: a deactivated key stays so.',
  alerts: 'What operators have to know.\n\n`open` → `acknowledged`.',
  audit: 'The proof that nobody changed the log.',
  'bank-accounts':
    'Bank accounts of employers, carriers and others.\n\n`unverified` → `active` → `disabled`.',
  'bank-connections':
    'Links to accounts at banks, as operators see them.\n\n`active` → `login_required` → `active`.',
  'bank-credits': 'Money that arrived at the bank, and the debits that it is matched with.',
  'bank-files':
    'Files for the bank.\n\n`begun` → `recorded` → `exposed` → `fetched` → `sent`; one that is missing is `uncertain` until an operator decides: `repeating` → `exposed`, or `sent`.',
  'bank-rail': 'The bank, simulated: tests acknowledge, settle and return debits by it.',
  'bank-reports':
    'Files from the bank.\n\n`received` → `read` or `refused`; a refused one can be read again.',
  bankconnect:
    'Links to bank accounts that their owners open by logging in at their bank.\n\n`active` → `login_required` → `active`.',
  'card-processor': 'The card processor, simulated.',
  carriers: 'Insurers that premium is collected for.',
  clock: 'The clock of the service; tests move it forward.',
  'debit-batches': 'The daily run that puts debits into batches.',
  'debit-collections': 'Debits of several policies that one call asked for: all were accepted, or none.',
  'dead-letters': 'Streams that wait behind an event which a reader of the log could not handle.',
  debits:
    'Debits as operators see them.\n\n`pending` → `Scheduled` → `submitted` → `processed` → `returned`; `quarantined` → `Scheduled` or `failed`.',
  drain: 'Waits until all work that is due is done.',
  employees: 'Changes of employees: hired, changed, terminated.\n\n`employed` → `terminated` → `employed`.',
  employers: 'Employers that report payroll and pay premium.',
  erasures: 'Erases personal data for good, by destroying their keys.',
  events: 'The events, in the order in which they happened.',
  faults: 'Faults that tests inject.',
  files:
    'What became of payroll files and employee syncs.\n\n`pending` → `NORMALIZED` or `failed`; then phases 1 (rows), 2 (wages) and 3 (premium) go from `pending` to `complete` or `failed`.',
  financing:
    'Premium financing, simulated.\n\n`not_started` → `pending` → `quote_ready` → `payment_reported`; `pending` → `on_hold`; `quote_ready` → `expired`.',
  'financing-checkouts': 'What pages show of a premium financing.',
  'financing-sessions': 'Sessions of the financing test path.\n\n`pending` → `cancelled` or `expired`.',
  'inbound-connections': 'Senders of payroll by webhook.\n\n`active` → `deactivated`.',
  intake: 'Takes in an employer and its policy in one call.',
  intakes:
    'Calls that took in an employer and its policy.\n\n`received` → `completed`; one that broke off is `unfinished`.',
  'legacy-collections': 'Debits that the former service made.',
  operators: 'People who may call this API.\n\n`active` → `revoked`: a revoked one stays so.',
  outbox: 'Messages to people, as they were handed over.',
  'payment-links':
    'Links by which somebody pays by card.\n\n`created` → `sent` → `paid`; one that is not paid becomes `cancelled` or `expired`.',
  'payment-sessions':
    'Payments on pages of the service, by card or bank debit.\n\n`pending` → `opened` → `paid`; with a bank debit `opened` → `scheduled` → `paid`; one that is not paid becomes `cancelled` or `expired`.',
  payroll: 'Reports of payroll, from which premium is calculated.',
  'payroll-companies': 'Companies that report payroll for employers.',
  'payroll-files': 'Files of payroll, and of changes of employees, as operators see them.',
  'pending-actions': 'What cannot be taken back and waits for a second operator.',
  policies: 'Policies, with their rates.\n\n`in_progress` → `active` → `cancelled`.',
  'processor-notices':
    'Notices of the card processor that need a person.\n\n`not_understood` → `carried_out` or `resolved`.',
  projections:
    'Read models, made from the log.\n\n`new` → `booting` → `active`; `active` → `paused` → `active`; `error` and `parked` until they are driven again.',
  reconciliations: 'The nightly comparison of debits, ledger, balances and bank.',
  'return-rates': 'How many debits come back, as the bank network counts.',
  sandbox: 'Plays what banks and the card processor do, with sandbox keys only.',
  search: 'Finds anything that the service keeps by what names it.',
  stories: 'What happened to a thing over all its streams, in sentences.',
  'subject-access': 'Everything that is kept about one person, as a file sealed for one recipient.',
  streams: 'The streams of the log.',
  subscriptions:
    'Monthly charges of a card.\n\n`incomplete` → `active` → `past_due` → `active`; each ends as `canceled`.',
  tenants: 'Tenants of the installation, with their settings.',
  webhook: 'Payroll that its sender pushes.',
  'webhook-events': 'Events that were raised for partners.',
  'webhook-subscriptions': 'Webhook subscriptions of all tenants.',
  webhooks:
    'Subscriptions to events.\n\nA subscription: `active` ⇄ `disabled`. A delivery: `pending` → `delivered`, or `retrying` → `delivered` or `failed`.',
  throughput: 'How much is stored, and how late readers of the log are.',
  work: 'Work of the process managers: due, leased, later or failed.',
}
