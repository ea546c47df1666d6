import { beforeAll, describe, expect, test } from 'vitest'
import { accountBody, digits } from '../../../support/ach-debits.ts'
import { allEvents, eventsAfter } from '../../../support/core.ts'
import { newClient } from '../../../support/intake.ts'
import { partner } from '../../../support/payments.ts'
import {
  type Answer,
  askOperator,
  operate,
  type SeededTenant,
  seedCarrier,
  seedEmployer,
  seedTenant,
} from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** Bank accounts of both layers: metadata, and the credentials that money is moved with. */

type Json = ReturnType<typeof JSON.parse>

/** Numbers that stand nowhere else. */
const routing_number = digits(9)
const account_number = digits(17)

let service: SharedService
let tenant: SeededTenant
let headers: Readonly<Record<string, string>>
/** Every answer that a partner or an operator got. */
const answers: string[] = []

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  headers = tenant.clientHeaders
})

async function ask(
  method: string,
  path: string,
  body?: unknown,
  { key, as = headers }: { readonly key?: string; readonly as?: typeof headers } = {},
): Promise<Answer> {
  const answer = await partner(service, as, method, path, body, key)
  answers.push(answer.text)
  return answer
}
async function ops(method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await askOperator(service, method, path, body)
  answers.push(answer.text)
  return answer
}
const refusal = ({ status, body }: Answer) => [status, body.ok, body.error]

const bankBody = (overrides: Json = {}): Json => ({
  user_id: 'user-1',
  name: 'Operating',
  bank_name: 'First Bank',
  employer_id: tenant.employerId,
  ...overrides,
})
const achBody = (overrides: Json = {}): Json =>
  accountBody(tenant.employerId, { routing_number, account_number, ...overrides })
async function made(path: string, body: Json): Promise<Json> {
  const answer = await ask('POST', path, body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
}
const newBank = (overrides: Json = {}) => made('/bank-accounts', bankBody(overrides))
const newAch = (overrides: Json = {}) => made('/bank-accounts/ach', achBody(overrides))
const shown = async (path: string): Promise<Json> => {
  const { status, body } = await ask('GET', path)
  expect(status).toBe(200)
  return body.data
}
const employer = async (): Promise<string> =>
  (await seedEmployer(service, { tenantId: tenant.tenantId })).employerId

describe('a bank account of the metadata layer', () => {
  test('is shown as it was created, without numbers, and by the next request', async () => {
    const created = await newBank({ carrier_id: tenant.carrierId })
    const time = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
    expect(created).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      user_id: 'user-1',
      name: 'Operating',
      bank_name: 'First Bank',
      employer_id: tenant.employerId,
      carrier_id: tenant.carrierId,
      connection_type: 'manual',
      status: 'active',
      primary: false,
      created_at: time,
      updated_at: time,
    })
    expect(await shown(`/bank-accounts/${created._id}`)).toEqual(created)
    const [newest] = await shown('/bank-accounts')
    expect(newest).toEqual(created)
    const bare = await newBank({ employer_id: undefined })
    expect([bare.employer_id, bare.carrier_id]).toEqual([null, null])
  })

  test('moves to nobody outside the scope of the key', async () => {
    const other = await employer()
    const scope = { environment: 'live', employer_ids: [tenant.employerId] }
    const { headers: as } = await newClient(service, tenant.tenantId, scope)
    const { _id } = await newBank()
    const moved = await ask('PATCH', `/bank-accounts/${_id}`, { employer_id: other }, { as })
    expect(refusal(moved)).toEqual([403, false, 'Forbidden'])
    expect((await ask('PATCH', `/bank-accounts/${_id}`, { employer_id: 'x' })).status).toBe(404)
  })

  test('does not bring in an employer of other carriers by a carrier of the key', async () => {
    const carrier_id = await seedCarrier(service, tenant.tenantId)
    const scope = { environment: 'live', carrier_ids: [carrier_id], employer_ids: 'all' }
    const { headers: as } = await newClient(service, tenant.tenantId, scope)
    const refused = await ask('POST', '/bank-accounts', bankBody({ carrier_id }), { as })
    expect([...refusal(refused), refused.body.message]).toEqual([
      ...[403, false, 'Forbidden', expect.stringContaining('employer_id')],
    ])
    // one that nobody insures yet is not others' business
    const body = bankBody({ carrier_id, employer_id: await employer() })
    expect((await ask('POST', '/bank-accounts', body, { as })).status).toBe(201)
    const { _id } = await newBank({ carrier_id, employer_id: null })
    const moved = await ask('PATCH', `/bank-accounts/${_id}`, { employer_id: tenant.employerId }, { as })
    expect(refusal(moved)).toEqual([403, false, 'Forbidden'])
  })

  test('is changed in what it says, and in nothing else', async () => {
    const { _id } = await newBank()
    const path = `/bank-accounts/${_id}`
    const change = { name: 'Payroll', connection_type: 'bankconnect', status: 'disabled', employer_id: null }
    const { status, body } = await ask('PATCH', path, change)
    expect([status, body.data]).toEqual([200, expect.objectContaining(change)])
    expect(await shown(path)).toEqual(body.data)
    // as it is shown, but for one field
    expect((await ask('PATCH', path, { ...body.data, name: 'Claims' })).body.data.name).toBe('Claims')
    const moved = await ask('PATCH', path, { ...body.data, user_id: 'other' })
    expect([moved.status, moved.body.message]).toEqual([400, 'user_id cannot be changed'])
  })

  test('is listed by every filter', async () => {
    const employerId = await employer()
    const mine = { employer_id: employerId }
    const plain = await newBank(mine)
    const linked = await newBank({ ...mine, connection_type: 'bankconnect', carrier_id: tenant.carrierId })
    const primary = await newBank({ ...mine, primary: true })
    await ask('PATCH', `/bank-accounts/${plain._id}`, { status: 'disabled' })
    const ids = async (query: string) => {
      const { body } = await ask('GET', `/bank-accounts?employer_id=${employerId}${query}`)
      return body.data.map(({ _id }: Json) => _id)
    }
    expect(await ids('')).toEqual([primary._id, linked._id, plain._id])
    expect(await ids(`&carrier_id=${tenant.carrierId}`)).toEqual([linked._id])
    expect(await ids('&connection_type=bankconnect')).toEqual([linked._id])
    expect(await ids('&status=active')).toEqual([primary._id, linked._id])
    expect(await ids('&primary=true')).toEqual([primary._id])
    expect(await ids('&primary=false')).toEqual([linked._id, plain._id])
    expect(await ids('&limit=1&page=2')).toEqual([linked._id])
  })

  test('is gone once it is deleted, however many do so at once', async () => {
    const { _id } = await newBank()
    const path = `/bank-accounts/${_id}`
    const many = await Promise.all(Array.from({ length: 6 }, () => ask('DELETE', path)))
    const done = many.filter(({ status }) => status === 200)
    expect(done.length).toBeGreaterThan(0)
    expect(done[0]!.body).toEqual({ ok: true, data: { _id, deleted: true } })
    expect(many.filter(({ status }) => status !== 200 && status !== 404)).toEqual([])
    for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { name: 'A' }]] as const) {
      expect((await ask(method, path, body)).status).toBe(404)
    }
    expect((await shown('/bank-accounts')).map((one: Json) => one._id)).not.toContain(_id)
  })

  test('is never taken for the layer of credentials', async () => {
    expect((await ask('GET', '/bank-accounts/ach')).body.data).toEqual(expect.any(Array))
    for (const method of ['PATCH', 'DELETE']) {
      // asked without a look at the description, which knows the path of the other layer
      const url = `${service.paymentsUrl}/api/v1/bank-accounts/ach`
      expect((await fetch(url, { method, headers })).status).toBe(405)
    }
    const { _id } = await newBank()
    expect((await ask('GET', `/bank-accounts/ach/${_id}`)).status).toBe(404)
    const ach = await newAch()
    expect((await ask('GET', `/bank-accounts/${ach._id}`)).status).toBe(404)
  })
})

describe('the primary account of an owner', () => {
  const primaries = async (employerId: string) =>
    (await shown(`/bank-accounts?employer_id=${employerId}&limit=200`)).filter(({ primary }: Json) => primary)

  test('is one, and none follows one that is deleted', async () => {
    const employer_id = await employer()
    const first = await newBank({ employer_id, primary: true })
    const second = await newBank({ employer_id, primary: true })
    expect([first.primary, second.primary]).toEqual([true, true])
    expect(await primaries(employer_id)).toEqual([second])
    const again = await ask('PATCH', `/bank-accounts/${first._id}/default`, { primary: true })
    expect([again.status, again.body.data.primary]).toEqual([200, true])
    expect(await primaries(employer_id)).toEqual([again.body.data])
    await ask('DELETE', `/bank-accounts/${first._id}`)
    expect(await primaries(employer_id)).toEqual([])
    const chosen = await ask('PATCH', `/bank-accounts/${second._id}`, { primary: true })
    expect(chosen.body.data.primary).toBe(true)
    const cleared = await ask('PATCH', `/bank-accounts/${second._id}`, { primary: false })
    expect(cleared.body.data.primary).toBe(false)
    expect(await primaries(employer_id)).toEqual([])
  })

  test('stays where it is when it moves to another owner', async () => {
    const [from, to] = [await employer(), await employer()]
    const moving = await newBank({ employer_id: from, primary: true })
    const settled = await newBank({ employer_id: to, primary: true })
    const moved = await ask('PATCH', `/bank-accounts/${moving._id}`, { employer_id: to })
    expect(moved.body.data.primary).toBe(false)
    expect(await primaries(to)).toEqual([settled])
    expect(await primaries(from)).toEqual([])
    const filtered = await shown(`/bank-accounts?employer_id=${to}&primary=true`)
    expect(filtered).toEqual([settled])
  })

  test('is one also of many that are chosen and deleted at once, in each layer', async () => {
    const employer_id = await employer()
    const mine = { owner_id: employer_id, is_primary: true }
    const banks: Json[] = await Promise.all(
      Array.from({ length: 6 }, () => newBank({ employer_id, primary: true })),
    )
    const achs: Json[] = await Promise.all(Array.from({ length: 6 }, () => newAch(mine)))
    const [gone, ...others] = banks
    const [achGone, ...achOthers] = achs
    const choices = await Promise.all([
      ...others.map(({ _id }) => ask('PATCH', `/bank-accounts/${_id}/default`, { primary: true })),
      ask('DELETE', `/bank-accounts/${gone._id}`),
      ...achOthers.map(({ _id }) => ask('PATCH', `/bank-accounts/ach/${_id}`, { is_primary: true })),
      ask('DELETE', `/bank-accounts/ach/${achGone._id}`),
    ])
    expect(new Set(choices.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await primaries(employer_id)).toHaveLength(1)
    expect(await shown(`/bank-accounts?employer_id=${employer_id}&primary=true`)).toHaveLength(1)
    const shownAchs: Json[] = await shown(`/bank-accounts/ach?owner_id=${employer_id}`)
    expect(shownAchs).toHaveLength(5)
    expect(shownAchs.filter(({ is_primary }) => is_primary)).toHaveLength(1)
    // what creations asked for is not done once more behind them
    await operate(service, 'POST', '/drain')
    expect(await shown(`/bank-accounts/ach?owner_id=${employer_id}`)).toEqual(shownAchs)
  })
})

describe('an ACH account', () => {
  test('shows the last four digits of its numbers', async () => {
    const created = await newAch({ nickname: 'Main', is_primary: true })
    const time = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
    expect(created).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      account_last4: account_number.slice(-4),
      routing_last4: routing_number.slice(-4),
      status: 'unverified',
      bank_name: 'First Bank',
      account_type: 'checking',
      owner_type: 'employer',
      owner_id: tenant.employerId,
      nickname: 'Main',
      is_primary: true,
      connection_type: 'manual',
      verified: false,
      created_at: time,
      updated_at: time,
    })
    expect(await shown(`/bank-accounts/ach/${created._id}`)).toEqual(created)
    // the same numbers again are another account, as is a number without a valid check digit
    expect((await newAch())._id).not.toBe(created._id)
    expect((await newAch({ routing_number: '123456789', account_number: '12345' })).account_last4).toBe(
      '2345',
    )
    expect((await newAch({ owner_type: 'carrier', owner_id: tenant.carrierId })).owner_type).toBe('carrier')
  })

  test.each([
    ['bank_name', `Bank of ${account_number}`],
    ['nickname', routing_number],
  ])('is refused with %s %j by the name of the field', async (field, value) => {
    const answer = await ask('POST', '/bank-accounts/ach', achBody({ [field]: value }))
    expect(refusal(answer)).toEqual([400, false, 'Bad Request'])
    expect(answer.body.message).toContain(field)
  })

  test('is open to a key whose carriers insure its owner', async () => {
    const scope = { environment: 'live', carrier_ids: [tenant.carrierId], employer_ids: 'all' }
    const { headers: as } = await newClient(service, tenant.tenantId, scope)
    // the key reaches employers that its carriers insure
    expect((await ask('POST', '/bank-accounts/ach', achBody(), { as })).status).toBe(201)
    const body = achBody({ owner_id: await employer() })
    expect(refusal(await ask('POST', '/bank-accounts/ach', body, { as }))).toEqual([403, false, 'Forbidden'])
    const { _id } = await made('/bank-accounts/ach', body)
    expect((await ask('GET', `/bank-accounts/ach/${_id}`, undefined, { as })).status).toBe(403)
    const listed: Json[] = (await ask('GET', '/bank-accounts/ach?limit=200', undefined, { as })).body.data
    expect(listed.map((one) => one._id)).not.toContain(_id)
    expect(listed.length).toBeGreaterThan(0)
  })

  test('is changed in its names and its type, and no name holds a number', async () => {
    const { _id } = await newAch({ owner_id: await employer() })
    const path = `/bank-accounts/ach/${_id}`
    const change = { nickname: 'Main', bank_name: 'Second Bank', account_type: 'savings', is_primary: true }
    const { status, body } = await ask('PATCH', path, change)
    expect([status, body.data]).toEqual([200, expect.objectContaining(change)])
    expect(await shown(path)).toEqual(body.data)
    const cleared = await ask('PATCH', path, { nickname: null, is_primary: false })
    expect(cleared.body.data).toMatchObject({ nickname: null, is_primary: false, bank_name: 'Second Bank' })
    const refused = await ask('PATCH', path, { nickname: routing_number })
    expect([...refusal(refused), refused.body.message]).toEqual([
      ...[400, false, 'Bad Request', expect.stringContaining('nickname')],
    ])
  })

  test('is listed by every filter', async () => {
    const owner_id = await employer()
    const first = await newAch({ owner_id })
    const second = await newAch({ owner_id })
    const attested = await ops('POST', `/ach-accounts/${second._id}/attest`, { note: 'voided check' })
    expect([attested.status, attested.body.data.status, attested.body.data.verified]).toEqual([
      ...[200, 'active', true],
    ])
    const ids = async (query: string) =>
      (await shown(`/bank-accounts/ach?owner_id=${owner_id}${query}`)).map(({ _id }: Json) => _id)
    expect(await ids('')).toEqual([second._id, first._id])
    expect(await ids('&limit=1')).toEqual([second._id])
    expect(await ids('&owner_type=employer')).toEqual([second._id, first._id])
    expect(await ids('&owner_type=carrier')).toEqual([])
    expect(await ids('&status=unverified')).toEqual([first._id])
    expect(await ids('&status=active')).toEqual([second._id])
    expect(await ids('&connection_type=manual')).toEqual([second._id, first._id])
    expect(await ids('&connection_type=bankconnect')).toEqual([])
  })
})

describe('the verification of an ACH account', () => {
  const verify = (id: string, amounts_cents: unknown) =>
    ask('POST', `/bank-accounts/ach/${id}/verify`, { amounts_cents })
  const start = (id: string, key?: string) =>
    ask('POST', `/bank-accounts/ach/${id}/micro-deposits`, {}, key === undefined ? {} : { key })
  const amountsOf = async (id: string): Promise<[number, number]> =>
    (await operate(service, 'GET', `/bank-rail/micro-deposits/${id}`)).amounts_cents
  /** Two amounts that are not those. */
  const wrong = ([one, other]: readonly number[]) => [(one! % 99) + 1, other]

  test('takes the two amounts, in three tries, and can be started again', async () => {
    const { _id } = await newAch()
    expect(refusal(await verify(_id, [1, 2]))).toEqual([409, false, 'Conflict'])
    expect((await ops('GET', `/bank-rail/micro-deposits/${_id}`)).status).toBe(404)
    const begun = await start(_id)
    expect([begun.status, begun.body.data]).toEqual([
      200,
      { _id, status: 'unverified', tries_left: 3, expires_at: expect.any(String) },
    ])
    expect(refusal(await start(_id))).toEqual([409, false, 'Conflict'])
    const first = await amountsOf(_id)
    for (const left of ['2 tries left', '1 try left', 'no tries left']) {
      const answer = await verify(_id, wrong(first))
      expect(refusal(answer)).toEqual([400, false, 'Bad Request'])
      expect(answer.body.message).toContain('amounts_cents')
      expect(answer.body.message).toContain(left)
    }
    expect(refusal(await verify(_id, first))).toEqual([409, false, 'Conflict'])
    expect(await shown(`/bank-accounts/ach/${_id}`)).toMatchObject({ status: 'unverified', verified: false })

    expect((await start(_id)).status).toBe(200)
    const second = await amountsOf(_id)
    expect(new Set(second).size).toBe(2)
    for (const malformed of [undefined, second[0], [second[0]], [...second, 1], [0, 1], [1, 100], [1.5, 2]]) {
      const answer = await verify(_id, malformed)
      expect([malformed, ...refusal(answer)]).toEqual([malformed, 400, false, 'Bad Request'])
      expect(answer.body.message).not.toContain('left')
    }
    const verified = await verify(_id, second.toReversed())
    expect([verified.status, verified.body.data]).toEqual([
      200,
      expect.objectContaining({ _id, status: 'active', verified: true }),
    ])
    expect(await shown(`/bank-accounts/ach/${_id}`)).toEqual(verified.body.data)
    // the answer may have been lost
    expect((await verify(_id, second)).status).toBe(200)
    expect(refusal(await verify(_id, wrong(second)))).toEqual([409, false, 'Conflict'])
    expect(refusal(await start(_id))).toEqual([409, false, 'Conflict'])
  })

  test('counts tries that come at once', async () => {
    const { _id } = await newAch()
    const key = `deposits-${_id}`
    const begun = await start(_id, key)
    const repeated = await start(_id, key)
    expect([begun.status, repeated.status, repeated.text]).toEqual([200, 200, begun.text])
    const amounts = await amountsOf(_id)
    const tries = await Promise.all(Array.from({ length: 6 }, () => verify(_id, wrong(amounts))))
    expect(tries.map(({ status }) => status).sort()).toEqual([400, 400, 400, 409, 409, 409])
  })

  test('ends when the bank will not make the deposits', async () => {
    const { _id } = await newAch()
    await operate(service, 'POST', '/faults', { point: 'bank-rail', mode: 'decline' })
    expect((await start(_id)).status).toBe(200)
    await operate(service, 'POST', '/drain')
    expect(refusal(await verify(_id, await amountsOf(_id)))).toEqual([409, false, 'Conflict'])
    expect((await start(_id)).status).toBe(200)
    await operate(service, 'POST', '/drain')
    const types = (await allEvents(service)).filter(({ stream }) => stream.endsWith(_id))
    expect(types.map(({ type }) => type.replace('AchAccount', ''))).toEqual([
      ...['Created', 'VerificationStarted', 'NumbersRead', 'MicroDepositsRefused'],
      ...['VerificationStarted', 'NumbersRead', 'MicroDepositsSent'],
    ])
    expect((await verify(_id, await amountsOf(_id))).status).toBe(200)
  })
})

test('full numbers stand in no answer, no event and no line of the log', async () => {
  const { _id } = await newAch()
  await ask('POST', '/bank-accounts/ach', `{"account_number":"${account_number}","a`)
  await ask('POST', `/bank-accounts/ach/${_id}/micro-deposits`, {})
  await operate(service, 'POST', '/drain')
  const { tenantId: tenant_id } = tenant
  const { events } = await eventsAfter(service, null, { tenant_id, reveal: 'true' })
  expect(events.map(({ type }) => type)).toContain('AchAccountCreated')
  await ops('GET', `/streams/achAccount-${_id}?reveal=true`)
  await ops('GET', `/streams/achAccount-${_id}/state`)
  const everything = [...answers, JSON.stringify(events), ...(await service.output())].join('\n')
  expect(everything).toContain(account_number.slice(-4))
  for (const secret of [account_number, routing_number]) expect(everything).not.toContain(secret)
})
