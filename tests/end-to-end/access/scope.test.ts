import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { paymentsEndpoints } from '../../../interfaces/payments-api/app.ts'
import { logHead, storedBy } from '../../support/core.ts'
import { operationsOf } from '../../support/described-calls.ts'
import { newClient } from '../../support/intake.ts'
import {
  type About,
  type Asked,
  asked,
  type Headers,
  link,
  live,
  newLink,
  newSession,
  openWorlds,
  ROWS,
  type Row,
  sandbox,
  service,
  worldFor,
} from '../../support/payments-calls.ts'
import { type Answer, operate, seedPolicy, send } from '../../support/seed.ts'

let close: () => Promise<void>
/** A request of each row: refused again and again, it is done at last. */
const requests: Record<string, Asked> = {}
beforeAll(async () => {
  close = await openWorlds()
  for (const [name, row] of EVERY) requests[name] = await row.ask()
})
afterAll(() => close?.())

const built = paymentsEndpoints.map(({ method, path, api }) => {
  const [prefix] = api.prefixes
  return `${method} ${prefix === '/api/v1' ? '' : prefix}${path.replaceAll(/\{\w+\}/g, '{}')}`
})
const rowsAbout = (...about: readonly About[]) =>
  Object.entries(ROWS).filter(([name, row]) => built.includes(name) && about.includes(row.about))

const EVERY = rowsAbout('one', 'creation', 'list', 'open')
const ID = /[0-9a-f]{24}/
const NONE = 'f'.repeat(24)
const methodOf = (name: string) => name.split(' ')[0]!
/** Asks for the same of many callers at once. @returns the answers by their names. */
async function askedBy(
  callers: Readonly<Record<string, Headers>>,
  name: string,
  request = requests[name]!,
): Promise<Readonly<Record<string, Answer>>> {
  const answers = Object.entries(callers).map(async ([caller, headers]) => [
    ...[caller, await asked(methodOf(name), request, headers)],
  ])
  return Object.fromEntries(await Promise.all(answers))
}
const refusal = ({ status, body }: Answer) => [status, body?.ok, body?.error]
function expectRefused(answers: Readonly<Record<string, Answer>>, status: number, error: string): void {
  for (const [caller, answer] of Object.entries(answers)) {
    expect([caller, ...refusal(answer)]).toEqual([caller, status, false, error])
  }
}
function expectEmpty(answers: Readonly<Record<string, Answer>>, { hidden }: Row): void {
  for (const [caller, { status, body, text }] of Object.entries(answers)) {
    if (hidden) expect([caller, status, text.includes(hidden())]).toEqual([caller, 200, false])
    else expect([caller, status, body.data, body.pagination?.total ?? 0]).toEqual([caller, 200, [], 0])
  }
}
/** With a body that nobody should get to. */
const unread = (name: string): Asked => {
  const { path } = requests[name]!
  return methodOf(name) === 'GET' ? { path } : { path, body: '{"broken' }
}
/** Runs what must change nothing. */
async function changingNothing(run: () => Promise<void>): Promise<void> {
  const stored = await storedBy(service, run)
  expect(stored.map(({ type }) => type)).toEqual([])
}

test('every endpoint of the payments host has a row', () => {
  expect(built.filter((name) => !Object.hasOwn(ROWS, name))).toEqual([])
})

describe('a request of the payments API', () => {
  let head: string
  beforeAll(async () => {
    head = await logHead(service)
  })

  describe('without the right key', () => {
    test.each(EVERY)('%s is refused before anything else is looked at', async (name, row) => {
      const { unknown: callers, forPayroll } = worldFor(row)
      const [unknown, forbidden] = await Promise.all([
        askedBy(callers, name, unread(name)),
        askedBy({ 'a key for payroll': forPayroll }, name, unread(name)),
      ])
      expectRefused(unknown, 401, 'Unauthorized')
      expectRefused(forbidden, 403, 'Forbidden')
    })

    test.each(EVERY.filter(([, row]) => row.sandboxOnly))('%s is for the sandbox only', async (name) => {
      const request = unread(name)
      for (const path of [request.path, request.path.replace(ID, NONE)]) {
        const answer = await asked(methodOf(name), { ...request, path }, sandbox.ofOtherEnvironment)
        expect([...refusal(answer), answer.body.message]).toEqual([
          ...[403, false, 'Forbidden'],
          expect.stringContaining('sandbox keys only'),
        ])
      }
    })

    test.each(EVERY.filter(([, row]) => row.liveOnly))(
      '%s is for live keys only',
      async (name, { about }) => {
        // what is created tells by its body whether it has a sandbox
        const request = about === 'creation' ? requests[name]! : unread(name)
        for (const path of [request.path, request.path.replace(ID, NONE)]) {
          const answer = await asked(methodOf(name), { ...request, path }, live.ofOtherEnvironment)
          expect([...refusal(answer), answer.body.message]).toEqual([
            ...[400, false, 'Bad Request'],
            expect.stringContaining('no sandbox'),
          ])
        }
      },
    )
  })

  describe('in another account, or the other environment', () => {
    const elsewhere = (row: Row): Readonly<Record<string, Headers>> => {
      const { ofOtherAccount, ofOtherEnvironment } = worldFor(row)
      const isInOne = !(row.sandboxOnly || row.inBoth || row.liveOnly)
      return isInOne ? { ofOtherAccount, ofOtherEnvironment } : { ofOtherAccount }
    }

    test.each(rowsAbout('one'))('%s is as if there were none', async (name, row) => {
      const { inside, tenant } = worldFor(row)
      const { path, body } = requests[name]!
      const about = (id: string) => asked(methodOf(name), { path: path.replace(ID, id), body }, inside)
      const ofAnotherKind = path.includes(tenant.employerId) ? tenant.policyId : tenant.employerId
      const [none, text, another, byOthers] = await Promise.all([
        about(NONE),
        about('x'),
        about(ofAnotherKind),
        askedBy(elsewhere(row), name),
      ])
      expect(refusal(none)).toEqual([404, false, 'Not Found'])
      for (const [caller, answer] of Object.entries({ text, another, ...byOthers })) {
        expect([caller, answer.status, answer.text]).toEqual([caller, 404, none.text])
      }
    })

    test.each(rowsAbout('creation'))('%s names what does not exist', async (name, row) => {
      expectRefused(await askedBy(elsewhere(row), name), 404, 'Not Found')
    })

    test.each(rowsAbout('list'))('%s shows none of it', async (name, row) => {
      expectEmpty(await askedBy(elsewhere(row), name), row)
    })
  })

  describe('outside the carriers or employers of the key', () => {
    const outside = (row: Row): Readonly<Record<string, Headers>> => {
      const { outside: all } = worldFor(row)
      if (!row.ofCarriers) return all
      return Object.fromEntries(Object.entries(all).filter(([key]) => key.endsWith('carrier')))
    }

    test.each(rowsAbout('one', 'creation'))('%s is forbidden', async (name, row) => {
      expectRefused(await askedBy(outside(row), name), 403, 'Forbidden')
    })

    test.each(rowsAbout('list'))('%s shows none of it', async (name, row) => {
      expectEmpty(await askedBy(outside(row), name), row)
    })
  })

  test('stores nothing of all that', async () => {
    expect(await logHead(service)).toBe(head)
  })

  test.each(EVERY)('%s goes through with a key for exactly that carrier and employer', async (name, row) => {
    const answer = await asked(methodOf(name), requests[name]!, worldFor(row).inside)
    expect([answer.status, answer.body.ok]).toEqual([expect.toSatisfy((status) => status < 300), true])
    if (row.about === 'list') expect(answer.body.data.length).toBeGreaterThan(0)
  })

  test.each(rowsAbout('elsewhere'))('%s asks for no key', async (name, { ask }) => {
    const request = await ask()
    const [without, withKey] = [
      await asked(methodOf(name), request, {}),
      await asked(methodOf(name), request, sandbox.inside),
    ]
    expect([without.status, without.text]).toEqual([withKey.status, withKey.text])
  })
})

test.each([
  ['/payment-links', () => sandbox, () => newLink()],
  ['/payment-sessions', () => live, () => newSession()],
] as const)(
  'a policy of another carrier or employer is forbidden, never sold: %s',
  async (path, world, request) => {
    const { tenant, other, secondCarrier, secondEmployer, inside } = world()
    const employer = { employerId: tenant.employerId, carrierId: secondCarrier }
    const { policyId } = await seedPolicy(service, employer)
    const theirs = await seedPolicy(service, { employerId: secondEmployer, carrierId: tenant.carrierId })
    await changingNothing(async () => {
      for (const [overrides, status] of [
        [{ policy_id: policyId }, 403],
        [{ policy_id: policyId, carrier_id: secondCarrier }, 403],
        [{ policy_id: theirs.policyId }, 403],
        [{ policy_id: theirs.policyId, employer_id: secondEmployer }, 403],
        [{ carrier_id: other.carrierId }, 404],
        [{ employer_id: other.employerId }, 404],
        [{ policy_id: other.policyId }, 404],
      ] as const) {
        const body = { ...request(), ...overrides }
        const answer = await asked('POST', { path: `/api/v1${path}`, body }, inside)
        expect([overrides, answer.status]).toEqual([overrides, status])
      }
    })
  },
)

test('a key ends the moment it is deactivated, whatever it was for', async () => {
  const { clientId, headers } = await newClient(service, sandbox.tenant.tenantId, {
    environment: 'sandbox',
  })
  const request = { path: `/api/v1/payment-links/${await link()}` }
  expect((await asked('GET', request, headers)).status).toBe(200)
  await operate(service, 'POST', `/api-clients/${clientId}/deactivate`)
  expect((await asked('GET', request, headers)).status).toBe(401)
})

/** A request of every operation, with a body that nobody should get to. */
const everyOperation = (api: 'core' | 'operator') =>
  operationsOf(api).map(([name, { method, path }]) => {
    const url = `${api === 'core' ? service.coreUrl : service.opsUrl}${path.replaceAll(/\{\w+\}/g, 'f'.repeat(24))}`
    const body = method === 'GET' ? {} : { body: '{"broken' }
    return [name, (headers: Headers) => send(url, { method, headers, ...body })] as const
  })

describe('the operator API', () => {
  test.each<[string, () => Headers, number, string]>([
    ['no token', () => ({}), 401, 'Unauthorized'],
    ['another one', () => ({ Authorization: 'Bearer nope' }), 401, 'Unauthorized'],
    ['another scheme', () => ({ Authorization: `Basic ${service.operatorToken}` }), 401, 'Unauthorized'],
    ['the key of a partner', () => live.inside, 401, 'Unauthorized'],
    ['the key of an agent', () => ({ Authorization: `Bearer ${live.tenant.apiKey}` }), 403, 'Forbidden'],
  ])('is closed to %s, whatever is asked', async (_caller, headers, status, error) => {
    await changingNothing(async () => {
      const shown = headers()
      const asking = everyOperation('operator').map(async ([name, ask]) => [name, await ask(shown)] as const)
      for (const [name, answer] of await Promise.all(asking)) {
        expect([name, answer.status, answer.body]).toEqual([
          ...[name, status, expect.objectContaining({ ok: false, error, message: expect.any(String) })],
        ])
        if (status === 401) expect(answer.headers.get('www-authenticate')).toContain('Bearer')
      }
    })
  })
})

describe('the core API', () => {
  const rotated = async () => {
    const { clientId, headers } = await newClient(service, live.tenant.tenantId, { products: ['all'] })
    await operate(service, 'POST', `/api-clients/${clientId}/rotate`, {})
    return headers
  }
  const without = (name: string) => {
    const { [name]: _, ...headers } = live.inside
    return headers
  }
  const withSecret = (secret: string) => ({ ...live.tenant.clientHeaders, 'X-Client-Secret': secret })
  const withId = (id: string) => ({ ...live.tenant.clientHeaders, 'X-Client-ID': id })

  test.each<[string, () => Headers | Promise<Headers>, string]>([
    ['no id', () => without('X-Client-ID'), 'Missing authentication headers'],
    ['no secret', () => without('X-Client-Secret'), 'Missing authentication headers'],
    ['an id of nobody', () => withId(`service_live_cli_${'0'.repeat(32)}`), 'Invalid client_id'],
    ['an id that is none', () => withId('nobody'), 'Invalid client_id'],
    ['an id with a path in it', () => withId('../../etc/passwd'), 'Invalid client_id'],
    ['a deactivated client', () => live.unknown['a key that is deactivated']!, 'Invalid client_id'],
    ['a wrong secret', () => withSecret('wrong'), 'Invalid client_secret'],
    [
      'a secret with more behind it',
      () => withSecret(`${live.tenant.clientSecret}x`),
      'Invalid client_secret',
    ],
    ['the secret of another client', () => withSecret(live.other.clientSecret), 'Invalid client_secret'],
    ['a secret that was rotated', rotated, 'Invalid client_secret'],
  ])('is closed to %s, whatever is asked', async (_caller, headers, error) => {
    const shown = await headers()
    await changingNothing(async () => {
      // pushes prove themselves by their signature
      const asking = everyOperation('core')
        .filter(([name]) => !name.includes('/inbound/'))
        .map(async ([name, ask]) => [name, await ask(shown)] as const)
      for (const [name, answer] of await Promise.all(asking)) {
        expect([name, answer.status, answer.body]).toEqual([
          ...[name, 401, expect.objectContaining({ error, message: expect.any(String) })],
        ])
        expect(answer.text).not.toContain(shown['X-Client-Secret'] ?? 'nothing')
      }
    })
  })
})
