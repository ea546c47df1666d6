import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createLogger } from '../../../infrastructure/telemetry/logger.ts'
import { Metrics } from '../../../infrastructure/telemetry/metrics.ts'
import { mask, type SafeFields } from '../../../infrastructure/telemetry/redaction.ts'

function captured(level: 'debug' | 'info' = 'debug') {
  const lines: string[] = []
  const logger = createLogger(level, { write: (line) => void lines.push(line) })
  return { logger, lines, last: () => JSON.parse(lines.at(-1)!) as Record<string, unknown> }
}

describe('log lines', () => {
  test('are JSON with level, time, event and fields, one line each', () => {
    const { logger, lines, last } = captured()
    logger.info('ready', { mcp: 'http://127.0.0.1:4001', data_keys: 12n, secrets: 3.5 })
    expect(lines[0]).toMatch(/^\{[^\n]+\}\n$/)
    expect(lines[0]).toContain('"ready"')
    expect(last()).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      event: 'ready',
      mcp: 'http://127.0.0.1:4001',
      data_keys: '12',
      secrets: 3.5,
    })
  })

  test('below the level nothing is written', () => {
    const { logger, lines } = captured('info')
    logger.debug('detail', { secrets: 1 })
    expect(lines).toEqual([])
  })

  test('drop every field that is not known to be safe, and every object', () => {
    const { logger, last } = captured()
    const careless = {
      request_id: 'r1',
      ssn: '123-45-6789',
      employee: { first_name: 'Ada' },
      first_name: 'Ada',
      body: 'Ada',
      authorization: 'Bearer x',
      secrets: { toJSON: () => 'Ada' },
    } as unknown as SafeFields
    logger.info('rows stored', careless)
    expect(last()).toEqual({ level: 'info', time: expect.anything(), event: 'rows stored', request_id: 'r1' })
  })

  test.each([
    ['mcp_Zm9vYmFy0123456789', 'mcp_***'],
    ['op_0123456789abcdef0123456789abcdef', 'op_***'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_***'],
    ['key=whsec_QUJDRA/+ghIJ==, next', 'key=whsec_***, next'],
    ['whin_0123456789abcdef0123456789abcdef', 'whin_***'],
    ['WEBHOOK_whin_abcdefabcdef', 'WEBHOOK_whin_***'],
    ['service_live_sec_0123456789abcdef', 'service_live_sec_***'],
    ['secret service_test_sec_abcdefabcdef.', 'secret service_test_sec_***.'],
    ['service_live_cli_0123456789abcdef', 'service_live_cli_0123456789abcdef'],
    ['Authorization: Bearer abc.def.ghi', 'Authorization: Bearer ***'],
    ['postgresql://compstream:pa55@127.0.0.1:5432/x', 'postgresql://***@127.0.0.1:5432/x'],
    ['ssn 123-45-6789 of 12-3456789', 'ssn *** of ***'],
    ['routing 021000021', 'routing ***'],
    ['mail ada.baker@example.com now', 'mail *** now'],
    ['sld1.person/0a1b.AAECAwQFBgcICQ', 'sld1.person/0a1b.***'],
    ['payrollFile-65a1b2c3d4e5f60718293a4b', 'payrollFile-65a1b2c3d4e5f60718293a4b'],
    ['http://127.0.0.1:4001/api/v1/agents', 'http://127.0.0.1:4001/api/v1/agents'],
    ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.678Z'],
  ])('mask what looks secret or personal: %s', (text, expected) => {
    expect(mask(text)).toBe(expected)
    const { logger, last } = captured()
    logger.info('noted', { text })
    expect(last().text).toBe(expected)
  })

  test('ids are shown as they are, though their digits look like a number of a bank or a person', () => {
    const { logger, last } = captured()
    const ids = {
      correlation_id: '0a1b2c3d-021000021-4e5f6071'.replaceAll('-', 'a').slice(0, 24),
      trace_id: 'a021000021b021000021c021000021de',
      key: '021000021',
    }
    logger.info('work retried', ids)
    expect(last()).toMatchObject({ ...ids, key: '***' })
  })

  test('a text is bounded', () => {
    expect(mask('x'.repeat(100_000)).length).toBeLessThan(400)
  })
})

describe('errors in log lines', () => {
  function logged(error: unknown): string {
    const { logger, lines } = captured()
    logger.error('failed', { reason: 'test' }, error)
    return lines[0]!
  }

  test('of the database keep code and names, and nothing that quotes data', () => {
    const error = Object.assign(new pg.DatabaseError('duplicate key: Ada Baker', 100, 'error'), {
      code: '23505',
      severity: 'ERROR',
      detail: 'Key (ssn)=(123-45-6789) already exists.',
      where: 'COPY x, line 1: "Ada"',
      hint: 'Ada',
      internalQuery: "select 'Ada'",
      parameters: ['Ada'],
      query: "insert into x values ('Ada')",
      table: 'events',
      schema: 'event_log',
      constraint: 'events_pkey',
    })
    const line = logged(error)
    expect(line).not.toMatch(/Ada|6789|insert|select/)
    expect(JSON.parse(line).error).toMatchObject({
      class: 'DatabaseError',
      code: '23505',
      table: 'events',
      schema: 'event_log',
      constraint: 'events_pkey',
      stack: expect.arrayContaining([expect.stringMatching(/^at .*redaction\.test\.ts:\d+/)]),
    })
  })

  test('keep the class, the code and our own words, without quoted parts', () => {
    const error = Object.assign(new RangeError('no file "Ada Baker" of \'Bo\' at `Cy` in 3 ms\nAda'), {
      code: 'E1',
    })
    const { error: shown } = JSON.parse(logged(error))
    expect(shown).toMatchObject({
      class: 'RangeError',
      code: 'E1',
      message: 'no file "…" of \'…\' at `…` in 3 ms',
    })
    expect(JSON.stringify(shown)).not.toContain('Ada')
  })

  test('of JSON and of schemas say where, not what', () => {
    let syntax: unknown
    try {
      JSON.parse('{"ssn": Ada}')
    } catch (error) {
      syntax = error
    }
    expect(logged(syntax)).not.toContain('Ada')
    const parsed = z
      .object({ rows: z.array(z.object({ wages: z.literal(5) })) })
      .safeParse({ rows: [{ wages: 'Ada' }] })
    const line = logged(parsed.error)
    expect(line).not.toContain('Ada')
    expect(JSON.parse(line).error.issues).toEqual(['rows.0.wages: invalid_value'])
  })

  test('show causes and parts, and survive what is no error', () => {
    const failure = new Error('outer', {
      cause: new AggregateError([new TypeError('inner "Ada"')], 'several'),
    })
    const { error } = JSON.parse(logged(failure))
    expect(error.cause.errors[0]).toMatchObject({ class: 'TypeError', message: 'inner "…"' })
    expect(JSON.parse(logged('Ada')).error).toEqual({ class: 'string' })
    expect(JSON.parse(logged(null)).error).toEqual({ class: 'null' })
    const circular = new Error('round')
    circular.cause = circular
    expect(JSON.parse(logged(circular)).error.cause.class).toBe('Error')
  })

  test('their stacks hold no message, however it is broken into lines', () => {
    const line = logged(new Error('first\n    at Ada Baker, 1 Main Street\nAda'))
    expect(line).not.toContain('Ada')
  })
})

describe('metrics', () => {
  test('count requests by pattern and status, in seconds', async () => {
    const metrics = new Metrics({ process: false })
    metrics.request('core', 'POST', '/api/v1/payroll-reports', 201, 2)
    metrics.request('core', 'POST', '/api/v1/payroll-reports', 201, 250)
    metrics.request('core', 'POST', '/api/v1/payroll-reports', 401, 1)
    const text = await metrics.text()
    const labels = 'interface="core",method="POST",route="/api/v1/payroll-reports"'
    expect(text).toContain(`compstream_http_request_duration_seconds_count{${labels},status="201"} 2`)
    expect(text).toContain(
      `compstream_http_request_duration_seconds_bucket{le="0.025",${labels},status="201"} 1`,
    )
    expect(text).toMatch(/_sum\{.*status="201"\} 0\.252\n/)
    expect(text).toContain(`_count{${labels},status="401"} 1`)
  })

  const POLICIES = {
    name: 'policies',
    state: 'active',
    owner: 'a process',
    lag: { events: 3, seconds: 0.5 },
    parked_streams: 1,
    rebuild: { position: 30, head: 120, events_left: 90 },
  }

  test('show projections, work and the log, refreshed when read', async () => {
    const metrics = new Metrics({ process: false })
    metrics.append(7, 4)
    metrics.page('policies', 25, 3)
    metrics.page('policies', 5, 3)
    metrics.worked('webhooks', 'done')
    metrics.leaseLost()
    metrics.statement('policies/1/write/p0', 250)
    metrics.statement('policies/2/write/p0r0', 500)
    metrics.watch({ pools: () => [{ name: 'background', inUse: 3, waiting: 7 }], appends: () => 2 })
    metrics.refreshOnRead(async () => {
      metrics.projections([POLICIES])
      metrics.processManagers([
        { name: 'webhooks', state: 'idle', lag: { events: 8, seconds: 2 }, deadLetteredStreams: 1 },
      ])
      metrics.work('webhooks', { due: 2, failed: 1, leased: 4, oldestDueMs: 1_500 })
    })
    metrics.refreshOnRead(() => {
      throw new Error('the database is away')
    })
    const text = await metrics.text()
    for (const line of [
      'compstream_log_append_batch_events_sum 7',
      'compstream_projection_events_total{projection="policies"} 30',
      'compstream_projection_pages_total{projection="policies"} 2',
      'compstream_projection_lag_events{projection="policies"} 3',
      'compstream_projection_lag_seconds{projection="policies"} 0.5',
      'compstream_projection_up{projection="policies"} 1',
      'compstream_process_manager_up{process_manager="webhooks"} 0',
      'compstream_process_manager_lag_events{process_manager="webhooks"} 8',
      'compstream_process_manager_lag_seconds{process_manager="webhooks"} 2',
      'compstream_dead_lettered_streams{reader="policies"} 1',
      'compstream_parked_streams{reader="policies"} 1',
      'compstream_work_due{queue="webhooks"} 2',
      'compstream_work_failed{queue="webhooks"} 1',
      'compstream_work_leased{queue="webhooks"} 4',
      'compstream_work_oldest_due_seconds{queue="webhooks"} 1.5',
      'compstream_projection_rebuild_progress{projection="policies"} 0.25',
      'compstream_projection_rebuild_events_left{projection="policies"} 90',
      'compstream_database_pool_in_use{pool="background"} 3',
      'compstream_database_pool_waiting{pool="background"} 7',
      'compstream_database_statements_total{statement="policies/write"} 2',
      'compstream_database_statement_seconds_total{statement="policies/write"} 0.75',
      'compstream_log_appends_waiting 2',
      'compstream_leases_lost_total 1',
      'compstream_work_total{queue="webhooks",outcome="done"} 1',
    ]) {
      expect(text).toContain(line)
    }
    expect(metrics.contentType).toContain('text/plain')
  })

  test('have no figure, rather than an old one, of what is not known', async () => {
    const metrics = new Metrics({ process: false })
    metrics.projections([POLICIES])
    metrics.processManagers([
      { name: 'webhooks', state: 'idle', lag: { events: 8, seconds: 2 }, deadLetteredStreams: 1 },
    ])
    metrics.work('webhooks', { due: 2, failed: 1, leased: 4, oldestDueMs: 1_500 })
    metrics.integrationEventsBehind(5)
    const figures = async () =>
      (await metrics.text()).match(
        /^compstream_(projection_lag|projection_up|projection_rebuild|process_manager|dead_lettered|work|integration_events_behind)\S* \S+$/gm,
      )
    expect(await figures()).toHaveLength(15)
    metrics.projections(null)
    metrics.processManagers(null)
    metrics.work('webhooks', null)
    metrics.integrationEventsBehind(null)
    expect(await figures()).toBeNull()
    metrics.integrationEventsBehind(6)
    expect(await figures()).toEqual(['compstream_integration_events_behind 6'])
  })

  test('tell of the process and stay apart from those of other services', async () => {
    const [one, two] = [new Metrics(), new Metrics()]
    one.worked('q', 'done')
    expect(await one.text()).toMatch(/compstream_process_resident_memory_bytes \d+/)
    expect(await one.text()).toContain('compstream_nodejs_eventloop_lag_seconds')
    expect(await two.text()).not.toContain('queue="q"')
  })
})
