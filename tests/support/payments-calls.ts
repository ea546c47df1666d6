import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { sellableCheckout } from './financing.ts'
import { intakeBody, newClient, payInFull } from './intake.ts'
import { BANK_ACCOUNT, enableCheckout, sessionBody, tokenOf } from './payment-sessions.ts'
import { type Answer, operate, type SeededTenant, seedEmployer, seedTenant, send } from './seed.ts'
import { type SharedService, sharedService } from './service.ts'
import { type Receiver, startReceiver } from './webhook-receiver.ts'

export type Headers = Readonly<Record<string, string>>
export interface Asked {
  /** Below the base address. */
  readonly path: string
  readonly body?: unknown
}

/**
 * What a request is about. `one`: a thing of an account, environment, carrier and employer, by its id. `creation`: it
 * names such things. `list`: it shows those that the key reaches. `open`: whatever it is about is of the key's own
 * account, and any key of it may ask. `elsewhere`: no partner asks, its key makes no difference. `download`: its answer is no
 * JSON, and `financing-agreements.test.ts` has it.
 */
export type About = 'one' | 'creation' | 'list' | 'open' | 'elsewhere' | 'download'

export interface Row {
  readonly about: About
  /** Makes what the request is about, and the request. */
  readonly ask: () => Asked | Promise<Asked>
  /** A live key is refused at once. */
  readonly sandboxOnly?: true
  /** It names nothing that is of one environment: carriers span both. */
  readonly inBoth?: true
  /** What it is about is sold for real money only: of what sandbox keys may ask there is none. */
  readonly live?: true
  /** There is no sandbox of it: a sandbox key is refused with 400. */
  readonly liveOnly?: true
}

/** The accounts and keys of one environment. */
export interface World {
  readonly tenant: SeededTenant
  readonly other: SeededTenant
  readonly secondCarrier: string
  readonly secondEmployer: string
  /** A key for exactly the carrier and the employer of the tenant. */
  readonly inside: Headers
  /** Keys that are refused, by why. */
  readonly callers: Readonly<Record<string, Headers>>
  /** Keys of the same account and environment that do not reach carrier or employer. */
  readonly outside: Readonly<Record<string, Headers>>
}

/** What the suite that runs works with. */
export let service: SharedService
export let sandbox: World
export let live: World
let receiver: Receiver

/** Opens accounts of both environments, which the rows are about. @returns what ends them. */
export async function openWorlds(): Promise<() => Promise<void>> {
  service = await sharedService()
  receiver = await startReceiver()
  sandbox = await worldOf('sandbox')
  live = await worldOf('live')
  for (const { tenant, other } of [live, sandbox]) {
    await enableCheckout(service, tenant)
    await enableCheckout(service, other)
  }
  return () => receiver.stop()
}

async function worldOf(environment: 'live' | 'sandbox'): Promise<World> {
  const options = { environment, policy: { billing_type: 'DIRECT_BILLING' } } as const
  const tenant = await seedTenant(service, options)
  const other = await seedTenant(service, options)
  const { tenantId } = tenant
  const carrier = { tenant_id: tenantId, name: 'Second', settlement_type: null }
  const secondCarrier = (await operate(service, 'POST', '/carriers', carrier)).carrier_id
  const secondEmployer = (await seedEmployer(service, { tenantId, environment })).employerId
  const scope = { environment, carrier_ids: [tenant.carrierId], employer_ids: [tenant.employerId] }
  const key = (overrides: Readonly<Record<string, unknown>>, of = tenantId) =>
    newClient(service, of, { ...scope, ...overrides })
  const all = { carrier_ids: 'all', employer_ids: 'all' }
  const inside = (await key({})).headers
  const deactivated = await key({})
  await operate(service, 'POST', `/api-clients/${deactivated.clientId}/deactivate`)
  const elsewhere = environment === 'live' ? 'sandbox' : 'live'
  const callers = {
    'no key': {},
    'a secret that is wrong': { ...inside, 'X-Client-Secret': 'wrong' },
    'a client that is none': { ...inside, 'X-Client-ID': `service_test_cli_${'0'.repeat(32)}` },
    'a key that is deactivated': deactivated.headers,
    'a key for payroll': (await key({ products: ['payroll'] })).headers,
    'a key of the other environment': (await key({ ...all, environment: elsewhere })).headers,
    'a key of another account': (await key(all, other.tenantId)).headers,
  }
  const outside = {
    'a key for another carrier': (await key({ ...all, carrier_ids: [secondCarrier] })).headers,
    'a key for another employer': (await key({ ...all, employer_ids: [secondEmployer] })).headers,
    'a key for no carrier': (await key({ ...all, carrier_ids: [] })).headers,
    'a key for no employer': (await key({ ...all, employer_ids: [] })).headers,
  }
  return { tenant, other, secondCarrier, secondEmployer, inside, callers, outside }
}
/** The accounts that a row is about. */
export const worldFor = ({ live: isLive }: Row): World => (isLive ? live : sandbox)

/** Sends a request to the payments API. */
export const asked = (method: string, { path, body }: Asked, headers: Headers): Promise<Answer> =>
  send(`${service.paymentsUrl}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })

/** What the key of the account makes. @returns `data`. */
async function made(path: string, body: unknown, world = sandbox): Promise<Record<string, string>> {
  const answer = await asked('POST', { path: `/api/v1${path}`, body }, world.inside)
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`)
  return answer.body.data
}

const ids = ({ tenant } = sandbox) => ({ employer_id: tenant.employerId, policy_id: tenant.policyId })
export const newLink = () => ({ ...payInFull(ids()), carrier_id: sandbox.tenant.carrierId })
export const link = async () => (await made('/payment-links', newLink()))._id!
const paid = async () => {
  const _id = await link()
  await asked('POST', { path: `/api/v1/payment-links/${_id}/simulate-completion`, body: {} }, sandbox.inside)
  return _id
}
/** The employer has a customer at the card processor once it has a link. */
const newSubscription = async () => {
  await link()
  return {
    ...ids(),
    carrier_id: sandbox.tenant.carrierId,
    amount_cents: 4_200,
    payment_method_id: 'pm_card_visa',
  }
}
const subscription = async () => (await made('/subscriptions', await newSubscription()))._id!
let urls = 0
const newUrl = () => `${receiver.url}/${urls++}`
const quotes = () => sellableCheckout(service, ids().policy_id)
const financing = async () => {
  const { insured: _, ...body } = await quotes()
  return made('/payment-sessions', body)
}
const webhook = async () => (await made('/webhooks', { url: newUrl() })).id!

export const newSession = () => sessionBody(live.tenant, { total_installments: 2, down_payment_percent: 50 })
const sessionMade = async () => made('/payment-sessions', newSession(), live)
const session = async () => (await sessionMade()).id!
const token = async () => tokenOf((await sessionMade()) as { url: string })
const withDebit = async () => {
  const opener = await token()
  await asked('POST', { path: `/public/payment-sessions/${opener}/bank-debit`, body: BANK_ACCOUNT }, {})
  return opener
}

const newBankAccount = () => ({
  user_id: 'user-1',
  name: 'Operating',
  bank_name: 'First Bank',
  employer_id: sandbox.tenant.employerId,
  carrier_id: sandbox.tenant.carrierId,
})
const bankAccount = async () => (await made('/bank-accounts', newBankAccount()))._id!
const newAchAccount = () => ({
  owner_type: 'employer',
  owner_id: sandbox.tenant.employerId,
  account_type: 'checking',
  routing_number: '021000021',
  account_number: '000123456789',
  bank_name: 'First Bank',
})
const newDebit = async () => ({
  ...ids(),
  carrier_id: sandbox.tenant.carrierId,
  bank_account_id: await achAccount(),
  amount_cents: 4_200,
  payment_purpose: 'paygo',
})
const newCollection = async () => {
  const { employer_id: employerId, policy_id: policyId } = ids()
  const entry = { policyId, totalInDollars: 42, description: 'May', idempotencyKey: randomUUID() }
  return { employerId, bankAccountId: await achAccount(), policyCollections: [entry] }
}
const debit = async () => (await made('/ach/debits', await newDebit())).transaction_id!
/** The policy is billed as its payroll goes for as long as the gates are asked. */
const scheduledDebit = async () => {
  const id = await debit()
  const policy = `/policies/${sandbox.tenant.policyId}`
  await operate(service, 'PATCH', policy, { billing_type: 'PAY_AS_YOU_GO' })
  await operate(service, 'POST', '/debit-batches', {})
  await operate(service, 'PATCH', policy, { billing_type: 'DIRECT_BILLING' })
  return id
}
const submittedDebit = async () => {
  const id = await scheduledDebit()
  await operate(service, 'POST', `/bank-rail/${id}/acknowledge`, {})
  return id
}
const achAccount = async () => (await made('/bank-accounts/ach', newAchAccount()))._id!
const inVerification = async () => {
  const _id = await achAccount()
  const path = `/api/v1/bank-accounts/ach/${_id}/micro-deposits`
  const { status } = await asked('POST', { path, body: {} }, sandbox.inside)
  expect(status).toBe(200)
  return _id
}

let publicTokens = 0
const newConnection = () => ({
  public_token: `public-sandbox-${publicTokens++}`,
  user_id: 'user-1',
  employer_id: sandbox.tenant.employerId,
  carrier_id: sandbox.tenant.carrierId,
})
const connected = async () =>
  (await made('/bankconnect/exchange', newConnection())) as Record<string, string> & {
    readonly accounts: readonly unknown[]
  }
const connection = async () => (await connected())._id!
const item = async () => (await connected()).bankconnect_item_id!
const newLinkedAccount = async () => {
  const { bankconnect_item_id, access_token, accounts } = await connected()
  const [{ bankconnect_account_id }] = accounts as [{ bankconnect_account_id: string }]
  const owner = { owner_type: 'employer', owner_id: sandbox.tenant.employerId }
  return { ...owner, bankconnect_item_id, bankconnect_account_id, access_token }
}
const bankTransaction = async () => {
  const path = `/api/v1/bankconnect/transactions?bankconnect_item_id=${await item()}`
  return (await asked('GET', { path }, sandbox.inside)).body.data[0]._id as string
}

/** A request about a thing, by its id in the path. */
const by = (thing: () => Promise<string>, path: (id: string) => string, body?: unknown) => async () => ({
  path: `/api/v1${path(await thing())}`,
  ...(body === undefined ? {} : { body }),
})

/** Every endpoint of the payments host, as `METHOD /path` below `/api/v1` with `{}` for its parameters. */
export const ROWS: Readonly<Record<string, Row>> = {
  'POST /payment-links': {
    about: 'creation',
    ask: () => ({ path: '/api/v1/payment-links', body: newLink() }),
  },
  'GET /payment-links': { about: 'list', ask: by(link, () => '/payment-links') },
  'GET /payment-links/{}': { about: 'one', ask: by(link, (id) => `/payment-links/${id}`) },
  'DELETE /payment-links/{}': { about: 'one', ask: by(link, (id) => `/payment-links/${id}`) },
  'POST /payment-links/{}/refund': {
    about: 'one',
    ask: by(paid, (id) => `/payment-links/${id}/refund`, {}),
  },
  'POST /payment-links/{}/simulate-completion': {
    about: 'one',
    sandboxOnly: true,
    ask: by(link, (id) => `/payment-links/${id}/simulate-completion`, {}),
  },
  'POST /sandbox/payment-links/{}/fail': {
    about: 'one',
    sandboxOnly: true,
    ask: by(link, (id) => `/sandbox/payment-links/${id}/fail`, {}),
  },
  'POST /sandbox/payment-links/{}/expire': {
    about: 'one',
    sandboxOnly: true,
    ask: by(link, (id) => `/sandbox/payment-links/${id}/expire`, {}),
  },
  'GET /public/payment-links/{}': {
    about: 'elsewhere',
    ask: async () => ({ path: `/public/payment-links/${await link()}` }),
  },

  'POST /subscriptions': {
    about: 'creation',
    ask: async () => ({ path: '/api/v1/subscriptions', body: await newSubscription() }),
  },
  'GET /subscriptions': { about: 'list', ask: by(subscription, () => '/subscriptions') },
  'GET /subscriptions/{}': { about: 'one', ask: by(subscription, (id) => `/subscriptions/${id}`) },
  'DELETE /subscriptions/{}': { about: 'one', ask: by(subscription, (id) => `/subscriptions/${id}`) },
  'POST /sandbox/subscriptions/{}/charge': {
    about: 'one',
    sandboxOnly: true,
    ask: by(subscription, (id) => `/sandbox/subscriptions/${id}/charge`, {}),
  },
  'POST /sandbox/subscriptions/{}/fail': {
    about: 'one',
    sandboxOnly: true,
    ask: by(subscription, (id) => `/sandbox/subscriptions/${id}/fail`, {}),
  },
  'POST /payment-sessions': {
    about: 'creation',
    liveOnly: true,
    live: true,
    ask: () => ({ path: '/api/v1/payment-sessions', body: newSession() }),
  },
  'GET /payment-sessions': {
    about: 'list',
    liveOnly: true,
    live: true,
    ask: by(session, () => '/payment-sessions'),
  },
  'GET /payment-sessions/{}': {
    about: 'one',
    liveOnly: true,
    live: true,
    ask: by(session, (id) => `/payment-sessions/${id}`),
  },
  'DELETE /payment-sessions/{}': {
    about: 'one',
    liveOnly: true,
    live: true,
    ask: by(session, (id) => `/payment-sessions/${id}`),
  },
  'POST /payment-sessions/{}/reissue': {
    about: 'one',
    liveOnly: true,
    live: true,
    ask: by(session, (id) => `/payment-sessions/${id}/reissue`, {}),
  },
  'GET /public/payment-sessions/{}': {
    about: 'elsewhere',
    ask: async () => ({ path: `/public/payment-sessions/${await token()}` }),
  },
  'GET /public/payment-sessions/{}/plan': {
    about: 'elsewhere',
    ask: async () => ({ path: `/public/payment-sessions/${await token()}/plan` }),
  },
  'POST /public/payment-sessions/{}/checkout': {
    about: 'elsewhere',
    ask: async () => ({ path: `/public/payment-sessions/${await token()}/checkout`, body: {} }),
  },
  'POST /public/payment-sessions/{}/bank-debit': {
    about: 'elsewhere',
    ask: async () => ({
      path: `/public/payment-sessions/${await withDebit()}/bank-debit`,
      body: BANK_ACCOUNT,
    }),
  },
  'GET /ach/transactions': { about: 'list', live: true, ask: by(withDebit, () => '/ach/transactions') },

  'POST /bank-accounts': {
    about: 'creation',
    ask: () => ({ path: '/api/v1/bank-accounts', body: newBankAccount() }),
  },
  'GET /bank-accounts': { about: 'list', ask: by(bankAccount, () => '/bank-accounts') },
  'GET /bank-accounts/{}': { about: 'one', ask: by(bankAccount, (id) => `/bank-accounts/${id}`) },
  'PATCH /bank-accounts/{}': {
    about: 'one',
    ask: by(bankAccount, (id) => `/bank-accounts/${id}`, { name: 'Payroll' }),
  },
  'PATCH /bank-accounts/{}/default': {
    about: 'one',
    ask: by(bankAccount, (id) => `/bank-accounts/${id}/default`, { primary: true }),
  },
  'DELETE /bank-accounts/{}': { about: 'one', ask: by(bankAccount, (id) => `/bank-accounts/${id}`) },
  'POST /bank-accounts/ach': {
    about: 'creation',
    ask: () => ({ path: '/api/v1/bank-accounts/ach', body: newAchAccount() }),
  },
  'GET /bank-accounts/ach': { about: 'list', ask: by(achAccount, () => '/bank-accounts/ach') },
  'GET /bank-accounts/ach/{}': { about: 'one', ask: by(achAccount, (id) => `/bank-accounts/ach/${id}`) },
  'PATCH /bank-accounts/ach/{}': {
    about: 'one',
    ask: by(achAccount, (id) => `/bank-accounts/ach/${id}`, { nickname: 'Payroll' }),
  },
  'DELETE /bank-accounts/ach/{}': { about: 'one', ask: by(achAccount, (id) => `/bank-accounts/ach/${id}`) },
  'POST /bank-accounts/ach/{}/micro-deposits': {
    about: 'one',
    ask: by(achAccount, (id) => `/bank-accounts/ach/${id}/micro-deposits`, {}),
  },
  'POST /bank-accounts/ach/{}/verify': {
    about: 'one',
    async ask() {
      const _id = await inVerification()
      const body = await operate(service, 'GET', `/bank-rail/micro-deposits/${_id}`)
      return { path: `/api/v1/bank-accounts/ach/${_id}/verify`, body }
    },
  },

  'GET /ach/transactions/{}/history': {
    about: 'one',
    ask: by(debit, (id) => `/ach/transactions/${id}/history`),
  },
  'GET /ach/transactions/{}/fees': { about: 'one', ask: by(debit, (id) => `/ach/transactions/${id}/fees`) },
  'POST /ach/debits': {
    about: 'creation',
    ask: async () => ({ path: '/api/v1/ach/debits', body: await newDebit() }),
  },
  'POST /ach/collections': {
    about: 'creation',
    ask: async () => ({ path: '/api/v1/ach/collections', body: await newCollection() }),
  },
  'GET /ach/debits/{}/status': { about: 'one', ask: by(debit, (id) => `/ach/debits/${id}/status`) },
  'POST /ach/debits/{}/cancel': { about: 'one', ask: by(debit, (id) => `/ach/debits/${id}/cancel`, {}) },
  'POST /sandbox/ach/debits/{}/acknowledge': {
    about: 'one',
    sandboxOnly: true,
    ask: by(scheduledDebit, (id) => `/sandbox/ach/debits/${id}/acknowledge`, {}),
  },
  'POST /sandbox/ach/debits/{}/settle': {
    about: 'one',
    sandboxOnly: true,
    ask: by(submittedDebit, (id) => `/sandbox/ach/debits/${id}/settle`, {}),
  },
  'POST /sandbox/ach/debits/{}/return': {
    about: 'one',
    sandboxOnly: true,
    ask: by(scheduledDebit, (id) => `/sandbox/ach/debits/${id}/return`, { return_code: 'R01' }),
  },

  'POST /bankconnect/link-token': {
    about: 'open',
    ask: () => ({ path: '/api/v1/bankconnect/link-token', body: { user_id: 'user-1' } }),
  },
  'POST /bankconnect/exchange': {
    about: 'creation',
    ask: () => ({ path: '/api/v1/bankconnect/exchange', body: newConnection() }),
  },
  // items are named in the body
  'POST /bankconnect/link-token/update': {
    about: 'creation',
    ask: async () => ({
      path: '/api/v1/bankconnect/link-token/update',
      body: { user_id: 'user-1', item_id: await item() },
    }),
  },
  'POST /bankconnect/sync-accounts': {
    about: 'creation',
    ask: async () => ({ path: '/api/v1/bankconnect/sync-accounts', body: { item_id: await item() } }),
  },
  'POST /bankconnect/balance': {
    about: 'creation',
    ask: async () => ({
      path: '/api/v1/bankconnect/balance',
      body: { bankconnect_item_id: await item() },
    }),
  },
  'POST /bank-accounts/ach/from-bankconnect': {
    about: 'creation',
    ask: async () => ({ path: '/api/v1/bank-accounts/ach/from-bankconnect', body: await newLinkedAccount() }),
  },
  'GET /bankconnect/connections': { about: 'list', ask: by(connection, () => '/bankconnect/connections') },
  'GET /bankconnect/connections/{}': {
    about: 'one',
    ask: by(connection, (id) => `/bankconnect/connections/${id}`),
  },
  'GET /bankconnect/transactions': { about: 'list', ask: by(connection, () => '/bankconnect/transactions') },
  'GET /bankconnect/transactions/{}': {
    about: 'one',
    ask: by(bankTransaction, (id) => `/bankconnect/transactions/${id}`),
  },
  // sums of what the list shows, which `bank-linking.test.ts` tries
  'GET /bankconnect/transactions/summary': {
    about: 'open',
    ask: () => ({ path: '/api/v1/bankconnect/transactions/summary' }),
  },

  'POST /processor/notices': {
    about: 'elsewhere',
    ask: () => ({ path: '/processor/notices', body: {} }),
  },

  'POST /payment-sessions/financing-checkout': {
    about: 'creation',
    sandboxOnly: true,
    ask: async () => ({ path: '/api/v1/payment-sessions/financing-checkout', body: await quotes() }),
  },
  'GET /payment-sessions/{}/financing': {
    about: 'one',
    sandboxOnly: true,
    ask: by(
      async () => (await financing()).id!,
      (id) => `/payment-sessions/${id}/financing`,
    ),
  },
  'GET /payment-sessions/{}/financing/agreements/{}': { about: 'download', ask: () => ({ path: '' }) },
  'GET /public/financing-checkouts/{}': {
    about: 'elsewhere',
    ask: () => ({ path: `/public/financing-checkouts/${'a'.repeat(59)}` }),
  },

  'POST /intake/policies': {
    about: 'creation',
    inBoth: true,
    ask: () => ({
      path: '/api/v1/intake/policies',
      body: intakeBody({
        carrier_id: sandbox.tenant.carrierId,
        employer: { fein: sandbox.tenant.fein },
      }),
    }),
  },

  'POST /webhooks': { about: 'open', ask: () => ({ path: '/api/v1/webhooks', body: { url: newUrl() } }) },
  'GET /webhooks': { about: 'list', ask: by(webhook, () => '/webhooks') },
  'PATCH /webhooks/{}': {
    about: 'one',
    ask: by(webhook, (id) => `/webhooks/${id}`, { events: ['payment.completed'] }),
  },
  'DELETE /webhooks/{}': { about: 'one', ask: by(webhook, (id) => `/webhooks/${id}`) },
  'POST /webhooks/{}/rotate': { about: 'one', ask: by(webhook, (id) => `/webhooks/${id}/rotate`) },
  'POST /webhooks/{}/test': { about: 'one', ask: by(webhook, (id) => `/webhooks/${id}/test`, {}) },
  'GET /webhooks/{}/deliveries': { about: 'one', ask: by(webhook, (id) => `/webhooks/${id}/deliveries`) },
}
