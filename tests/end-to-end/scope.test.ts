import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { paymentsEndpoints } from '../../interfaces/payments-api/app.ts'
import { storedBy } from '../support/core.ts'
import { operationsOf } from '../support/described-calls.ts'
import { newClient } from '../support/intake.ts'
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
} from '../support/payments-calls.ts'
import { type Answer, operate, seedPolicy, send } from '../support/seed.ts'

let close: () => Promise<void>
beforeAll(async () => {
  close = await openWorlds()
})
afterAll(() => close?.())

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
  const stored = await storedBy(service, run)
  expect(stored.map(({ type }) => type)).toEqual([])
}

test('every endpoint of the payments host has a row', () => {
  expect(built.filter((name) => !Object.hasOwn(ROWS, name))).toEqual([])
})

describe('without the right key', () => {
  test.each(EVERY)('%s is refused before anything else is looked at', async (name, row) => {
    const request = unread(name, await row.ask())
    const { callers } = worldFor(row)
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
          const key = sandbox.callers['a key of the other environment']!
          const answer = await asked(methodOf(name), { ...request, path }, key)
          expect([...refusal(answer), answer.body.message]).toEqual([
            ...[403, false, 'Forbidden'],
            expect.stringContaining('sandbox keys only'),
          ])
        }
      })
    },
  )

  test.each(EVERY.filter(([, row]) => row.liveOnly))(
    '%s is for live keys only',
    async (name, { about, ask }) => {
      // what is created tells by its body whether it has a sandbox
      const request = about === 'creation' ? await ask() : unread(name, await ask())
      await changingNothing(async () => {
        for (const path of [request.path, request.path.replace(ID, 'f'.repeat(24))]) {
          const key = live.callers['a key of the other environment']!
          const answer = await asked(methodOf(name), { ...request, path }, key)
          expect([...refusal(answer), answer.body.message]).toEqual([
            ...[400, false, 'Bad Request'],
            expect.stringContaining('no sandbox'),
          ])
        }
      })
    },
  )
})

describe('in another account, or the other environment', () => {
  const elsewhere = (row: Row) =>
    row.sandboxOnly || row.inBoth || row.liveOnly
      ? ['a key of another account']
      : ['a key of another account', 'a key of the other environment']

  test.each(rowsAbout('one'))('%s is as if there were none', async (name, row) => {
    const { path, body } = await row.ask()
    const { callers, inside, tenant } = worldFor(row)
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
        const answer = await asked(methodOf(name), request, worldFor(row).callers[caller]!)
        expect([caller, ...refusal(answer)]).toEqual([caller, 404, false, 'Not Found'])
      }
    })
  })

  test.each(rowsAbout('list'))('%s shows none of it', async (name, row) => {
    const request = await row.ask()
    for (const caller of elsewhere(row)) {
      const answer = await asked(methodOf(name), request, worldFor(row).callers[caller]!)
      expectEmpty(caller, answer)
    }
  })
})

describe('outside the carriers or employers of the key', () => {
  test.each(rowsAbout('one', 'creation'))('%s is forbidden', async (name, row) => {
    const request = await row.ask()
    await changingNothing(async () => {
      for (const [caller, headers] of Object.entries(worldFor(row).outside)) {
        const answer = await asked(methodOf(name), request, headers)
        expect([caller, ...refusal(answer)]).toEqual([caller, 403, false, 'Forbidden'])
      }
    })
  })

  test.each(rowsAbout('list'))('%s shows none of it', async (name, row) => {
    const request = await row.ask()
    for (const [caller, headers] of Object.entries(worldFor(row).outside)) {
      const answer = await asked(methodOf(name), request, headers)
      expectEmpty(caller, answer)
    }
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
})

describe('with a key for exactly that carrier and employer', () => {
  test.each(EVERY)('%s goes through', async (name, row) => {
    const { about } = row
    const answer = await asked(methodOf(name), await row.ask(), worldFor(row).inside)
    expect([answer.status, answer.body.ok]).toEqual([expect.toSatisfy((status) => status < 300), true])
    if (about === 'list') expect(answer.body.data.length).toBeGreaterThan(0)
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
      for (const [name, ask] of everyOperation('operator')) {
        const answer = await ask(headers())
        expect([name, answer.status, answer.body]).toEqual([
          ...[name, status, { ok: false, error, message: expect.any(String) }],
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
    ['a deactivated client', () => live.callers['a key that is deactivated']!, 'Invalid client_id'],
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
      for (const [name, ask] of everyOperation('core').filter(([name]) => !name.includes('/inbound/'))) {
        const answer = await ask(shown)
        expect([name, answer.status, answer.body]).toEqual([
          ...[name, 401, { error, message: expect.any(String) }],
        ])
        expect(answer.text).not.toContain(shown['X-Client-Secret'] ?? 'nothing')
      }
    })
  })
})
