// @module-tag each-log
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { employeeRecord, report } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { isLogInEventStore } from '../../support/installation.ts'
import {
  type Answer,
  askOperator,
  operate,
  type SeededTenant,
  seedEmployer,
  seedTenant,
  send,
} from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { until } from '../../support/workbench.ts'

let database: TestDatabase
let service: RunningService
let restart: () => Promise<RunningService>
let seeded: SeededTenant

beforeAll(async () => {
  database = await createTestDatabase()
  const env = { DATABASE_URL: database.url, MASTER_KEY: randomBytes(32).toString('base64') }
  restart = () => startService({ env })
  service = await restart()
  seeded = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
})

const MASK = '•••'

const ops = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  askOperator(service, method, path, body, headers)

/** The last thing recorded about operators, as shown under /events. */
async function lastAction(): Promise<{ data: Record<string, unknown>; metadata: Record<string, unknown> }> {
  const { body } = await ops('GET', '/events?type=OperatorActed&limit=1000')
  return body.data.at(-1)
}

/** Everything recorded about erasures. */
async function erasures(): Promise<unknown[]> {
  const types = ['PersonalDataErased', 'OperatorActed']
  const lists = await Promise.all(types.map((type) => ops('GET', `/events?type=${type}&limit=1000`)))
  return lists.flatMap(({ body }) => body.data)
}

describe('a stream', () => {
  test('is shown in order with everything that an auditor needs, personal fields masked', async () => {
    const { status, body } = await ops('GET', `/streams/employer-${seeded.employerId}`)
    expect(status).toBe(200)
    expect(body.data).toEqual([
      {
        position: expect.stringMatching(/^\d+$/),
        stream: `employer-${seeded.employerId}`,
        revision: 0,
        event_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        type: 'EmployerRegistered',
        version: 1,
        recorded_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        data: {
          employer_id: seeded.employerId,
          tenant_id: seeded.tenantId,
          environment: 'live',
          legal_name: seeded.employerName,
          fein: MASK,
          fein_notation: 'employer',
          address: MASK,
          contact_email: MASK,
          payroll_company_ids: [seeded.payrollCompanyId],
        },
        metadata: expect.objectContaining({
          tenant_id: seeded.tenantId,
          environment: 'live',
          actor: { type: 'operator', id: 'operator' },
          schema_version: 1,
          hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        }),
        leaf_hash: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
      },
    ])
    expect(body.pagination).toEqual({ next: null })
  })

  test('opens personal fields with reveal, after that was recorded', async () => {
    const { body } = await ops('GET', `/streams/employer-${seeded.employerId}?reveal=true`)
    expect(body.data[0].data).toMatchObject({ fein: seeded.fein, contact_email: 'payroll@bakery.example' })
    expect(JSON.parse(body.data[0].data.address)).toMatchObject({ city: 'Reno' })
    const { data, metadata } = await lastAction()
    expect(data).toEqual({
      action: 'reveal',
      target: `employer-${seeded.employerId}`,
      details: { from: 0, limit: 100, values: 3 },
    })
    expect(metadata.actor).toEqual({ type: 'operator', id: 'operator' })
  })

  test('hides hashes of secrets', async () => {
    const { body } = await ops('GET', `/streams/apiClient-${seeded.clientId}`)
    expect(body.data[0].data.secret_hash).toBe(MASK)
  })

  test('is paged: from, limit, next', async () => {
    const { policyId } = seeded
    for (const payroll_frequency of ['MONTHLY', 'BIWEEKLY', 'WEEKLY']) {
      await operate(service, 'PATCH', `/policies/${policyId}`, { payroll_frequency })
    }
    const revisions: number[] = []
    let from: number | null = 0
    while (from !== null) {
      const { body }: Answer = await ops('GET', `/streams/policy-${policyId}?from=${from}&limit=2`)
      expect(body.data.length).toBeLessThanOrEqual(2)
      revisions.push(...body.data.map(({ revision }: { revision: number }) => revision))
      from = body.pagination.next
    }
    expect(revisions).toEqual([0, 1, 2, 3])
    const typed = await ops('GET', `/streams/policy-${policyId}?type=PolicyTermsChanged`)
    expect(typed.body.data).toHaveLength(3)
  })

  test.each(['employer-ffffffffffffffffffffffff', 'nonsense'])(
    '%s that is none is not verified',
    async (stream) => {
      expect((await ops('POST', '/audit/verify', { stream })).status).toBe(404)
    },
  )
})

test.each([
  '/tenants?page=%00',
  '/employers?tenant_id=%00',
  '/carriers?environment=%00',
  '/policies?employer_id=%00',
  '/policies?employer_id=aaaaaaaaaaaaaaaaaaaaaaaa%00',
  '/api-clients?tenant_id=%00',
  '/events?correlation_id=%00',
])('%s is no reason to fail', async (path) => {
  const { status } = await ops('GET', path)
  expect([status, status < 500]).toEqual([expect.any(Number), true])
})

describe('the log', () => {
  test('is walked in order to its end, nothing twice, nothing left out', async () => {
    const positions: bigint[] = []
    let from: string | null = '0'
    while (from !== null) {
      const { body }: Answer = await ops('GET', `/events?from=${from}&limit=3`)
      positions.push(...body.data.map((event: { position: string }) => BigInt(event.position)))
      from = body.pagination.next
    }
    const whole = await ops('GET', '/events?limit=100000')
    expect(positions).toEqual(whole.body.data.map((event: { position: string }) => BigInt(event.position)))
    expect(positions).toEqual([...positions].sort((a, b) => (a < b ? -1 : 1)))
    expect(whole.body.pagination.next).toBeNull()
  })

  test('is narrowed to a tenant, a type, or what one request caused', async () => {
    const other = await seedTenant(service)
    const byTenant = await ops('GET', `/events?tenant_id=${other.tenantId}&limit=1000`)
    const tenants = new Set(
      byTenant.body.data.map((event: { metadata: { tenant_id: string } }) => event.metadata.tenant_id),
    )
    expect([...tenants]).toEqual([other.tenantId])
    expect(byTenant.body.data.length).toBeGreaterThanOrEqual(7)

    const name = { name: 'Correlated' }
    const created = await ops('POST', '/tenants', name, { 'X-Request-Id': 'audit-request-1' })
    expect(created.headers.get('x-request-id')).toBe('audit-request-1')
    const caused = await ops('GET', '/events?correlation_id=audit-request-1')
    expect(caused.body.data).toMatchObject([{ type: 'TenantRegistered', data: name }])
    const typed = await ops('GET', '/events?type=CarrierRegistered')
    expect(new Set(typed.body.data.map((event: { type: string }) => event.type))).toEqual(
      new Set(['CarrierRegistered']),
    )
  })
})

describe('events', () => {
  type Shown = { type: string; position: string; recorded_at: string; metadata: { actor: { id: string } } }
  const list = async (query: string): Promise<Shown[]> => {
    const { status, body } = await ops('GET', `/events?limit=1000&${query}`)
    expect(status).toBe(200)
    return body.data
  }

  test('are found by who caused them, by whom they are about, and by when', async () => {
    const tenant = await seedTenant(service)
    const { now } = await operate(service, 'POST', '/clock/advance', { seconds: 3600 })
    const { body } = await report(service, tenant, { employees: [employeeRecord({ first_name: 'Timely' })] })
    await operate(service, 'POST', '/clock/advance', { seconds: 3600 })
    await operate(service, 'PATCH', `/policies/${tenant.policyId}`, { payroll_frequency: 'MONTHLY' })

    const byPartner = await list(`actor=${tenant.clientId}`)
    expect(byPartner.map(({ type }) => type)).toContain('PayrollFileReceived')
    expect(await list(`actor=api_client/${tenant.clientId}`)).toEqual(byPartner)
    const byKind = await list('actor=api_client')
    expect(byKind).toEqual(expect.arrayContaining(byPartner))
    expect(await list(`actor=operator/${tenant.clientId}`)).toEqual([])

    const { data_subject } = await operate(service, 'GET', `/employers/${tenant.employerId}`)
    const ofEmployer = await list(`subject=${data_subject}`)
    expect(ofEmployer.map(({ type }) => type)).toEqual(['EmployerRegistered'])

    const whole = await list('')
    const [from, to] = [now, new Date(Date.parse(now) + 1000).toISOString()]
    const within = whole.filter(({ recorded_at }) => recorded_at >= from && recorded_at <= to)
    expect(within.map(({ type }) => type)).toContain('PayrollFileProcessed')
    expect(await list(`from_time=${from}&to_time=${to}`)).toEqual(within)
    const since = whole.filter(({ recorded_at }) => recorded_at >= from)
    expect(await list(`from_time=${from}`)).toEqual(since)
    const last = await ops('GET', `/events?from_time=${from}&limit=1000`)
    expect(last.body.pagination).toEqual({ next: null, read_to: whole.at(-1)!.position })

    const stream = await ops('GET', `/streams/payrollFile-${body.file_id}?actor=operator`)
    expect(stream.body.data).toEqual([])
    const timely = await ops('GET', `/streams/policy-${tenant.policyId}?from_time=${to}`)
    expect(timely.body.data).toMatchObject([{ type: 'PolicyTermsChanged' }])
  })

  test.each([
    ['actor', 'actor=%00'],
    ['to_time', 'from_time=2026-02-01T00:00:00Z&to_time=2026-01-01T00:00:00Z'],
  ])('are not looked for by a wrong %s: %s', async (field, query) => {
    for (const path of ['/events', `/streams/policy-${seeded.policyId}`]) {
      expect(await ops('GET', `${path}?${query}`)).toMatchObject({ status: 400, body: { field } })
    }
  })
})

describe('a story', () => {
  const kinds = ['policy', 'employer', 'file', 'link', 'session', 'debit', 'subscription', 'webhook']
  test.each(kinds)('of a %s that is none is 404', async (kind) => {
    const message = 'There is no such thing, or there was none at that point'
    const answer = await ops('GET', `/stories/${kind}/${'f'.repeat(24)}`)
    expect(answer).toMatchObject({ status: 404, body: { message } })
  })

  test.each([
    ['position', 'position=1&as_of=2026-01-31T12:00:00Z'],
    ['since_position', 'since_position=1&since=2026-01-31T12:00:00Z'],
  ])('with a wrong %s is refused: %s', async (field, query) => {
    const answer = await ops('GET', `/stories/policy/${seeded.policyId}?${query}`)
    expect(answer).toMatchObject({ status: 400, body: { field } })
  })
})

describe('the state of a stream', () => {
  test('is shown as of a revision or a time, personal fields masked', async () => {
    const { employerId } = await seedEmployer(service, seeded)
    const stream = `/streams/employer-${employerId}/state`
    const { now: before } = await operate(service, 'GET', '/clock')
    await operate(service, 'POST', '/clock/advance', { seconds: 60 })
    await operate(service, 'PATCH', `/employers/${employerId}`, { legal_name: 'Renamed' })

    const present = await ops('GET', stream)
    expect(present.body.data).toMatchObject({ revision: 1, state: { legal_name: 'Renamed', fein: MASK } })
    const byRevision = await ops('GET', `${stream}?revision=0`)
    expect(byRevision.body.data).toMatchObject({ revision: 0, state: { legal_name: 'Seeded Bakery LLC' } })
    const byTime = await ops('GET', `${stream}?as_of=${before}`)
    expect(byTime.body.data).toMatchObject({ revision: 0, recorded_at: before })
    const earlier = await ops('GET', `${stream}?as_of=2020-01-01T00:00:00%2B02:00`)
    expect(earlier.status).toBe(404)
    expect((await ops('GET', `${stream}?revision=0&as_of=${before}`)).status).toBe(400)
  })
})

describe('the hash chains', () => {
  test('are answered with what an auditor keeps: how many events there are, the head, the last hash', async () => {
    const events = (await ops('GET', '/events?limit=1000')).body.data
    const last = events.at(-1)
    const whole = await ops('POST', '/audit/verify')
    expect(whole.body.data).toEqual({
      verified: true,
      events: events.length,
      streams: new Set(events.map(({ stream }: { stream: string }) => stream)).size,
      up_to: last.position,
      last_hash: last.metadata.hash,
      head: last.position,
      checkpoints: expect.any(Number),
      witnesses: [],
      root_hash: expect.stringMatching(/^[\w+/]{43}=$/),
      first_problem: null,
    })
    expect(whole.body.data.events).toBeGreaterThan(whole.body.data.streams)
    const stream = `policy-${seeded.policyId}`
    const lastOfIt = events.filter((event: { stream: string }) => event.stream === stream).at(-1)
    expect((await ops('POST', '/audit/verify', { stream })).body.data).toMatchObject({
      verified: true,
      streams: 1,
      events: lastOfIt.revision + 1,
      up_to: lastOfIt.position,
      last_hash: lastOfIt.metadata.hash,
      head: last.position,
    })
  })
})

describe('an erasure', () => {
  test('makes a person unreadable everywhere, and the chains still hold', async () => {
    const tenant = await seedTenant(service)
    const answer = await report(service, tenant, {
      // the columns of a row may have shifted
      employees: [
        employeeRecord({ first_name: 'Forgettable', class_code: 'Forgettable', state: 'Forgettable' }),
      ],
    })
    const fileId = answer.body.file_id
    expect((await ops('GET', `/streams/payrollFile-${fileId}`)).text).not.toContain('Forgettable')
    const sync = await send(`${service.coreUrl}/api/v1/employees/sync`, {
      method: 'POST',
      headers: tenant.clientHeaders,
      body: {
        employer_id: tenant.employerId,
        employees: [
          { employee_id: 'E-1', action: 'hire', name: 'Forgettable Baker', hire_date: '2026-01-01' },
          { employee_id: 'E-2', action: 'hire', name: 'Kept Cook', hire_date: '2026-01-02' },
        ],
      },
    })
    expect(sync.status).toBe(202)

    const register = `/employers/${tenant.employerId}/register`
    const masked = await ops('GET', register)
    expect(masked.body.data.map((row: { record: unknown }) => row.record)).toEqual([MASK, MASK])
    expect(masked.body.pagination.total).toBe(2)
    const revealed = await ops('GET', `${register}?reveal=true`)
    expect(await lastAction()).toMatchObject({
      data: { action: 'reveal', target: `employer-${tenant.employerId}/register` },
    })
    const person = revealed.body.data.find(
      (row: { record: { employee_id: string } }) => row.record.employee_id === 'E-1',
    )
    expect(person).toMatchObject({
      subject: expect.stringMatching(/^person\/[0-9a-f]{24}$/),
      status: 'employed',
      hire_date: '2026-01-01',
      record: { name: 'Forgettable Baker' },
    })
    // the same person in the rows of the file, and in what phase 1 said of it
    const file = await ops('GET', `/streams/payrollFile-${fileId}?reveal=true`)
    const namesIn = (type: string, list: string) => {
      const event = file.body.data.find((one: { type: string }) => one.type === type)
      return JSON.parse({ ...event.data, ...event.data.validation }[list][0].person).first_name
    }
    expect(namesIn('PayrollFileReceived', 'rows')).toBe('Forgettable')
    expect(namesIn('PayrollFileProcessed', 'failures')).toBe('Forgettable')

    const before = await erasures()
    const dry = await ops('POST', '/erasures', { subject: person.subject, dry_run: true })
    expect([dry.status, dry.body.data]).toEqual([
      200,
      { subject: person.subject, subjects: [person.subject], data_keys: 1, erased: false, dry_run: true },
    ])
    expect(await erasures()).toEqual(before)
    const erased = await ops('POST', '/erasures', { subject: person.subject })
    expect([erased.status, erased.body.data]).toEqual([
      201,
      { subject: person.subject, subjects: [person.subject], erased: true },
    ])
    expect((await ops('POST', '/erasures', { subject: person.subject })).status).toBe(201)

    const after = await ops('GET', `${register}?reveal=true`)
    const records = after.body.data.map((row: { record: unknown }) => row.record)
    expect(records).toContain('(erased)')
    expect(records).toContainEqual(expect.objectContaining({ name: 'Kept Cook' }))
    const stream = await ops('GET', `/streams/payrollFile-${fileId}?reveal=true`)
    expect(stream.text).not.toContain('Forgettable')
    expect(stream.text).toContain('(erased)')
    expect((await ops('POST', '/audit/verify')).body.data.verified).toBe(true)
    const recorded = await ops('GET', '/events?type=PersonalDataErased')
    expect(recorded.body.data.at(-1)).toMatchObject({ data: { subject: person.subject } })
  })

  test('finds a person by what the reports of an employer say', async () => {
    const tenant = await seedTenant(service)
    const rows = [
      { employee_id: 'E-7', first_name: 'Byid' },
      { ssn: '123-45-6789', first_name: 'Byssn' },
      { first_name: 'By', last_name: 'Name' },
      { first_name: 'Somebody', last_name: 'Else' },
    ].map((person) => ({ ...person, class_code: '8810', state: 'CA', gross_wages: 100 }))
    const { body } = await report(service, tenant, { employees: rows })
    const seen = async () => {
      const { body: shown } = await ops('GET', `/streams/payrollFile-${body.file_id}?reveal=true`)
      const recorded = shown.data.find((event: { type: string }) => event.type === 'PayrollFileReceived')
      return recorded.data.rows.map(({ person }: { person: string }) =>
        person === '(erased)' ? person : JSON.parse(person).first_name,
      )
    }
    expect(await seen()).toEqual(['Byid', 'Byssn', 'By', 'Somebody'])
    const person = { employer_id: tenant.employerId, employee_id: ' E-7', ssn: '123456789' }
    const erased = await ops('POST', '/erasures', { ...person, first_name: 'BY', last_name: 'name' })
    expect([erased.status, erased.body.data.subjects.length]).toEqual([201, 3])
    expect(await seen()).toEqual(['(erased)', '(erased)', '(erased)', 'Somebody'])

    const some = await ops('POST', '/erasures', {
      ...person,
      employee_id: 'E-unheard-of',
      ssn: '123-45-6789',
    })
    expect([some.status, some.body.data.subjects.length]).toEqual([201, 1])

    const { employer_id } = person
    const recorded = await erasures()
    for (const unknown of [
      { employer_id, ssn: '999-99-9999', employee_id: 'E-99' },
      { subject: `person/${'a'.repeat(24)}` },
      { subject: `employer/${'a'.repeat(24)}` },
    ]) {
      const { status, body } = await ops('POST', '/erasures', unknown)
      const error = expect.objectContaining({
        ok: false,
        error: 'Not Found',
        message: 'No such data subject',
      })
      expect([status, body]).toEqual([404, error])
    }
    expect(await erasures()).toEqual(recorded)
    for (const [wrong, code] of [
      [{}, 400],
      [{ subject: 'dog/aaaaaaaaaaaaaaaaaaaaaaaa' }, 400],
      [{ employer_id }, 400],
      [{ employer_id, subject: 'person/aaaaaaaaaaaaaaaaaaaaaaaa' }, 400],
      [{ employer_id: 'f'.repeat(24), employee_id: 'E-7' }, 404],
      [{ connection_id: 'f'.repeat(24) }, 404],
      [{ connection_id: 'f'.repeat(24), carrier_id: tenant.carrierId }, 400],
      // it has no ACH account
      [{ carrier_id: tenant.carrierId }, 404],
    ] as const) {
      expect((await ops('POST', '/erasures', wrong)).status).toBe(code)
    }
  })

  test('makes an employer unreadable; its FEIN stays taken', async () => {
    const { employerId, fein } = await seedEmployer(service, seeded)
    const { data_subject } = await operate(service, 'GET', `/employers/${employerId}`)
    await operate(service, 'POST', '/erasures', { subject: data_subject })
    const shown = await operate(service, 'GET', `/employers/${employerId}`)
    expect(shown).toMatchObject({ fein: '(erased)', address: '(erased)', contact_email: '(erased)' })
    const again = { tenant_id: seeded.tenantId, legal_name: 'A', fein }
    expect((await ops('POST', '/employers', again)).status).toBe(409)
  })
})

// integration/installation/lost-events has how it is told and taken up again; EventStoreDB's is in backup-restore-eventstoredb, too
describe.skipIf(isLogInEventStore)(
  'a log that lost its newest events under the service, as by a fail-over',
  { tags: 'long' },
  () => {
    test('ends it with one line, and the next start says what was lost and reads the log anew', async () => {
      const employers = async () => (await ops('GET', '/employers?limit=200')).body.data
      const before = await employers()
      const { head } = (await ops('POST', '/audit/verify')).body.data
      const lost = await seedTenant(service)
      await ops('POST', '/drain')
      expect(JSON.stringify(await employers())).toContain(lost.employerId)

      const client = new pg.Client(database.url)
      await client.connect()
      await client.query('ALTER TABLE event_log.events DISABLE TRIGGER ALL')
      await client.query('DELETE FROM event_log.events WHERE position > $1', [head])
      await client.query('ALTER TABLE event_log.events ENABLE TRIGGER ALL')
      await client.end()
      await until(() => service.process.exitCode !== null)
      expect(service.process.exitCode).toBe(1)
      const said = service.output.filter((line) => line.includes('service failed'))
      expect(said).toHaveLength(1)
      expect(said[0]).toMatch(
        /The event log went back: the event that was read at position \d+ does not stand there/,
      )

      service = await restart()
      const told = service.output.filter((line) => line.includes('events lost')).join('\n')
      expect(told).toMatch(/ends at \d+ and had been read up to \d+: about \d+ events are lost/)
      for (const reader of ['employers', 'employee-register', 'payroll-pipeline', 'webhook-deliveries']) {
        expect(told).toMatch(new RegExp(`(built anew|going on from position \\d+): [^"]*\\b${reader}\\b`))
      }
      expect((await ops('POST', '/audit/verify')).body.data).toMatchObject({ verified: true })
      await ops('POST', '/drain')
      expect(await employers()).toEqual(before)
      await seedTenant(service)
    })
  },
)

// the last tests of the file: the log is not what it was afterwards
describe.skipIf(isLogInEventStore)('a changed log, in PostgreSQL', () => {
  const tamper = async (statement: string, values: unknown[] = []) => {
    const client = new pg.Client(database.url)
    await client.connect()
    try {
      await client.query('ALTER TABLE event_log.events DISABLE TRIGGER ALL')
      expect((await client.query(statement, values)).rowCount).toBeGreaterThan(0)
    } finally {
      await client.end()
    }
  }

  test('is found by its hash chains, with the place', async () => {
    await tamper(
      `UPDATE event_log.events SET data = replace(data::text, 'Renamed', 'Forged')::json
       WHERE type = 'EmployerDetailsChanged'`,
    )
    const { status, body } = await ops('POST', '/audit/verify')
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      verified: false,
      first_problem: { problem: 'hash_mismatch', revision: 1, stream: expect.stringMatching(/^employer-/) },
    })
    const { stream } = body.data.first_problem
    expect((await ops('POST', '/audit/verify', { stream })).body.data.verified).toBe(false)
  })

  test('is found when an event was taken out', async () => {
    const stream = `policy-${seeded.policyId}`
    await tamper('DELETE FROM event_log.events WHERE stream = $1 AND revision = 1', [stream])
    expect((await ops('POST', '/audit/verify', { stream })).body.data).toMatchObject({
      verified: false,
      first_problem: { problem: 'missing_events', revision: 2, stream },
    })
  })
})
