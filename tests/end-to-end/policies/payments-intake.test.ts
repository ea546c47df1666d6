import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents, logHead, report, serviceTime } from '../../support/core.ts'
import { intakeBody, listed, newClient, newIntakeKey, payInFull, takeIn } from '../../support/intake.ts'
import {
  type Answer,
  askOperator,
  callTool,
  newFein,
  newPolicyNumber,
  operate,
  type SeededTenant,
  seedAgent,
  seedCarrier,
  seedPolicy,
  seedTenant,
  send,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { startReceiver } from '../../support/webhook-receiver.ts'

let service: SharedService
let tenant: SeededTenant
/** Another account. */
let other: SeededTenant
/** Of one carrier, which it may leave out. */
let headers: Record<string, string>

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  other = await seedTenant(service)
  headers = (await newClient(service, tenant.tenantId, { carrier_ids: [tenant.carrierId] })).headers
})

const DAY_MS = 86_400_000
const ID = expect.stringMatching(/^[0-9a-f]{24}$/)

const send201 = async (body: unknown, as = headers): Promise<{ employer_id: string; policy_id: string }> => {
  const answer = await takeIn(service, as, body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body.data
}
const policyOf = (id: string) => operate(service, 'GET', `/policies/${id}`)
const employerOf = (id: string) => operate(service, 'GET', `/employers/${id}`)
const policiesOf = async (employerId: string) =>
  (await listed(service, `/policies?employer_id=${employerId}`)).map(({ policy_id }) => policy_id)
const employersOf = async (tenantId: string) =>
  (await listed(service, `/employers?tenant_id=${tenantId}`)).map(({ employer_id }) => employer_id)
const secondCarrier = () => seedCarrier(service, tenant.tenantId)
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort()
const daysFromNow = async (days: number) =>
  new Date((await serviceTime(service)) + days * DAY_MS).toISOString().slice(0, 10)

describe('an intake', () => {
  test('creates an employer and a direct-billing policy in progress', async () => {
    const body = intakeBody({ policy: { effective_date: '2028-02-29' } })
    const answer = await takeIn(service, headers, body)
    expect(answer.status).toBe(201)
    expect(answer.headers.get('idempotent-replayed')).toBeNull()
    const { employer_id, policy_id } = answer.body
    expect(answer.body).toEqual({
      ok: true,
      data: { employer_id, policy_id },
      employer_id: ID,
      policy_id: ID,
    })
    expect(await employerOf(employer_id)).toMatchObject({
      tenant_id: tenant.tenantId,
      environment: 'live',
      legal_name: 'Tidewater Joinery LLC',
      fein: body.employer.fein,
      address: body.employer.address,
      payroll_company_ids: [],
      contact_email: 'office@tidewater.example',
    })
    expect(await policyOf(policy_id)).toMatchObject({
      employer_id,
      carrier_id: tenant.carrierId,
      status: 'in_progress',
      billing_type: 'DIRECT_BILLING',
      effective_date: '2028-02-29',
      expiration_date: '2029-02-28',
      annual_premium_cents: 412_300,
      states: ['OR'],
      class_codes: ['2812'],
      environment: 'live',
      policy_number: expect.stringMatching(/^WC(-[0-9A-HJKMNP-TV-Z]{4}){3}$/),
    })
  })

  test('takes the email of an employer as that of its contact', async () => {
    const email = 'only@this.example'
    const { employer_id } = await send201(intakeBody({ employer: { contact_email: undefined, email } }))
    expect((await employerOf(employer_id)).contact_email).toBe(email)
  })

  test('that is refused stores nothing, and its key is free', async () => {
    const head = await logHead(service)
    const body = intakeBody()
    for (const [change, status] of [
      [{ policy: { ...body.policy, annual_premium_cents: 0 } }, 400],
      [{ carrier_id: other.carrierId }, 404],
      [{ employer: { ...body.employer, fein: other.fein } }, 409],
      [{ policy: { ...body.policy, policy_number: tenant.policyNumber } }, 409],
    ] as const) {
      expect((await takeIn(service, headers, { ...body, ...change })).status).toBe(status)
    }
    expect(await logHead(service)).toBe(head)
    await send201(body)
  })
})

describe('the same key', () => {
  test('answers the first ids with 200, whatever else is sent', async () => {
    const body = intakeBody()
    const first = await takeIn(service, headers, body)
    const changed = { ...intakeBody(), idempotency_key: body.idempotency_key, carrier_id: tenant.carrierId }
    for (const again of [body, changed]) {
      const answer = await takeIn(service, headers, again)
      expect([answer.status, answer.text]).toEqual([200, first.text])
      expect(answer.headers.get('idempotent-replayed')).toBe('true')
    }
    expect(await policiesOf(first.body.employer_id)).toEqual([first.body.policy_id])
  })

  test('is another in another account and in the other environment, for each client of one the same', async () => {
    const body = intakeBody()
    const ids = await send201(body)
    const elsewhere = intakeBody({ idempotency_key: body.idempotency_key, carrier_id: other.carrierId })
    const theirs = await send201(elsewhere, other.clientHeaders)
    const sandbox = await newClient(service, tenant.tenantId, { environment: 'sandbox' })
    const tested = await send201({ ...body, carrier_id: tenant.carrierId }, sandbox.headers)
    expect(new Set([ids, theirs, tested].map(({ employer_id }) => employer_id)).size).toBe(3)
    expect(await employerOf(tested.employer_id)).toMatchObject({
      environment: 'sandbox',
      fein: body.employer.fein,
    })
    const colleague = await newClient(service, tenant.tenantId)
    const again = await takeIn(service, colleague.headers, { ...body, carrier_id: tenant.carrierId })
    expect([again.status, again.body.data]).toEqual([200, ids])
  })

  test('is forbidden to a key that does not reach what was created', async () => {
    const body = intakeBody()
    await send201(body)
    const narrow = [
      { carrier_ids: [await secondCarrier()] },
      { employer_ids: [tenant.employerId], carrier_ids: [tenant.carrierId] },
    ]
    for (const scope of narrow) {
      const { headers } = await newClient(service, tenant.tenantId, scope)
      const answer = await takeIn(service, headers, body)
      expect([answer.status, answer.body.error]).toEqual([403, 'Forbidden'])
    }
  })

  test('sent with other bodies at once creates what came first', async () => {
    const { idempotency_key } = intakeBody()
    const before = await employersOf(tenant.tenantId)
    const bodies = Array.from({ length: 6 }, () => intakeBody({ idempotency_key }))
    const answers = await Promise.all(bodies.map((body) => takeIn(service, headers, body)))
    expect(statuses(answers)).toEqual([...Array(5).fill(200), 201])
    const [ids] = answers.map(({ body }) => body.data)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(await employersOf(tenant.tenantId)).toHaveLength(before.length + 1)
    const { fein, legal_name } = await employerOf(ids.employer_id)
    expect(bodies.map(({ employer }) => employer.fein)).toContain(fein)
    expect(legal_name).toBe('Tidewater Joinery LLC')
  })
})

describe('an Idempotency-Key header', () => {
  test('is honoured as everywhere: the same body is answered again, another is 409', async () => {
    const body = intakeBody()
    const keyed = { ...headers, 'Idempotency-Key': newIntakeKey() }
    const first = await takeIn(service, keyed, body)
    const again = await takeIn(service, keyed, body)
    expect([first.status, again.status, again.text]).toEqual([201, 200, first.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const changed = await takeIn(service, keyed, intakeBody())
    expect([changed.status, changed.body.error]).toEqual([409, 'Conflict'])
    // without the header the documented key counts alone
    const bare = await takeIn(service, headers, intakeBody({ idempotency_key: body.idempotency_key }))
    expect([bare.status, bare.text]).toEqual([200, first.text])
    const another = await takeIn(service, { ...headers, 'Idempotency-Key': newIntakeKey() }, body)
    expect([another.status, another.text]).toEqual([200, first.text])
  })
})

describe('a FEIN', () => {
  /** A number that nobody has: its digits, as of a company and as of a person. */
  const notationsOf = (nine = newFein().replace('-', '')) => ({
    nine,
    plain: `${nine.slice(0, 2)}-${nine.slice(2)}`,
    person: `${nine.slice(0, 3)}-${nine.slice(3, 5)}-${nine.slice(5)}`,
  })

  test('leads to the employer that has it, as digits or in its notation, unchanged', async () => {
    const { nine, plain, person } = notationsOf()
    const made = []
    for (const fein of [person, nine, ` ${person} `, nine]) {
      made.push(await send201(intakeBody({ employer: { fein, legal_name: `As ${made.length}` } })))
    }
    expect(new Set(made.map(({ employer_id }) => employer_id)).size).toBe(1)
    expect(new Set(made.map(({ policy_id }) => policy_id)).size).toBe(4)
    const { employer_id } = made[0]!
    expect(await employerOf(employer_id)).toMatchObject({ fein: plain, legal_name: 'As 0' })
    expect((await policiesOf(employer_id)).sort()).toEqual(made.map(({ policy_id }) => policy_id).sort())
    const received = (await allEvents(service, 'IntakeReceived')).filter(
      ({ data }) => data.employer_id === employer_id,
    )
    expect(received.map(({ data }) => data.fein_notation)).toEqual([
      'person',
      'employer',
      'person',
      'employer',
    ])
  })

  test('that was sent as digits first leads to its employer in either notation', async () => {
    for (const notation of ['plain', 'person'] as const) {
      const { nine, [notation]: written } = notationsOf()
      const made = []
      for (const fein of [nine, written]) {
        made.push(await send201(intakeBody({ employer: { fein } })))
      }
      expect(made[1]!.employer_id).toBe(made[0]!.employer_id)
    }
  })

  test('of a person is not that of a company, nor the other way round: 409, and nothing is taken in', async () => {
    const { plain, person } = notationsOf()
    await send201(intakeBody({ employer: { fein: plain } }))
    const body = intakeBody({ employer: { fein: person } })
    const refused = await takeIn(service, headers, body)
    expect([refused.status, refused.body]).toEqual([
      409,
      expect.objectContaining({
        ok: false,
        error: 'Conflict',
        message:
          "An employer has the digits of employer.fein as an employer's number; send it as XX-XXXXXXX if it is meant",
      }),
    ])
    const other = notationsOf()
    await send201(intakeBody({ employer: { fein: other.person } }))
    const asCompany = intakeBody({ employer: { fein: other.plain } })
    expect((await takeIn(service, headers, asCompany)).status).toBe(409)
    // its key is free
    await send201({ ...body, employer: { ...body.employer, fein: plain } })
  })

  test('leads to an employer that the operator registered', async () => {
    const { employer_id } = await send201(intakeBody({ employer: { fein: tenant.fein } }))
    expect(employer_id).toBe(tenant.employerId)
    expect((await employerOf(employer_id)).legal_name).toBe(tenant.employerName)
  })

  test('of an employer of another account is 409, in any notation', async () => {
    const { nine, person } = notationsOf(other.fein.replace('-', ''))
    for (const fein of [nine, person]) {
      const answer = await takeIn(service, headers, intakeBody({ employer: { fein } }))
      expect([answer.status, answer.body]).toEqual([
        409,
        expect.objectContaining({
          ok: false,
          error: 'fein_conflict',
          message: expect.not.stringContaining(nine),
        }),
      ])
    }
  })

  test('asked for by two accounts at once goes to one of them', async () => {
    for (let round = 0; round < 3; round += 1) {
      const fein = newFein()
      const accounts = [
        { as: headers, carrier_id: tenant.carrierId },
        { as: other.clientHeaders, carrier_id: other.carrierId },
      ]
      const bodies = accounts.map(({ carrier_id }) => intakeBody({ carrier_id, employer: { fein } }))
      const answers = await Promise.all(bodies.map((body, n) => takeIn(service, accounts[n]!.as, body)))
      expect(statuses(answers)).toEqual([201, 409])
      const loser = answers.findIndex(({ status }) => status === 409)
      expect(answers[loser]!.body.error).toBe('fein_conflict')
      // its key is free for a body that does not stand in anybody's way
      const corrected = intakeBody({
        idempotency_key: bodies[loser]!.idempotency_key,
        carrier_id: accounts[loser]!.carrier_id,
      })
      await send201(corrected, accounts[loser]!.as)
    }
  })
})

describe('the scope of a key', () => {
  test('of several carriers, or of all, wants carrier_id', async () => {
    const second = await secondCarrier()
    for (const carrier_ids of [[tenant.carrierId, second], 'all']) {
      const several = await newClient(service, tenant.tenantId, { carrier_ids })
      const missing = await takeIn(service, several.headers, intakeBody())
      expect([missing.status, missing.body.message]).toEqual([400, expect.stringContaining('carrier_id')])
      const { policy_id } = await send201(intakeBody({ carrier_id: second }), several.headers)
      expect((await policyOf(policy_id)).carrier_id).toBe(second)
    }
  })

  test('of certain employers adds policies to them, and creates no others', async () => {
    const scope = { employer_ids: [tenant.employerId], carrier_ids: [tenant.carrierId] }
    const narrow = await newClient(service, tenant.tenantId, scope)
    const { employer_id } = await send201(intakeBody({ employer: { fein: tenant.fein } }), narrow.headers)
    expect(employer_id).toBe(tenant.employerId)
    const head = await logHead(service)
    // new, or of another account: it is not told which
    for (const fein of [newFein(), other.fein]) {
      const answer = await takeIn(service, narrow.headers, intakeBody({ employer: { fein } }))
      expect([answer.status, answer.body.error]).toEqual([403, 'Forbidden'])
    }
    expect(await logHead(service)).toBe(head)
  })
})

describe('a policy number', () => {
  test('of an active policy of the account is 409; of one in progress, or elsewhere, it is not', async () => {
    const policy_number = newPolicyNumber()
    const first = await send201(intakeBody({ policy: { policy_number } }))
    const second = await send201(intakeBody({ policy: { policy_number } }))
    const active = await takeIn(
      service,
      headers,
      intakeBody({ policy: { policy_number: tenant.policyNumber } }),
    )
    expect([active.status, active.body.error, active.body.message]).toEqual([
      409,
      'Conflict',
      expect.stringContaining('policy_number'),
    ])
    await send201(intakeBody({ policy: { policy_number: other.policyNumber } }))
    expect((await policyOf(first.policy_id)).policy_number).toBe(policy_number)
    expect(second.policy_id).not.toBe(first.policy_id)
  })
})

describe('an activated policy', () => {
  test('is listed, described and reported for at once; before that it is nowhere', async () => {
    const body = intakeBody({ policy: { effective_date: await daysFromNow(-3) } })
    const { employer_id, policy_id } = await send201(body)
    const { policy_number } = await policyOf(policy_id)
    const agent = await seedAgent(service, { entity_type: 'employer', entity_id: employer_id })
    const insured = { ...tenant, fein: body.employer.fein as string, policyNumber: policy_number }
    const row = { class_code: '2812', state: 'OR' }
    const reported = () =>
      report(service, insured, {
        employees: [{ employee_id: 'E-1', first_name: 'Jo', gross_wages: 10, ...row }],
      })
    const tools = async () =>
      (await callTool(service, agent.apiKey, 'list_employer_policies', { employer_id })).result

    expect((await tools()).policies).toEqual([])
    const before = await reported()
    expect([before.status, before.body.error]).toEqual([404, 'Policy not found'])

    const activated = await operate(service, 'POST', `/policies/${policy_id}/activate`)
    expect(activated).toMatchObject({ policy_id, status: 'active' })
    expect((await tools()).policies).toMatchObject([{ policy_id, policy_number, status: 'active' }])
    expect((await reported()).status).toBe(202)
    const expected = (
      await callTool(service, agent.apiKey, 'get_expected_fields', { employer_id, policy_id })
    ).result
    expect(JSON.stringify(expected)).toContain('2812')
    expect((await operate(service, 'POST', `/policies/${policy_id}/activate`)).status).toBe('active')
    const events = await operate(service, 'GET', `/streams/policy-${policy_id}`)
    expect(events.map(({ type }: { type: string }) => type)).toEqual(['PolicyIssued', 'PolicyActivated'])
  })

  test('whose term is over reads expired, and takes no number', async () => {
    const policy = { effective_date: '2001-05-31', policy_number: tenant.policyNumber.replace('WC', 'OLD') }
    const { policy_id } = await send201(intakeBody({ policy }))
    expect((await operate(service, 'POST', `/policies/${policy_id}/activate`)).status).toBe('expired')
    const { policyId } = await seedPolicy(service, tenant, { policy_number: policy.policy_number })
    expect((await policyOf(policyId)).status).toBe('active')
  })
})

describe('a policy that was taken in and sold', () => {
  let broker: Record<string, string>
  const sandboxPolicy = async () =>
    send201(intakeBody({ policy: { effective_date: await daysFromNow(-1) } }), broker)
  const newLink = async (body: unknown): Promise<string> => {
    const url = `${service.paymentsUrl}/api/v1/payment-links`
    const created = await send(url, { method: 'POST', headers: broker, body })
    expect([created.status, created.text]).toEqual([201, expect.any(String)])
    return created.body.data._id
  }
  const at = (linkId: string, verb = '') => `${service.paymentsUrl}/api/v1/payment-links/${linkId}${verb}`
  const simulate = async (linkId: string) => {
    const answer = await send(at(linkId, '/simulate-completion'), {
      method: 'POST',
      headers: broker,
      body: {},
    })
    expect(answer.status).toBe(200)
  }

  beforeAll(async () => {
    const scope = { environment: 'sandbox', carrier_ids: [tenant.carrierId] }
    broker = (await newClient(service, tenant.tenantId, scope)).headers
  })

  test('stays in progress when its link is cancelled; another one makes it active', async () => {
    const ids = await sandboxPolicy()
    const first = await newLink(payInFull(ids))
    expect((await send(at(first), { method: 'DELETE', headers: broker })).status).toBe(200)
    expect((await policyOf(ids.policy_id)).status).toBe('in_progress')
    await simulate(await newLink(payInFull(ids)))
    expect((await policyOf(ids.policy_id)).status).toBe('active')
  })

  test('reads active everywhere when a receiver hears of the payment', async () => {
    const ids = await sandboxPolicy()
    const { policy_number } = await policyOf(ids.policy_id)
    const { fein } = await employerOf(ids.employer_id)
    const agent = await seedAgent(service, { entity_type: 'employer', entity_id: ids.employer_id })
    const all = await newClient(service, tenant.tenantId, { environment: 'sandbox', products: ['all'] })
    /** What is asked in the moment in which the webhook comes. */
    let asked: Promise<unknown[]> | undefined
    const receiver = await startReceiver()
    receiver.answerWith(() => {
      asked ??= Promise.all([
        policyOf(ids.policy_id).then(({ status }) => status),
        callTool(service, agent.apiKey, 'list_employer_policies', { employer_id: ids.employer_id }).then(
          ({ result }) => result.policies[0]?.status,
        ),
        report(
          service,
          { ...tenant, fein, policyNumber: policy_number, clientHeaders: all.headers },
          {
            employees: [
              { employee_id: 'E-1', first_name: 'Jo', class_code: '2812', state: 'OR', gross_wages: 1 },
            ],
          },
        ).then(({ status }) => status),
      ])
      return 200
    })
    try {
      const body = { url: `${receiver.url}/paid`, events: ['payment.completed'] }
      const hooks = `${service.paymentsUrl}/api/v1/webhooks`
      expect((await send(hooks, { method: 'POST', headers: broker, body })).status).toBe(201)
      await simulate(await newLink(payInFull(ids)))
      const heard = JSON.parse((await receiver.next()).body.toString())
      expect(heard).toMatchObject({ ...ids, amount_paid_cents: 412_300 })
      expect(await asked).toEqual(['active', 'active', 202])
    } finally {
      await receiver.stop()
    }
  })
})

describe('an intake that breaks off', () => {
  const broken = async (mode: string, body: unknown) => {
    await operate(service, 'POST', '/faults', { point: 'intake', mode, times: 1 })
    const answer = await takeIn(service, headers, body)
    expect([answer.status, answer.body]).toEqual([
      502,
      expect.objectContaining({
        ok: false,
        error: 'Bad Gateway',
        message: expect.stringContaining('idempotency_key'),
        intake_id: ID,
      }),
    ])
    return answer.body.intake_id as string
  }

  test.each([
    ['unreachable', 0, 0],
    ['decline', 1, 0],
    ['timeout', 1, 1],
  ])('by %s is finished by its key: one employer, one policy', async (mode, employersThen, policiesThen) => {
    const account = await seedTenant(service)
    const client = await newClient(service, account.tenantId)
    const body = intakeBody({ carrier_id: account.carrierId })
    await operate(service, 'POST', '/faults', { point: 'intake', mode, times: 1 })
    const failed = await takeIn(service, client.headers, body)
    expect([failed.status, failed.body.intake_id]).toEqual([502, ID])
    const there = async () => [
      (await employersOf(account.tenantId)).length - 1,
      (await listed(service, `/policies?tenant_id=${account.tenantId}`)).length - 1,
    ]
    expect(await there()).toEqual([employersThen, policiesThen])
    const first = await takeIn(service, client.headers, body)
    expect(first.status).toBe(201)
    const again = await takeIn(service, client.headers, body)
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(await there()).toEqual([1, 1])
  })

  test('again and again keeps its id', async () => {
    const body = intakeBody()
    const ids = []
    for (const mode of ['unreachable', 'decline', 'decline', 'timeout']) ids.push(await broken(mode, body))
    expect(new Set(ids).size).toBe(1)
    await send201(body)
  })

  test('is finished as it was sent first, whatever changed since', async () => {
    const policy_number = newPolicyNumber()
    const body = intakeBody({ policy: { policy_number } })
    await broken('unreachable', body)
    // the number is taken meanwhile, and what is sent now would be refused
    await seedPolicy(service, tenant, { policy_number })
    const changed = intakeBody({
      idempotency_key: body.idempotency_key,
      carrier_id: tenant.carrierId,
      employer: { legal_name: 'Someone Else Inc', fein: other.fein },
      policy: { policy_number },
    })
    const ids = await send201(changed)
    expect(await employerOf(ids.employer_id)).toMatchObject({
      legal_name: body.employer.legal_name,
      fein: body.employer.fein,
    })
    expect((await policyOf(ids.policy_id)).policy_number).toBe(policy_number)
  })

  test('loses its FEIN to an account that registers it first, and frees its key', async () => {
    const body = intakeBody()
    const intakeId = await broken('unreachable', body)
    const theirs = intakeBody({ carrier_id: other.carrierId, employer: { fein: body.employer.fein } })
    const { employer_id } = await send201(theirs, other.clientHeaders)
    expect((await employerOf(employer_id)).tenant_id).toBe(other.tenantId)
    for (const _again of [1, 2]) {
      expect((await takeIn(service, headers, body)).body.error).toBe('fein_conflict')
    }
    const ids = await send201(intakeBody({ idempotency_key: body.idempotency_key }))
    expect(ids.employer_id).not.toBe(employer_id)
    const events = await operate(service, 'GET', `/streams/intake-${intakeId}`)
    expect(events.map(({ type }: { type: string }) => type)).toEqual([
      ...['IntakeReceived', 'IntakeRefused', 'IntakeReceived', 'IntakeCompleted'],
    ])
  })

  test('and is not sent again for an hour is told to the operator, once; one that was finished is not', async () => {
    const account = await seedTenant(service)
    const client = await newClient(service, account.tenantId)
    const [left, resumed] = [1, 2].map(() => intakeBody({ carrier_id: account.carrierId }))
    for (const body of [left, resumed]) {
      await operate(service, 'POST', '/faults', { point: 'intake', mode: 'decline', times: 1 })
      expect((await takeIn(service, client.headers, body)).status).toBe(502)
    }
    await send201(resumed, client.headers)
    const alerts = async () => {
      await operate(service, 'POST', '/drain')
      const all = await operate(service, 'GET', `/alerts?tenant_id=${account.tenantId}`)
      return all.map(({ kind, about }: { kind: string; about: unknown }) => [kind, about])
    }
    await operate(service, 'POST', '/clock/advance', { seconds: 3_540 })
    expect(await alerts()).toEqual([])
    await operate(service, 'POST', '/clock/advance', { seconds: 120 })
    const told = [['intake_unfinished', { intake_id: ID, employer_id: ID }]]
    expect(await alerts()).toEqual(told)
    await operate(service, 'POST', '/clock/advance', { seconds: 7_200 })
    await send201(left, client.headers)
    expect(await alerts()).toEqual(told)
  })

  test('with an Idempotency-Key header is finished under it', async () => {
    const body = intakeBody()
    const keyed = { ...headers, 'Idempotency-Key': newIntakeKey() }
    await operate(service, 'POST', '/faults', { point: 'intake', mode: 'decline', times: 1 })
    expect((await takeIn(service, keyed, body)).status).toBe(502)
    expect((await takeIn(service, keyed, intakeBody())).status).toBe(409)
    await send201(body, keyed)
    expect((await takeIn(service, keyed, body)).status).toBe(200)
  })
})

/** The data subject of an employer, registered or not, as the answer for a registered one spells it. */
async function subjectOf(employerId: string): Promise<string> {
  const { body } = await askOperator(service, 'GET', `/employers/${employerId}`)
  return body.data.data_subject
}

describe('personal data', () => {
  test('are the name of a sole proprietor, also in the file name and the kept answers of a report', async () => {
    const nine = newFein().replace('-', '')
    const fein = `${nine.slice(0, 3)}-${nine.slice(3, 5)}-${nine.slice(5)}`
    const named = { fein, legal_name: 'Ottilie Quandt' }
    const effective_date = await daysFromNow(-3)
    const { employer_id, policy_id } = await send201(
      intakeBody({ employer: named, policy: { effective_date } }),
    )
    await operate(service, 'POST', `/policies/${policy_id}/activate`)
    const { policy_number } = await policyOf(policy_id)
    const insured = { ...tenant, fein: nine, policyNumber: policy_number }
    const row = { first_name: 'Jo', gross_wages: 10, class_code: '2812', state: 'OR' }
    const key = { 'Idempotency-Key': newIntakeKey() }
    const again = { 'Idempotency-Key': newIntakeKey() }
    const large = Array.from({ length: 501 }, () => row)
    const first = await report(service, insured, { employees: [row] }, key)
    const second = await report(service, insured, { employees: large }, again)
    for (const { body } of [first, second]) {
      expect(body.employer.business_name).toBe('Ottilie Quandt')
      expect(body.file_name).toMatch(/^ottilie-quandt_2026-01-01_/)
    }
    expect((await report(service, insured, { employees: [row] }, key)).body).toEqual(first.body)
    expect((await report(service, insured, { employees: large }, again)).body).toEqual(second.body)
    expect(JSON.stringify(await allEvents(service))).not.toMatch(/quandt/i)

    await operate(service, 'PATCH', `/employers/${employer_id}`, { legal_name: 'Ottilie Quandt-Rey' })
    expect((await employerOf(employer_id)).legal_name).toBe('Ottilie Quandt-Rey')
    expect(JSON.stringify(await allEvents(service))).not.toMatch(/quandt/i)
    await operate(service, 'POST', '/erasures', { subject: await subjectOf(employer_id) })
    expect((await employerOf(employer_id)).legal_name).toBe('(erased)')
    const erased = (await report(service, insured, { employees: [row] }, key)).body
    expect([erased.employer.business_name, erased.file_name]).toEqual(['(erased)', '(erased)'])
  })

  test('stand in no event in plain text; auditors may open them, an erasure closes them', async () => {
    const body = intakeBody({ employer: { legal_name: 'Lantern Works LLC' } })
    const { employer_id, policy_id } = await send201(body)
    const [received] = (await allEvents(service, 'IntakeReceived')).filter(
      ({ data }) => data.employer_id === employer_id,
    )
    const intakeId = received!.data.intake_id as string
    const plain = JSON.stringify(await allEvents(service))
    for (const value of [
      'Wilhelmina',
      'Barnaby',
      '1971-03-08',
      'President',
      body.employer.fein,
      '+15035550147',
    ]) {
      expect(plain).not.toContain(value)
    }
    expect(received!.data.owners).toEqual([
      { person: '•••', excluded: false },
      { person: '•••', excluded: true },
    ])
    expect(received!.data.policy).toMatchObject({ el_limit_tier: '1M/1M/1M', class_code: '2812' })

    const opened = async () =>
      (await operate(service, 'GET', `/streams/intake-${intakeId}?reveal=true`))[0].data as {
        employer: string
        owners: { person: string }[]
      }
    const { employer, owners } = await opened()
    expect(JSON.parse(employer)).toEqual(body.employer)
    expect(owners.map(({ person }) => JSON.parse(person))).toMatchObject([
      { first_name: 'Wilhelmina', ownership_percentage: 62.5, dob: '1971-03-08', title: 'President' },
      { first_name: 'Barnaby', excluded: true, dob: null },
    ])

    // an owner is the person that payroll knows by that name
    const person = { employer_id, first_name: 'Barnaby', last_name: 'Oakes' }
    await operate(service, 'POST', '/erasures', person)
    expect((await opened()).owners.map(({ person }) => person)).toEqual([
      expect.stringContaining('Wilhelmina'),
      '(erased)',
    ])
    await operate(service, 'POST', '/erasures', { subject: await subjectOf(employer_id) })
    expect((await opened()).employer).toBe('(erased)')
    expect(await operate(service, 'POST', '/audit/verify', { stream: `intake-${intakeId}` })).toMatchObject({
      verified: true,
    })
    expect((await takeIn(service, headers, body)).body.data).toEqual({ employer_id, policy_id })
  })
})
