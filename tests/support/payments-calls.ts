import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { accountBody, linkedAccountBody } from './ach-debits.ts'
import { sellableCheckout } from './financing.ts'
import { intakeBody, newClient, payInFull } from './intake.ts'
import { BANK_ACCOUNT, enableCheckout, sessionBody, tokenOf } from './payment-sessions.ts'
import {
  type Answer,
  operate,
  type SeededTenant,
  seedCarrier,
  seedEmployer,
  seedTenant,
  send,
} from './seed.ts'
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
  /** The call names nothing that is of one environment: carriers span both. */
  readonly inBoth?: true
  /** Others have such things of their own: the one that their lists must not show. */
  readonly hidden?: () => string
  /** The record is no employer's: whatever employers a key is for, its carriers decide. */
  readonly ofCarriers?: true
  /** What it is about is sold for real money only: of what sandbox keys may ask there is none. */
  readonly live?: true
  /** There is no sandbox of it: a sandbox key is refused with 400. */
  readonly liveOnly?: true
}

/** The accounts and keys of one environment. */
interface World {
  readonly tenant: SeededTenant
  readonly other: SeededTenant
  readonly secondCarrier: string
  readonly secondEmployer: string
  /** A key for exactly the carrier and the employer of the tenant. */
  readonly inside: Headers
  /** Nobody's, by why. */
  readonly unknown: Readonly<Record<string, Headers>>
  readonly forPayroll: Headers
  readonly ofOtherEnvironment: Headers
  readonly ofOtherAccount: Headers
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
  ;[sandbox, live] = await Promise.all([worldOf('sandbox'), worldOf('live')])
  // the first link of an employer brings its customer at the card processor, whom subscriptions charge
  await link()
  return () => receiver.stop()
}

async function worldOf(environment: 'live' | 'sandbox'): Promise<World> {
  const options = { environment, policy: { billing_type: 'DIRECT_BILLING' } } as const
  const [tenant, other] = await Promise.all([seedTenant(service, options), seedTenant(service, options)])
  await Promise.all([tenant, other].map((one) => enableCheckout(service, one)))
  const { tenantId } = tenant
  const secondCarrier = await seedCarrier(service, tenantId)
  const secondEmployer = (await seedEmployer(service, { tenantId, environment })).employerId
  const scope = { environment, carrier_ids: [tenant.carrierId], employer_ids: [tenant.employerId] }
  const key = async (overrides: Readonly<Record<string, unknown>>, of = tenantId) =>
    (await newClient(service, of, { ...scope, ...overrides })).headers
  const all = { carrier_ids: 'all', employer_ids: 'all' }
  const [inside, forPayroll, ofOtherEnvironment, ofOtherAccount] = await Promise.all([
    key({}),
    key({ products: ['payroll'] }),
    key({ ...all, environment: environment === 'live' ? 'sandbox' : 'live' }),
    key(all, other.tenantId),
  ])
  const [forOtherCarrier, forOtherEmployer, forNoCarrier, forNoEmployer] = await Promise.all([
    key({ ...all, carrier_ids: [secondCarrier] }),
    key({ ...all, employer_ids: [secondEmployer] }),
    key({ ...all, carrier_ids: [] }),
    key({ ...all, employer_ids: [] }),
  ])
  const deactivated = await newClient(service, tenantId, scope)
  await operate(service, 'POST', `/api-clients/${deactivated.clientId}/deactivate`)
  const unknown = {
    'no key': {},
    'a secret that is wrong': { ...inside, 'X-Client-Secret': 'wrong' },
    'a client that is none': { ...inside, 'X-Client-ID': `service_test_cli_${'0'.repeat(32)}` },
    'a key that is deactivated': deactivated.headers,
  }
  const outside = {
    'a key for another carrier': forOtherCarrier,
    'a key for another employer': forOtherEmployer,
    'a key for no carrier': forNoCarrier,
    'a key for no employer': forNoEmployer,
  }
  const keys = { inside, unknown, forPayroll, ofOtherEnvironment, ofOtherAccount, outside }
  return { tenant, other, secondCarrier, secondEmployer, ...keys }
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
const newSubscription = () => ({
  ...ids(),
  carrier_id: sandbox.tenant.carrierId,
  amount_cents: 4_200,
  payment_method_id: 'pm_card_visa',
})
const subscription = async () => (await made('/subscriptions', newSubscription()))._id!
let urls = 0
const newUrl = () => `${receiver.url}/${urls++}`
const quotes = () => sellableCheckout(service, ids().policy_id)
const financing = async () => {
  const { insured: _, ...body } = await quotes()
  return (await made('/payment-sessions', body)).id!
}
const event = async () => {
  await paid()
  await operate(service, 'POST', '/drain')
  return (await asked('GET', { path: '/api/v1/events' }, sandbox.inside)).body.data[0].event_id as string
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
const newAchAccount = () => accountBody(sandbox.tenant.employerId)
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
const newLinkedAccount = async () => linkedAccountBody(sandbox.tenant.employerId, await connected())
const bankTransaction = async () => {
  const path = `/api/v1/bankconnect/transactions?bankconnect_item_id=${await item()}`
  return (await asked('GET', { path }, sandbox.inside)).body.data[0]._id as string
}

/** What a row says of an operation; `ask` gets its path. */
type Said = Omit<Row, 'ask'> & { readonly ask: (path: string) => Asked | Promise<Asked> }
const withBody = (path: string, body: unknown): Asked => (body === undefined ? { path } : { path, body })

/** About a thing, by the id in its path. */
const one = (thing: () => Promise<string>, body?: unknown): Said => ({
  about: 'one',
  ask: async (path) => withBody(path.replace('{}', await thing()), body),
})
/** Makes something, or names what it is about in its body. */
const creation = (body: () => unknown): Said => ({
  about: 'creation',
  ask: async (path) => ({ path, body: await body() }),
})
/** Shows things like this one. */
const list = (thing: () => Promise<string>): Said => ({
  about: 'list',
  async ask(path) {
    await thing()
    return { path }
  },
})
/** Shows this one, beside which others have theirs. */
const standing = (hidden: () => string): Said => ({ about: 'list', ask: (path) => ({ path }), hidden })
const open = (body?: () => unknown): Said => ({ about: 'open', ask: (path) => withBody(path, body?.()) })
/** What payers and others ask, by the token in its path. */
const elsewhere = (opener: () => string | Promise<string>, body?: unknown): Said => ({
  ...one(async () => opener(), body),
  about: 'elsewhere',
})
const sandboxOnly = (row: Said): Said => ({ ...row, sandboxOnly: true })
const liveOnly = (row: Said): Said => ({ ...row, liveOnly: true, live: true })

const SAID: Readonly<Record<string, Said>> = {
  'POST /payment-links': creation(newLink),
  'GET /payment-links': list(link),
  'GET /payment-links/{}': one(link),
  'DELETE /payment-links/{}': one(link),
  'POST /payment-links/{}/refund': one(paid, {}),
  'POST /payment-links/{}/simulate-completion': sandboxOnly(one(link, {})),
  'POST /sandbox/payment-links/{}/fail': sandboxOnly(one(link, {})),
  'POST /sandbox/payment-links/{}/expire': sandboxOnly(one(link, {})),
  'GET /public/payment-links/{}': elsewhere(link),

  'POST /subscriptions': creation(newSubscription),
  'GET /subscriptions': list(subscription),
  'GET /subscriptions/{}': one(subscription),
  'DELETE /subscriptions/{}': one(subscription),
  'POST /sandbox/subscriptions/{}/charge': sandboxOnly(one(subscription, {})),
  'POST /sandbox/subscriptions/{}/fail': sandboxOnly(one(subscription, {})),

  'POST /payment-sessions': liveOnly(creation(newSession)),
  'GET /payment-sessions': liveOnly(list(session)),
  'GET /payment-sessions/{}': liveOnly(one(session)),
  'DELETE /payment-sessions/{}': liveOnly(one(session)),
  'POST /payment-sessions/{}/reissue': liveOnly(one(session, {})),
  'GET /public/payment-sessions/{}': elsewhere(token),
  'GET /public/payment-sessions/{}/plan': elsewhere(token),
  'POST /public/payment-sessions/{}/checkout': elsewhere(token, {}),
  'POST /public/payment-sessions/{}/bank-debit': elsewhere(withDebit, BANK_ACCOUNT),
  'GET /ach/transactions': { ...list(withDebit), live: true },

  'POST /payment-sessions/financing-checkout': sandboxOnly(creation(quotes)),
  'GET /payment-sessions/{}/financing': sandboxOnly(one(financing)),
  'GET /payment-sessions/{}/financing/agreements/{}': { about: 'download', ask: (path) => ({ path }) },
  'GET /public/financing-checkouts/{}': elsewhere(() => 'a'.repeat(59)),

  'POST /bank-accounts': creation(newBankAccount),
  'GET /bank-accounts': list(bankAccount),
  'GET /bank-accounts/{}': one(bankAccount),
  'PATCH /bank-accounts/{}': one(bankAccount, { name: 'Payroll' }),
  'PATCH /bank-accounts/{}/default': one(bankAccount, { primary: true }),
  'DELETE /bank-accounts/{}': one(bankAccount),
  'POST /bank-accounts/ach': creation(newAchAccount),
  'GET /bank-accounts/ach': list(achAccount),
  'GET /bank-accounts/ach/{}': one(achAccount),
  'PATCH /bank-accounts/ach/{}': one(achAccount, { nickname: 'Payroll' }),
  'DELETE /bank-accounts/ach/{}': one(achAccount),
  'POST /bank-accounts/ach/{}/micro-deposits': one(achAccount, {}),
  'POST /bank-accounts/ach/{}/verify': {
    about: 'one',
    async ask(path) {
      const _id = await inVerification()
      const body = await operate(service, 'GET', `/bank-rail/micro-deposits/${_id}`)
      return { path: path.replace('{}', _id), body }
    },
  },

  // batches take every debit that waits: those of the rows below are made after them
  'POST /sandbox/ach/debits/{}/acknowledge': sandboxOnly(one(scheduledDebit, {})),
  'POST /sandbox/ach/debits/{}/settle': sandboxOnly(one(submittedDebit, {})),
  'POST /sandbox/ach/debits/{}/return': sandboxOnly(one(scheduledDebit, { return_code: 'R01' })),
  'GET /ach/transactions/{}/history': one(debit),
  'GET /ach/transactions/{}/fees': one(debit),
  'POST /ach/debits': creation(newDebit),
  'POST /ach/collections': creation(newCollection),
  'GET /ach/debits/{}/status': one(debit),
  'POST /ach/debits/{}/cancel': one(debit, {}),

  'POST /bankconnect/link-token': open(() => ({ user_id: 'user-1' })),
  'POST /bankconnect/exchange': creation(newConnection),
  // items are named in the body
  'POST /bankconnect/link-token/update': creation(async () => ({ user_id: 'user-1', item_id: await item() })),
  'POST /bankconnect/sync-accounts': creation(async () => ({ item_id: await item() })),
  'POST /bankconnect/balance': creation(async () => ({ bankconnect_item_id: await item() })),
  'POST /bank-accounts/ach/from-bankconnect': creation(newLinkedAccount),
  'GET /bankconnect/connections': list(connection),
  'GET /bankconnect/connections/{}': one(connection),
  'GET /bankconnect/transactions': list(connection),
  'GET /bankconnect/transactions/{}': one(bankTransaction),
  // sums of what the list shows, which `bank-linking.test.ts` tries
  'GET /bankconnect/transactions/summary': open(),

  'POST /processor/notices': elsewhere(() => '', {}),

  'POST /intake/policies': {
    ...creation(() =>
      intakeBody({ carrier_id: sandbox.tenant.carrierId, employer: { fein: sandbox.tenant.fein } }),
    ),
    inBoth: true,
  },

  'GET /employers': standing(() => sandbox.tenant.employerId),
  'GET /employers/{}': one(async () => sandbox.tenant.employerId),
  'GET /policies': standing(() => sandbox.tenant.policyId),
  'GET /policies/{}': one(async () => sandbox.tenant.policyId),
  'GET /carriers': { ...standing(() => sandbox.tenant.carrierId), inBoth: true, ofCarriers: true },
  'GET /carriers/{}': { ...one(async () => sandbox.tenant.carrierId), inBoth: true, ofCarriers: true },

  'POST /webhooks': open(() => ({ url: newUrl() })),
  'GET /webhooks': list(webhook),
  'PATCH /webhooks/{}': one(webhook, { events: ['payment.completed'] }),
  'DELETE /webhooks/{}': one(webhook),
  'POST /webhooks/{}/rotate': one(webhook),
  'POST /webhooks/{}/test': one(webhook, {}),
  'GET /webhooks/{}/deliveries': one(webhook),
  'POST /webhooks/{}/resend': one(webhook, { from: '2020-01-01', to: '2100-01-01' }),
  'GET /events': list(event),
  'GET /events/{}': one(event),
}

/** Every endpoint of the payments host, as `METHOD /path` below `/api/v1` with `{}` for its parameters. */
export const ROWS: Readonly<Record<string, Row>> = Object.fromEntries(
  Object.entries(SAID).map(([name, row]) => {
    const path = name.split(' ')[1]!
    const base = /^\/(public|processor)\//.test(path) ? '' : '/api/v1'
    return [name, { ...row, ask: () => row.ask(`${base}${path}`) }]
  }),
)
