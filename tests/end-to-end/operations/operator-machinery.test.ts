import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { schemaName } from '../../../infrastructure/read-models/tables.ts'
import { cli, expectRefused } from '../../support/cli.ts'
import { ConsoleVisitor, proofIn } from '../../support/console.ts'
import { employeeRecord, report, status } from '../../support/core.ts'
import { askOperator, operate, type SeededTenant, seedEmployer, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { until } from '../../support/workbench.ts'

let service: RunningService
let seeded: SeededTenant

beforeAll(async () => {
  service = await startService()
  seeded = await seedTenant(service)
})
afterAll(() => service?.stop())

const ops = (method: string, path: string, body?: unknown) => askOperator(service, method, path, body)

async function actions(): Promise<string[]> {
  const { body } = await ops('GET', '/events?type=OperatorActed&limit=1000')
  return body.data.map(
    ({ data }: { data: { action: string; target: string } }) => `${data.action} ${data.target}`,
  )
}

describe('faults', () => {
  test('hold the pipeline until they are cleared; drain waits for what is not held', async () => {
    expect((await ops('POST', '/faults', { point: 'pipeline', mode: 'hold' })).status).toBe(200)
    const { body } = await report(service, seeded, { employees: [employeeRecord()] })
    const held = await status(service, seeded, body.file_id)
    expect(held.body.phase_3?.status).not.toBe('complete')
    expect((await ops('POST', '/faults', { point: 'pipeline', times: 0 })).body.data).toEqual({
      point: 'pipeline',
      mode: null,
      times: 0,
    })
    const drained = await ops('POST', '/drain', { timeout_seconds: 150 })
    expect([drained.status, drained.body.data.drained]).toEqual([200, true])
    expect((await status(service, seeded, body.file_id)).body.phase_3.status).toBe('complete')
    expect(await actions()).toEqual(expect.arrayContaining(['inject-fault pipeline', 'clear-fault pipeline']))
  })
})

describe('draining', () => {
  test('is 504 in the envelope while a projection stands still', async () => {
    expect((await ops('POST', '/projections/employers/pause')).status).toBe(200)
    let renaming: Promise<unknown> | undefined
    try {
      // whoever asks for it waits for the projection
      renaming = operate(service, 'PATCH', `/employers/${seeded.employerId}`, { legal_name: 'Paused' })
      const drained = await vi.waitUntil(
        async () => {
          const answer = await ops('POST', '/drain', { timeout_seconds: 0 })
          return answer.status !== 200 && answer.body.message.includes('employers') && answer
        },
        { timeout: 240_000 },
      )
      expect([drained.status, drained.body.ok, drained.body.error]).toEqual([504, false, 'Gateway Timeout'])
    } finally {
      expect((await ops('POST', '/projections/employers/resume')).status).toBe(200)
      await renaming
    }
    expect((await ops('POST', '/drain', { timeout_seconds: 150 })).status).toBe(200)
  })

  test('is 504 while another process has a piece of work in hand', async () => {
    const client = new pg.Client(service.databaseUrl)
    await client.connect()
    try {
      await client.query(`
        INSERT INTO runtime.sessions (owner, lock) VALUES ('another process', nextval('runtime.session_locks'));
        SELECT pg_advisory_lock(1129270864, lock) FROM runtime.sessions WHERE owner = 'another process'`)
      await client.query(
        `INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, correlation_id, causation_id,
           lease_owner, lease_until, lease_token)
         VALUES ('payroll-pipeline', 'process-file', 'x', '{}', 0, 'leased', 'c', 'c',
           'another process', clock_timestamp() + interval '10 minutes', nextval('runtime.work_claims'))`,
      )
      expect((await ops('POST', '/drain', { timeout_seconds: 0 })).status).toBe(504)
    } finally {
      await client.query(`DELETE FROM runtime.work WHERE key = 'x'`)
      await client.end()
    }
  })
})

describe('projections', () => {
  test('are listed and shown with state, position and lag', async () => {
    await operate(service, 'POST', '/drain')
    const list = await operate(service, 'GET', '/projections')
    const names = list.map(({ name }: { name: string }) => name).sort()
    expect(names).toEqual(
      expect.arrayContaining([
        'agent-credentials',
        'employee-register',
        'employers',
        'payroll-files',
        'policies',
      ]),
    )
    for (const projection of list) {
      expect(projection).toMatchObject({ state: 'active', lag: { events: 0, seconds: 0 }, parked_streams: 0 })
    }
    const one = await operate(service, 'GET', '/projections/employers')
    expect(one).toMatchObject({ name: 'employers', parked: [], rebuild: null })
  })

  test('are rebuilt beside the live one, held back where rows differ, switched and rolled back', async () => {
    const path = '/projections/employers'
    const { employerId } = await seedEmployer(service, seeded)
    const listed = () => operate(service, 'GET', '/employers?limit=200')
    const before = await listed()
    const first = await operate(service, 'GET', path)

    const client = new pg.Client(service.databaseUrl)
    await client.connect()
    const schema = schemaName({ projection: 'employers', generation: first.generation })
    await client.query(
      `UPDATE "${schema}".employers SET legal_name = 'Written by hand' WHERE employer_id = '${employerId}'`,
    )
    await client.end()
    const started = await ops('POST', `${path}/rebuild`)
    expect(started.status).toBe(202)
    await until(async () => (await operate(service, 'GET', path)).rebuild?.comparison != null)
    const built = await operate(service, 'GET', path)
    expect(built.generation).toBe(first.generation)
    const { switch: next, comparison } = built.rebuild
    const { legal_name } = before.find((one: { employer_id: string }) => one.employer_id === employerId)
    const columns = [{ column: 'legal_name', live: 'Written by hand', shadow: legal_name }]
    const differences = [{ key: { employer_id: employerId }, missing_in: null, columns }]
    expect([next, comparison]).toMatchObject([
      'manual',
      { equal: false, tables: [{ table: 'employers', differing_rows: 1, differences }] },
    ])
    await operate(service, 'POST', '/drain')
    const alerts = await operate(service, 'GET', '/alerts?status=open')
    const about = { projection: 'employers', reason: 'rows_differ' }
    expect(alerts).toContainEqual(
      expect.objectContaining({ kind: 'rebuild_held_back', about: expect.objectContaining(about) }),
    )

    expect((await ops('POST', `${path}/switch`, { reason: 'The rebuilt name is right' })).status).toBe(200)
    const switched = await operate(service, 'GET', '/events?type=OperatorActed&limit=1000')
    const isSwitch = ({ data }: { data: { action: string } }) => data.action === 'switch'
    expect(switched.find(isSwitch).data.details).toEqual({
      reason: 'The rebuilt name is right',
      differing_tables: 'employers',
    })
    expect((await operate(service, 'GET', path)).generation).toBeGreaterThan(first.generation)
    expect(await listed()).toEqual(before)
    await operate(service, 'PATCH', `/employers/${employerId}`, { legal_name: 'After the switch' })

    expect((await ops('POST', `${path}/rollback`)).status).toBe(200)
    expect((await operate(service, 'GET', path)).generation).toBe(first.generation)
    await operate(service, 'POST', '/drain')
    expect((await listed())[0].legal_name).toBe('After the switch')
    expect((await ops('POST', `${path}/switch`)).status).toBe(409)
    expect(await actions()).toEqual(
      expect.arrayContaining(['rebuild employers', 'switch employers', 'rollback employers']),
    )
  })

  test('redrive nothing where nothing is dead-lettered; a dry run is not recorded', async () => {
    const dry = await ops('POST', '/projections/policies/redrive', { dry_run: true })
    expect([dry.status, dry.body.ok]).toEqual([200, true])
    expect(await actions()).not.toContain('redrive policies')
    expect((await ops('POST', '/projections/policies/redrive')).status).toBe(200)
    expect(await actions()).toContain('redrive policies')
  })
})

describe('dead letters', () => {
  const STREAM = () => `policy-${seeded.policyId}`
  const READERS = ['employers', 'payment-links', 'integration-events']
  const client = () => new pg.Client(service.databaseUrl)
  beforeAll(async () => {
    const sql = client()
    await sql.connect()
    await sql.query(
      `INSERT INTO runtime.parked_streams (projection, generation, stream, position, revision, type, category, message, attempts)
       SELECT projection, generation, $1, 1, 0, 'Elsewhere', 'handler', 'out of range', 3
       FROM runtime.projections WHERE projection = 'employers' AND role = 'live'`,
      [STREAM()],
    )
    await sql.query(
      `INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, attempts, last_error, correlation_id, causation_id, dead_lettered_at)
       SELECT name, '$stream', $1, '{"revision":0}', 0, 'failed', 3, 'broken', 'c', 'c', since
       FROM (VALUES ('payment-links', clock_timestamp()), ('integration-events', NULL)) AS of (name, since)`,
      [STREAM()],
    )
    await sql.end()
  })
  afterAll(async () => {
    const sql = client()
    await sql.connect()
    await sql.query(`DELETE FROM runtime.parked_streams; DELETE FROM runtime.work WHERE kind = '$stream'`)
    await sql.end()
  })
  const readersOf = async (query: string) =>
    (await operate(service, 'GET', `/dead-letters${query}`)).map(({ reader }: { reader: string }) => reader)

  test('of all readers are one list: stream, event, error, since when, and how much waits behind it', async () => {
    const events = await operate(service, 'GET', `/streams/${STREAM()}?limit=1000`)
    const [{ type, event_id }] = events
    const all = await operate(service, 'GET', '/dead-letters')
    expect(all.map(({ reader }: { reader: string }) => reader).sort()).toEqual([...READERS].sort())
    for (const one of all) {
      const waiting = events.length - 1
      expect(one).toMatchObject({ stream: STREAM(), revision: 0, type, event_id, attempts: 3, waiting })
    }
    const one = (reader: string) => all.find((each: { reader: string }) => each.reader === reader)
    const since = expect.stringMatching(/^20.*Z$/)
    expect(one('employers')).toMatchObject({
      kind: 'projection',
      generation: expect.any(Number),
      error: 'handler: out of range',
      since,
    })
    expect(one('payment-links')).toMatchObject({ kind: 'process_manager', generation: null, since })
    expect(one('integration-events')).toMatchObject({ kind: 'integration_events', since: null })
  })

  test('are narrowed by reader and kind, and come in pages', async () => {
    expect(await readersOf('?kind=process_manager')).toEqual(['payment-links'])
    expect(await readersOf('?reader=employers')).toEqual(['employers'])
    expect(await readersOf('?reader=employers&kind=integration_events')).toEqual([])
    const { body } = await ops('GET', '/dead-letters?limit=2&page=2')
    expect([body.data.length, body.pagination.total, body.pagination.has_more]).toEqual([1, 3, false])
    for (const [query, field] of [
      ['kind=queue', 'kind'],
      ['reader=%00', 'reader'],
    ]) {
      const refused = await ops('GET', `/dead-letters?${query}`)
      expect([refused.status, refused.body.field]).toEqual([400, field])
    }
  })

  test('of a reader that there never was are refused by all names, and those of one of an earlier release are there', async () => {
    const sql = client()
    await sql.connect()
    await sql.query(`
      INSERT INTO runtime.process_managers (name, position, epoch) VALUES ('couriers', 0, 0), ('heralds', 0, 0);
      INSERT INTO runtime.projections (projection, generation, version, role, state, epoch, shape, tables, auto_switch)
      VALUES ('ledgers', 1, 1, 'live', 'active', 0, '', '[]', true);
      INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, attempts, correlation_id, causation_id)
      VALUES ('couriers', '$stream', '${STREAM()}', '{"revision":0}', 0, 'failed', 3, 'c', 'c')`)
    onTestFinished(async () => {
      await sql.query(`
        DELETE FROM runtime.work WHERE process_manager = 'couriers';
        DELETE FROM runtime.process_managers WHERE name IN ('couriers', 'heralds');
        DELETE FROM runtime.projections WHERE projection = 'ledgers'`)
      await sql.end()
    })
    const ofThisRelease = async (reader: string) => expect(await readersOf(`?reader=${reader}`)).toEqual([])
    await ofThisRelease('payroll-files')
    await ofThisRelease('payroll-pipeline')
    expect(await readersOf('?reader=couriers')).toEqual(['couriers'])
    expect((await readersOf('')).sort()).toEqual([...READERS, 'couriers'].sort())
    expect(await readersOf('?reader=heralds')).toEqual([])
    expect(await readersOf('?reader=ledgers')).toEqual([])
    const refused = await ops('GET', '/dead-letters?reader=nobody')
    expect([refused.status, refused.body.code, refused.body.field]).toEqual([400, 'field_invalid', 'reader'])
    const [, names] = /^reader must be one of (.*)$/.exec(refused.body.message)!
    const known = ['couriers', 'employers', 'heralds', 'integration-events', 'ledgers', 'payment-links']
    expect(names!.split(', ')).toEqual([...new Set(names!.split(', '))].sort())
    expect(names!.split(', ')).toEqual(expect.arrayContaining(known))
    const listed = await cli(['dead-letters', 'list', '--reader', 'nobody'], {
      env: { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: service.operatorToken },
    })
    expectRefused(listed, /reader must be one of .*payment-links/)
    const visitor = new ConsoleVisitor(service)
    await visitor.signIn()
    expect((await visitor.get('/console/dead-letters?reader=nobody')).text).toContain('reader must be one of')
  })

  test('are tried again in the console by the reader that they wait for, after a dry run', async () => {
    const visitor = new ConsoleVisitor(service)
    await visitor.signIn()
    const { text } = await visitor.get('/console/dead-letters?kind=process_manager')
    const [dry] = /\/console\/actions\/redriveWork\?[^"]+dry_run=true/.exec(text)!
    const action = dry.replaceAll('&amp;', '&')
    const page = await visitor.get(action)
    expect(page.text).toContain('<button>Dry run</button>')
    const form = proofIn(page, action)
    const tried = (await visitor.ask('POST', action, { form })).text
    expect(tried).toMatch(/Redriven<\/dt><dd>1</)
    expect(tried).toMatch(/redriveWork\?[^"]*key=[^"]*">Retry</)
    expect((await visitor.get('/console/actions/redriveWork')).text).toContain(
      '<button>Retry all that failed</button>',
    )
    expect((await visitor.get('/console/dead-letters?kind=projection')).text).toContain(
      '/console/actions/redriveProjection?name=employers&amp;stream=policy-',
    )
    const overview = (await visitor.get('/console')).text
    const counted = /<strong>(\d+) <span[^<]*<\/span><\/strong><a href="\/console\/dead-letters">/.exec(
      overview,
    )
    expect(counted?.[1]).toBe('3')
  })
})

describe('work', () => {
  test('is shown, and redriven where it failed', async () => {
    await operate(service, 'POST', '/drain')
    const work = await operate(service, 'GET', '/work')
    expect(work).toMatchObject({ counts: { due: 0, leased: 0, failed: 0 }, unknown: [], failed: [] })
    const redriven = await ops('POST', '/work/redrive', { dry_run: true })
    expect(redriven.body.data).toEqual({ redriven: 0, dry_run: true })
    const partial = await ops('POST', '/work/redrive', { kind: 'advance' })
    expect([partial.status, partial.body.message]).toEqual([400, 'process_manager is required'])
  })

  test.each([
    ['/work/redrive', { process_manager: 'payment-link', kind: '$stream', key: 'policy-1' }],
    ['/work/discard', { process_manager: 'employers', kind: 'telegram' }],
  ])(
    'is not touched by %s of a process manager that there never was: the refusal names all',
    async (path, body) => {
      const { status, body: told } = await ops('POST', path, body)
      expect([status, told.field]).toEqual([400, 'process_manager'])
      expect(told.message).toMatch(/^process_manager must be one of .*integration-events, .*payment-links, /)
      expect(told.message).not.toMatch(/ employers,/)
      expect(await actions()).not.toContain(`${path.slice(6)} ${body.process_manager}/${body.kind}`)
    },
  )

  test('is discarded only where the release has no such kind', async () => {
    const discard = (kind: string, more: object = {}) =>
      ops('POST', '/work/discard', { process_manager: 'payroll-pipeline', kind, ...more })
    expect((await discard('telegram', { dry_run: true })).body.data).toEqual({ discarded: 0, dry_run: true })
    expect(await actions()).not.toContain('discard payroll-pipeline/telegram')
    expect((await discard('telegram')).body.data).toEqual({ discarded: 0, dry_run: false })
    expect(await actions()).toContain('discard payroll-pipeline/telegram')
    const known = await discard('process-file')
    expect([known.status, known.body.message]).toEqual([
      409,
      expect.stringMatching(/^Work of payroll-pipeline\/process-file is done by this release/),
    ])
    expect(await actions()).not.toContain('discard payroll-pipeline/process-file')
  })
})
