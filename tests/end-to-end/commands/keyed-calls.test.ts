import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reportBody, type ShownEvent, serviceTime, sign, storedSince } from '../../support/core.ts'
import { operationsOf, takesKey } from '../../support/described-calls.ts'
import type { DescribedApi } from '../../support/described-hosts.ts'
import {
  type Asked,
  type Headers,
  live,
  openWorlds,
  ROWS,
  service,
  worldFor,
} from '../../support/payments-calls.ts'
import { type Answer, newFein, operate, policyDefaults, send } from '../../support/seed.ts'

/**
 * Whatever takes an `Idempotency-Key` is done once for it, as its description says: the same again, at once or later,
 * gets the first answer byte for byte, or a conflict that names what was made where a secret was shown; another body is a
 * conflict; a refusal leaves the key as it was.
 */

type Json = Readonly<Record<string, unknown>>
interface Keyed {
  /** A request that is fulfilled, each time another one; that of the rows of the payments API where it is left out. */
  readonly ask?: () => Asked | Promise<Asked>
  /** Changes that make another request of it; none where there is no body. */
  readonly other?: Json
  /** Changes for which it is refused by a rule, not for its form. */
  readonly refused?: Json
}

const NONE = 'f'.repeat(24)
const PAYMENTS: Readonly<Record<string, Keyed>> = {
  'POST /payment-links': { other: { premium_cents: 1 }, refused: { policy_id: NONE } },
  'POST /payment-links/{}/refund': { other: { amount_cents: 1 }, refused: { amount_cents: 10 ** 9 } },
  'POST /payment-sessions': { other: { amount_cents: 777 }, refused: { policy_id: NONE } },
  'POST /payment-sessions/{}/reissue': { other: { ttl_minutes: 60 }, refused: { deliver: { sms: true } } },
  'POST /bankconnect/exchange': { other: { user_id: 'user-2' }, refused: { employer_id: NONE } },
  'POST /bank-accounts/ach/from-bankconnect': { other: { nickname: 'B' }, refused: { owner_id: NONE } },
  'POST /bank-accounts/ach': { other: { account_number: '1234567' }, refused: { owner_id: NONE } },
  'POST /bank-accounts/ach/{}/micro-deposits': { other: { another: 1 } },
  'POST /bank-accounts': { other: { name: 'B' }, refused: { employer_id: NONE } },
  'POST /ach/debits': { other: { amount_cents: 1 }, refused: { policy_id: NONE } },
  'POST /ach/collections': { other: { another: 1 }, refused: { employerId: NONE } },
  'POST /subscriptions': { other: { amount_cents: 1 }, refused: { policy_id: NONE } },
  'POST /intake/policies': { other: { owners: [] }, refused: { carrier_id: NONE } },
  'POST /webhooks': { other: { events: ['payment.failed'] }, refused: { url: 'https://10.0.0.1/' } },
  'POST /webhooks/{}/resend': { other: { to: '2050-01-01' } },
  'POST /webhooks/{}/rotate': {},
}

const of = () => ({ tenant_id: live.tenant.tenantId })
const rotated = async () => {
  const { client_id } = await operate(service, 'POST', '/api-clients', { ...of(), name: 'A' })
  return { path: `/ops/v1/api-clients/${client_id}/rotate` }
}
const rotatedOperator = async () => {
  const { operator_id } = await operate(service, 'POST', '/operators', { name: 'A', role: 'support' })
  return { path: `/ops/v1/operators/${operator_id}/rotate`, body: {} }
}
const ops = (path: string, body: () => Json) => () => ({ path: `/ops/v1${path}`, body: body() })
const ofTenant = (path: string): Keyed => ({
  ask: ops(path, () => ({ ...of(), name: 'A' })),
  other: { name: 'B' },
  refused: { tenant_id: NONE },
})
const OPERATOR: Readonly<Record<string, Keyed>> = {
  'POST /tenants': { ask: ops('/tenants', () => ({ name: 'A' })), other: { name: 'B' } },
  'POST /carriers': ofTenant('/carriers'),
  'POST /payroll-companies': ofTenant('/payroll-companies'),
  'POST /employers': {
    ask: ops('/employers', () => ({ ...of(), legal_name: 'A', fein: newFein() })),
    other: { legal_name: 'B' },
    refused: { payroll_company_ids: [NONE] },
  },
  'POST /policies': {
    ask: ops('/policies', () => {
      const { employerId: employer_id, carrierId: carrier_id } = live.tenant
      return { employer_id, carrier_id, ...policyDefaults() }
    }),
    other: { states: ['CA'] },
    refused: { carrier_id: NONE },
  },
  'POST /api-clients': ofTenant('/api-clients'),
  'POST /api-clients/{}/rotate': { ask: rotated },
  'POST /inbound-connections': {
    ask: ops('/inbound-connections', of),
    other: { environment: 'sandbox' },
    refused: { tenant_id: NONE },
  },
  'POST /operators': {
    ask: ops('/operators', () => ({ name: 'A', role: 'support' })),
    other: { role: 'auditor' },
    refused: { expires_at: '2020-01-01T00:00:00Z' },
  },
  'POST /operators/{}/rotate': {
    ask: rotatedOperator,
    other: { expires_at: '2050-01-01T00:00:00Z' },
    refused: { expires_at: '2020-01-01T00:00:00Z' },
  },
  'POST /reconciliations': { ask: ops('/reconciliations', () => ({})), other: { another: 1 } },
  'POST /legacy-collections': {
    ask: ops('/legacy-collections', () => ({
      employer_id: live.tenant.employerId,
      period_start: '2026-04-20',
      period_end: '2026-04-26',
      premium_cents: 12_345,
      status: 'at_sb',
    })),
    other: { premium_cents: 1 },
    refused: { employer_id: NONE },
  },
}

let connection: { connection_id: string; secret: string }
const reported: Pick<Keyed, 'other' | 'refused'> = {
  other: { pay_period: null },
  refused: { policy_number: 'WC-NONE' },
}
const CORE: Readonly<Record<string, Keyed>> = {
  'POST /payroll/reports': {
    ask: () => ({ path: '/api/v1/payroll/reports', body: reportBody(live.tenant) }),
    ...reported,
  },
  'POST /employees/sync': {
    ask: () => ({
      path: '/api/v1/employees/sync',
      body: {
        employer_id: live.tenant.employerId,
        employees: [{ employee_id: 'E-1', action: 'update', gross_wages: 1 }],
      },
    }),
    other: { employees: [{ employee_id: 'E-1', action: 'update', gross_wages: 2 }] },
    refused: { employer_id: NONE },
  },
  'POST /webhook/inbound/{}': {
    ask: () => ({
      path: `/api/v1/webhook/inbound/${connection.connection_id}`,
      body: reportBody(live.tenant),
    }),
    ...reported,
  },
}

let close: () => Promise<void>
beforeAll(async () => {
  close = await openWorlds()
  connection = await operate(service, 'POST', '/inbound-connections', { ...of(), environment: 'live' })
})
afterAll(() => close?.())

/** What a caller of an API is known by; pushes are signed anew each time. */
async function credentials(api: DescribedApi, name: string, body: unknown): Promise<Headers> {
  if (api === 'operator') return { Authorization: `Bearer ${service.operatorToken}` }
  if (api === 'payments') return worldFor(ROWS[name]!).inside
  if (!name.includes('inbound')) return live.tenant.clientHeaders
  pushes += 1
  const timestamp = String((await serviceTime(service)) + pushes)
  const text = JSON.stringify(body)
  return {
    'X-Webhook-Timestamp': timestamp,
    'X-Webhook-Signature': sign(connection.secret, timestamp, text),
  }
}
let pushes = 0

describe.each<[DescribedApi, Readonly<Record<string, Keyed>>]>([
  ['core', CORE],
  ['operator', OPERATOR],
  ['payments', PAYMENTS],
])('a key of the %s API', (api, rows) => {
  const operations = operationsOf(api)
    .filter(([name, { operation }]) => takesKey(operation) && !name.includes('/v2/'))
    .map(([name, { operation }]) => [nameOf(name), operation] as const)

  test('is tried with every operation that takes one', () => {
    expect(operations.map(([name]) => name).sort()).toEqual(Object.keys(rows).sort())
  })

  test.each(operations)('%s', async (name, { description = '' }) => {
    const { ask = ROWS[name]!.ask, other, refused } = rows[name]!
    const showsSecret = description.includes('the secret was handed out once')
    const sent = async ({ path, body }: Asked, key: string, changes: Json = {}): Promise<Answer> => {
      const whole = body === undefined ? {} : { body: { ...(body as Json), ...changes } }
      const headers = { ...(await credentials(api, name, whole.body)), 'Idempotency-Key': key }
      const host = { core: service.coreUrl, operator: service.opsUrl, payments: service.paymentsUrl }[api]
      return send(`${host}${path}`, { method: 'POST', headers, ...whole })
    }
    const [first, twin] = [await ask(), await ask()]
    const [key, twinKey] = [randomUUID(), randomUUID()]
    const stored = async () => types(await storedSince(service))
    await stored()
    // a refusal stores nothing, and its key is free for what is right
    for (const _again of refused ? [1, 2] : []) {
      const { status } = await sent(first, key, refused)
      expect([status, status >= 400 && status < 500]).toEqual([status, true])
    }
    if (refused) expect(await stored()).toEqual([])
    const { status, text } = await sent(first, key)
    expect([status, text]).toEqual([expect.toBeOneOf([200, 201, 202]), text])
    const single = await stored()
    // what is sent many times at once is done once
    const answers = await Promise.all([1, 2, 3, 4].map(() => sent(twin, twinKey)))
    expect(await stored()).toEqual(single)
    const isReplayed = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'
    const fresh = answers.filter((one) => one.status < 300 && !isReplayed(one))
    expect(fresh).toHaveLength(1)
    answers.push(await sent(twin, twinKey))
    for (const again of answers.filter((one) => one !== fresh[0])) {
      if (showsSecret) {
        expect([again.status, again.body]).toMatchObject([409, { message: expect.stringMatching(/\w{24}/) }])
      } else {
        const status = fresh[0]!.status === 201 ? 200 : fresh[0]!.status
        expect([again.status, again.text, isReplayed(again)]).toEqual([status, fresh[0]!.text, true])
      }
    }
    // whatever else is sent under it is not done
    for (const changes of [other, refused]) {
      if (!changes) continue
      const { status, text } = await sent(twin, twinKey, changes)
      expect([status, text]).toEqual([expect.toBeOneOf(changes === other ? [409] : [400, 404, 409]), text])
    }
    expect(await stored()).toEqual([])
  })
})

/** Types of events, but for what is noted of the keys themselves. */
function types(events: readonly ShownEvent[]): readonly string[] {
  return events
    .map(({ type }) => type)
    .filter((type) => !type.startsWith('IdempotencyKey'))
    .sort()
}

/** An operation as the rows name it. */
function nameOf(name: string): string {
  return name.replace(/\/(api|ops)\/v1/, '').replaceAll(/\{\w+\}/g, '{}')
}
