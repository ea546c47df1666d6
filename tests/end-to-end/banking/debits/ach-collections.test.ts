import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { achDebitsOf } from '../../../support/ach-debits.ts'
import { newClient } from '../../../support/intake.ts'
import { webhookEvents } from '../../../support/payments.ts'
import { type Answer, type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Batch collections: debits of several policies of one employer, all of them or none. */

let service: SharedService
let tenant: SeededTenant
let bank: ReturnType<typeof achDebitsOf>
let account: string
let second: string

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  bank = achDebitsOf(service, tenant)
  account = await bank.account()
  second = await bank.policy()
})

const collect = (body: unknown, key?: string, as?: Readonly<Record<string, string>>) =>
  bank.ask('POST', '/ach/collections', body, key, as)
const refusal = ({ status, body }: Answer) => [status, body.ok, body.error, body.message]
const idsOf = ({ body }: Answer) =>
  body.data.transactions.map(({ transaction_id }: { transaction_id: string }) => transaction_id)

test.each([
  ['totalInDollars', 1.005],
  ['idempotencyKey', ' '],
] as const)('is refused for an entry by the name of the field: %s %j', async (field, value) => {
  const answer = await collect(bank.collection(account, bank.entry({ [field]: value })))
  expect(refusal(answer)).toEqual([
    400,
    false,
    'Bad Request',
    expect.stringContaining(`policyCollections[0].${field}`),
  ])
})

test('is refused for an amount that reading would change to one of two decimals', async () => {
  const body = JSON.stringify(bank.collection(account, bank.entry({ totalInDollars: 0 })))
  const answer = await collect(body.replace('"totalInDollars":0', '"totalInDollars":1.0000000000000000001'))
  expect(refusal(answer)).toEqual([
    ...[400, false, 'Bad Request', expect.stringContaining('policyCollections[0].totalInDollars')],
  ])
})

test('takes one entry for each policy and key', async () => {
  const entry = bank.entry()
  for (const other of [
    bank.entry(),
    bank.entry({ policyId: second, idempotencyKey: entry.idempotencyKey }),
  ]) {
    const answer = await collect(bank.collection(account, entry, other))
    expect(refusal(answer)).toEqual([400, false, 'Bad Request', expect.stringContaining('policyCollections')])
  }
})

test('is one debit for each entry, readable at once, and answered again as the first time', async () => {
  const body = bank.collection(
    ...([
      account,
      bank.entry(),
      bank.entry({ policyId: second, totalInDollars: 0.29, description: 'June' }),
    ] as const),
  )
  const first = await collect(body)
  expect(first.status).toBe(202)
  const { collection_id } = first.body.data
  const [one, other] = idsOf(first)
  expect(first.body.data).toEqual({
    success: true,
    collection_id: expect.stringMatching(/^[0-9a-f]{24}$/),
    accepted: 2,
    transactions: [
      { transaction_id: one, policy_id: tenant.policyId, amount: 12_550, status: 'PENDING' },
      { transaction_id: other, policy_id: second, amount: 29, status: 'PENDING' },
    ],
  })
  expect((await bank.list(`&policy_id=${second}`))[0]).toMatchObject({
    transaction_id: other,
    source: 'collection',
    collection_id,
    payment_purpose: 'paygo',
    carrier_id: tenant.carrierId,
    description: 'June',
    amount_cents: 29,
    status: 'pending',
  })
  await bank.drain()
  const again = await collect(body)
  expect([again.status, again.headers.get('idempotent-replayed'), again.body]).toEqual([
    202,
    'true',
    first.body,
  ])
  expect(await bank.total()).toBe(2)
  expect(await webhookEvents(service, tenant.tenantId)).toEqual([])
})

test('knows the keys of earlier debits and collections', async () => {
  const known = bank.entry()
  const [earlier] = idsOf(await collect(bank.collection(account, known)))
  const before = await bank.total()
  const added = bank.entry({ policyId: second })
  const [again, fresh] = idsOf(await collect(bank.collection(account, known, added)))
  expect([again, await bank.total()]).toEqual([earlier, before + 1])

  // the same debit, asked for by a call
  const { idempotencyKey: idempotency_key, description } = known
  const same = await bank.ask('POST', '/ach/debits', bank.debit(account, { idempotency_key, description }))
  expect([same.status, same.body.data.transaction_id]).toEqual([200, earlier])

  // another one takes all with it
  const changed = bank.collection(account, bank.entry({ policyId: second }), { ...known, totalInDollars: 1 })
  const refused = await collect(changed)
  const field = 'policyCollections[1].idempotencyKey'
  expect(refusal(refused)).toEqual([409, false, 'Conflict', expect.stringContaining(field)])
  expect(refused.body.id).toBe(earlier)
  const called = await bank.ask('POST', '/ach/debits', bank.debit(account, { idempotency_key }))
  expect(called.status).toBe(409)
  expect(await bank.total()).toBe(before + 1)
  // and leaves its other keys free
  const freed = await collect(
    bank.collection(account, { ...changed.policyCollections[0], totalInDollars: 3 }),
  )
  expect(freed.status).toBe(202)
  expect(idsOf(freed)).not.toContain(fresh)
})

test('names what is there and belongs together, or creates nothing', async () => {
  const other = await bank.insured()
  const before = await bank.total()
  const none = 'f'.repeat(24)
  const good = bank.entry()
  const cases = [
    [404, 'employerId', { ...bank.collection(account, good), employerId: none }],
    [404, 'bankAccountId', bank.collection(none, good)],
    [404, 'policyCollections[1].policyId', bank.collection(account, good, bank.entry({ policyId: none }))],
    [
      400,
      'policyCollections[1].policyId',
      bank.collection(account, good, bank.entry({ policyId: other.policyId })),
    ],
    [400, 'bankAccountId', bank.collection(await bank.account(other.employerId), good)],
  ] as const
  for (const [status, field, body] of cases) {
    const answer = await collect(body)
    expect([field, answer.status, answer.body.message]).toEqual([
      field,
      status,
      expect.stringContaining(field),
    ])
  }
  const mine = await newClient(service, tenant.tenantId, {
    environment: 'live',
    employer_ids: [tenant.employerId],
  })
  for (const [, field, body] of cases.slice(-2)) {
    const answer = await collect(body, undefined, mine.headers)
    expect([field, answer.status, answer.body.message]).toEqual([field, 403, expect.stringContaining(field)])
  }
  expect(await bank.total()).toBe(before)
})

test('honours the header', async () => {
  const key = randomUUID()
  const body = bank.collection(account, bank.entry())
  const first = await collect(body, key)
  const again = await collect(body, key)
  expect([first.status, again.status, again.body]).toEqual([202, 202, first.body])
  const other = await collect(bank.collection(account, bank.entry()), key)
  expect([other.status, other.body.id]).toEqual([409, first.body.data.collection_id])
})

test('of many at once with common keys debits each key once', async () => {
  const shared = Array.from({ length: 3 }, () => randomUUID())
  const policies = [tenant.policyId, second, await bank.policy()]
  const before = await bank.total()
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => {
      // every other one for another amount, in another order
      const entries = policies.map((policyId, place) =>
        bank.entry({ policyId, idempotencyKey: shared[place], totalInDollars: n % 2 === 0 ? 10 : 20 }),
      )
      return collect(bank.collection(account, ...(n % 3 === 0 ? entries.toReversed() : entries)))
    }),
  )
  const accepted = answers.filter(({ status }) => status === 202)
  expect(answers.map(({ status }) => status).every((status) => status === 202 || status === 409)).toBe(true)
  const debited = new Set(accepted.flatMap(idsOf))
  // whoever has the first key in their order has them all
  expect(debited.size).toBe(3)
  await bank.drain()
  expect(await bank.total()).toBe(before + debited.size)
  const amounts = new Set(
    (await bank.list())
      .filter((one: { transaction_id: string }) => debited.has(one.transaction_id))
      .map((one: { amount_cents: number }) => one.amount_cents),
  )
  expect(amounts.size).toBe(1)
})
