import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { paymentsEndpoints } from '../../interfaces/payments-api/app.ts'
import { logHead } from '../support/core.ts'
import { sellableCheckout } from '../support/financing.ts'
import { intakeBody, newClient, payInFull } from '../support/intake.ts'
import {
  type Answer,
  operate,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
  send,
} from '../support/seed.ts'
import { type SharedService, sharedService } from '../support/service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

type Headers = Readonly<Record<string, string>>
interface Asked {
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
type About = 'one' | 'creation' | 'list' | 'open' | 'elsewhere' | 'download'

interface Row {
  readonly about: About
  /** Makes what the request is about, and the request. */
  readonly ask: () => Asked | Promise<Asked>
  /** A live key is refused at once. */
  readonly sandboxOnly?: true
  /** It names nothing that is of one environment: carriers span both. */
  readonly inBoth?: true
}

let service: SharedService
let tenant: SeededTenant
let other: SeededTenant
let secondCarrier: string
let secondEmployer: string
/** A key for exactly the carrier and the employer of the tenant. */
let inside: Headers
let receiver: Receiver
/** Keys that are refused, by why. */
let callers: Readonly<Record<string, Headers>>
/** Keys of the same account and environment that do not reach carrier or employer. */
let outside: Readonly<Record<string, Headers>>

afterAll(() => receiver?.stop())
beforeAll(async () => {
  service = await sharedService()
  receiver = await startReceiver()
  const environment = 'sandbox'
  const options = { environment, policy: { billing_type: 'DIRECT_BILLING' } } as const
  tenant = await seedTenant(service, options)
  other = await seedTenant(service, options)
  const { tenantId } = tenant
  const carrier = { tenant_id: tenantId, name: 'Second', settlement_type: null }
  secondCarrier = (await operate(service, 'POST', '/carriers', carrier)).carrier_id
  secondEmployer = (await seedEmployer(service, { tenantId, environment })).employerId
  const scope = { environment, carrier_ids: [tenant.carrierId], employer_ids: [tenant.employerId] }
  const key = (overrides: Readonly<Record<string, unknown>>, of = tenantId) =>
    newClient(service, of, { ...scope, ...overrides })
  const all = { carrier_ids: 'all', employer_ids: 'all' }
  inside = (await key({})).headers
  const deactivated = await key({})
  await operate(service, 'POST', `/api-clients/${deactivated.clientId}/deactivate`)
  callers = {
    'no key': {},
    'a secret that is wrong': { ...inside, 'X-Client-Secret': 'wrong' },
    'a client that is none': { ...inside, 'X-Client-ID': `service_test_cli_${'0'.repeat(32)}` },
    'a key that is deactivated': deactivated.headers,
    'a key for payroll': (await key({ products: ['payroll'] })).headers,
    'a live key': (await key({ ...all, environment: 'live' })).headers,
    'a key of another account': (await key(all, other.tenantId)).headers,
  }
  outside = {
    'a key for another carrier': (await key({ ...all, carrier_ids: [secondCarrier] })).headers,
    'a key for another employer': (await key({ ...all, employer_ids: [secondEmployer] })).headers,
    'a key for no carrier': (await key({ ...all, carrier_ids: [] })).headers,
    'a key for no employer': (await key({ ...all, employer_ids: [] })).headers,
  }
})

const asked = (method: string, { path, body }: Asked, headers: Headers): Promise<Answer> =>
  send(`${service.paymentsUrl}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })

/** What the key of the account makes. @returns `data`. */
async function made(path: string, body: unknown): Promise<Record<string, string>> {
  const answer = await asked('POST', { path: `/api/v1${path}`, body }, inside)
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`)
  return answer.body.data
}

const ids = () => ({ employer_id: tenant.employerId, policy_id: tenant.policyId })
const newLink = () => ({ ...payInFull(ids()), carrier_id: tenant.carrierId })
const link = async () => (await made('/payment-links', newLink()))._id!
const paid = async () => {
  const _id = await link()
  await asked('POST', { path: `/api/v1/payment-links/${_id}/simulate-completion`, body: {} }, inside)
  return _id
}
/** The employer has a customer at the card processor once it has a link. */
const newSubscription = async () => {
  await link()
  return {
    ...{ ...ids(), carrier_id: tenant.carrierId },
    ...{ amount_cents: 4_200, payment_method_id: 'pm_card_visa' },
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

/** A request about a thing, by its id in the path. */
const by = (thing: () => Promise<string>, path: (id: string) => string, body?: unknown) => async () => ({
  path: `/api/v1${path(await thing())}`,
  ...(body === undefined ? {} : { body }),
})

/** Every endpoint of the payments host, as `METHOD /path` below `/api/v1` with `{}` for its parameters. */
const ROWS: Readonly<Record<string, Row>> = {
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
      body: intakeBody({ carrier_id: tenant.carrierId, employer: { fein: tenant.fein } }),
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

const built = paymentsEndpoints.map(({ method, path, api }) => {
  const [prefix] = api.prefixes
  return `${method} ${prefix === '/api/v1' ? '' : prefix}${path.replaceAll(/\{\w+\}/g, '{}')}`
})
const rowsAbout = (...about: readonly About[]) =>
  Object.entries(ROWS).filter(([name, row]) => built.includes(name) && about.includes(row.about))

const EVERY = rowsAbout('one', 'creation', 'list', 'open')
const methodOf = (name: string) => name.split(' ')[0]!
const ID = /[0-9a-f]{24}/
/** A body that nobody should get to. */
const unread = (name: string, { path }: Asked): Asked =>
  methodOf(name) === 'GET' ? { path } : { path, body: '{"broken' }
const refusal = (answer: Answer) => [answer.status, answer.body?.ok, answer.body?.error]
const expectEmpty = (caller: string, { status, body }: Answer) =>
  expect([caller, status, body.data, body.pagination?.total ?? 0]).toEqual([caller, 200, [], 0])
/** Runs what must change nothing. */
async function changingNothing(run: () => Promise<void>): Promise<void> {
  await operate(service, 'POST', '/drain')
  const head = await logHead(service)
  await run()
  await operate(service, 'POST', '/drain')
  expect(await logHead(service)).toBe(head)
}

test('every endpoint of the payments host has a row', () => {
  expect(built.filter((name) => !Object.hasOwn(ROWS, name))).toEqual([])
})

describe('without the right key', () => {
  test.each(EVERY)('%s is refused before anything else is looked at', async (name, { ask }) => {
    const request = unread(name, await ask())
    await changingNothing(async () => {
      for (const caller of [
        'no key',
        'a secret that is wrong',
        'a client that is none',
        'a key that is deactivated',
      ]) {
        const answer = await asked(methodOf(name), request, callers[caller]!)
        expect([caller, ...refusal(answer)]).toEqual([caller, 401, false, 'Unauthorized'])
      }
      const answer = await asked(methodOf(name), request, callers['a key for payroll']!)
      expect(refusal(answer)).toEqual([403, false, 'Forbidden'])
    })
  })

  test.each(EVERY.filter(([, row]) => row.sandboxOnly))(
    '%s is for the sandbox only',
    async (name, { ask }) => {
      const request = unread(name, await ask())
      await changingNothing(async () => {
        for (const path of [request.path, request.path.replace(ID, 'f'.repeat(24))]) {
          const answer = await asked(methodOf(name), { ...request, path }, callers['a live key']!)
          expect([...refusal(answer), answer.body.message]).toEqual([
            ...[403, false, 'Forbidden'],
            expect.stringContaining('sandbox keys only'),
          ])
        }
      })
    },
  )
})

describe('in another account, or the other environment', () => {
  const elsewhere = (row: Row) =>
    row.sandboxOnly || row.inBoth ? ['a key of another account'] : ['a key of another account', 'a live key']

  test.each(rowsAbout('one'))('%s is as if there were none', async (name, row) => {
    const { path, body } = await row.ask()
    const ask = (at: string, headers: Headers) => asked(methodOf(name), { path: at, body }, headers)
    await changingNothing(async () => {
      const none = await ask(path.replace(ID, 'f'.repeat(24)), inside)
      expect(refusal(none)).toEqual([404, false, 'Not Found'])
      for (const id of ['x', tenant.employerId]) {
        const answer = await ask(path.replace(ID, id), inside)
        expect([id, answer.status, answer.text]).toEqual([id, 404, none.text])
      }
      for (const caller of elsewhere(row)) {
        const answer = await ask(path, callers[caller]!)
        expect([caller, answer.status, answer.text]).toEqual([caller, 404, none.text])
      }
    })
  })

  test.each(rowsAbout('creation'))('%s names what does not exist', async (name, row) => {
    const request = await row.ask()
    await changingNothing(async () => {
      for (const caller of elsewhere(row)) {
        const answer = await asked(methodOf(name), request, callers[caller]!)
        expect([caller, ...refusal(answer)]).toEqual([caller, 404, false, 'Not Found'])
      }
    })
  })

  test.each(rowsAbout('list'))('%s shows none of it', async (name, row) => {
    const request = await row.ask()
    for (const caller of elsewhere(row)) {
      const answer = await asked(methodOf(name), request, callers[caller]!)
      expectEmpty(caller, answer)
    }
  })
})

describe('outside the carriers or employers of the key', () => {
  test.each(rowsAbout('one', 'creation'))('%s is forbidden', async (name, row) => {
    const request = await row.ask()
    await changingNothing(async () => {
      for (const [caller, headers] of Object.entries(outside)) {
        const answer = await asked(methodOf(name), request, headers)
        expect([caller, ...refusal(answer)]).toEqual([caller, 403, false, 'Forbidden'])
      }
    })
  })

  test.each(rowsAbout('list'))('%s shows none of it', async (name, row) => {
    const request = await row.ask()
    for (const [caller, headers] of Object.entries(outside)) {
      const answer = await asked(methodOf(name), request, headers)
      expectEmpty(caller, answer)
    }
  })

  test('a policy of another carrier or employer is forbidden or a mismatch, never sold', async () => {
    const employer = { employerId: tenant.employerId, carrierId: secondCarrier }
    const { policyId } = await seedPolicy(service, employer)
    const theirs = await seedPolicy(service, { employerId: secondEmployer, carrierId: tenant.carrierId })
    await changingNothing(async () => {
      for (const [overrides, status] of [
        [{ policy_id: policyId }, 403],
        [{ policy_id: policyId, carrier_id: secondCarrier }, 403],
        [{ policy_id: theirs.policyId }, 400],
        [{ policy_id: theirs.policyId, employer_id: secondEmployer }, 403],
        [{ carrier_id: other.carrierId }, 404],
        [{ employer_id: other.employerId }, 404],
        [{ policy_id: other.policyId }, 404],
      ] as const) {
        const body = { ...newLink(), ...overrides }
        const answer = await asked('POST', { path: '/api/v1/payment-links', body }, inside)
        expect([overrides, answer.status]).toEqual([overrides, status])
      }
    })
  })
})

describe('with a key for exactly that carrier and employer', () => {
  test.each(EVERY)('%s goes through', async (name, { about, ask }) => {
    const answer = await asked(methodOf(name), await ask(), inside)
    expect([answer.status, answer.body.ok]).toEqual([expect.toSatisfy((status) => status < 300), true])
    if (about === 'list') expect(answer.body.data.length).toBeGreaterThan(0)
  })

  test.each(rowsAbout('elsewhere'))('%s asks for no key', async (name, { ask }) => {
    const request = await ask()
    const [without, withKey] = [
      await asked(methodOf(name), request, {}),
      await asked(methodOf(name), request, inside),
    ]
    expect([without.status, without.text]).toEqual([withKey.status, withKey.text])
  })
})

test('a key ends the moment it is deactivated, whatever it was for', async () => {
  const { clientId, headers } = await newClient(service, tenant.tenantId, { environment: 'sandbox' })
  const request = { path: `/api/v1/payment-links/${await link()}` }
  expect((await asked('GET', request, headers)).status).toBe(200)
  await operate(service, 'POST', `/api-clients/${clientId}/deactivate`)
  expect((await asked('GET', request, headers)).status).toBe(401)
})
