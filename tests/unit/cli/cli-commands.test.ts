import type { Server } from 'node:http'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { follow } from '../../../interfaces/cli/follow-events.ts'
import { OperatorClient } from '../../../interfaces/cli/operator-client.ts'
import { fieldsOf, optionsOf } from '../../../interfaces/cli/request-fields.ts'
import {
  id,
  optional,
  text,
  time,
  wholeNumberText,
  withDefault,
  word,
} from '../../../interfaces/endpoints/fields.ts'
import { operatorEndpoints } from '../../../interfaces/operator-api/endpoints.ts'
import { cli } from '../../support/cli.ts'
import { plainServer } from '../../support/http-hosts.ts'

describe('a field of a request', () => {
  const schema = z.object({
    name: text().describe('Its name'),
    kind: optional(word('one', 'other')),
    tenant_ids: withDefault(z.union([z.literal('all'), z.array(id())]), 'all'),
    rates: withDefault(z.array(z.object({ state: text(), rate: text() })), []),
    address: optional(z.union([text(), z.record(z.string(), text())])),
    count: withDefault(z.int(), 3),
    limit: wholeNumberText({ min: 1, missing: 50 }).describe('At most 200'),
    seconds: optional(z.number()),
    at: optional(time()),
    dry_run: withDefault(z.boolean(), false),
    enabled: withDefault(z.boolean(), true),
  })
  const fields = Object.fromEntries(fieldsOf(schema).map((field) => [field.name, field]))
  const read = (name: string, ...texts: string[]) =>
    texts.reduce<unknown>((before, one) => fields[name]!.read(one, before), undefined)

  test('is an option with its words and default', () => {
    const help = Object.values(fields)
      .flatMap(optionsOf)
      .map(({ flags, description }) => [flags, description])
    expect(help).toEqual([
      ['--name <text>', 'its name; required'],
      ['--kind <word>', 'one, other'],
      ['--tenant-ids <ids>', 'all; default all'],
      ['--rates <json>', 'JSON of state, rate; repeat for several'],
      ['--address <json>', ''],
      ['--count <number>', 'default 3'],
      ['--limit <number>', 'at most 200; default 50'],
      ['--seconds <number>', ''],
      ['--at <time>', ''],
      ['--dry-run', ''],
      ['--enabled', 'default true'],
      ['--no-enabled', 'the opposite'],
    ])
  })

  test.for([
    ['name', ['null'], 'null'],
    ['kind', ['other'], 'other'],
    ['kind', ['null'], null],
    ['tenant_ids', ['all'], 'all'],
    ['tenant_ids', ['a, b', 'c'], ['a', 'b', 'c']],
    ['tenant_ids', [''], []],
    ['tenant_ids', ['["a,b"]'], ['a,b']],
    [
      'rates',
      ['{"state":"CA","rate":"1"}', '[{"state":"NV","rate":"2"}]'],
      [rate('CA', '1'), rate('NV', '2')],
    ],
    ['address', ['1 Main St, Reno'], '1 Main St, Reno'],
    ['address', ['{"city":"Reno"}'], { city: 'Reno' }],
    ['limit', ['7'], 7],
    ['seconds', ['0.5'], 0.5],
    ['at', ['2026-01-31T12:00:00Z'], '2026-01-31T12:00:00Z'],
  ] as const)('%s from %j is %j', ([name, texts, value]) => {
    expect(read(name, ...texts)).toEqual(value)
  })

  test.for([
    ['count', '1.5', 'Give a whole number.'],
    ['limit', 'x', 'Give a whole number.'],
    ['seconds', '', 'Give a number.'],
    ['rates', 'CA:1', 'Give JSON.'],
    ['address', '{', 'Give JSON.'],
    [
      ...['rates', '[{"rate":1000.0000000000000001}]'],
      'Not taken: [0].rate is a number that is not kept as it is written; send fewer digits.',
    ],
    ['address', '{"a":1,"a":2}', 'Not taken: The key a stands there twice.'],
    ['address', '{"a":{"__proto__":1}}', 'Not taken: a.__proto__ is a name that is not kept.'],
    ['count', '1000.0000000000000001', 'The number is not kept as it is written; give fewer digits.'],
  ] as const)('%s from %j is wrong usage', ([name, given, words]) => {
    expect(() => read(name, given)).toThrow(words)
  })

  function rate(state: string, per: string) {
    return { state, rate: per }
  }
})

describe('a command', () => {
  const commands = operatorEndpoints.flatMap(({ command }) => command ?? [])
  let server: Server
  let url: string
  const seen: { method: string; path: string; key: unknown; body: unknown }[] = []

  beforeAll(async () => {
    ;({ server, url } = await plainServer(async (request, response) => {
      const { method, url: path, headers } = request
      const sent = String(await buffer(request))
      seen.push({
        method: method!,
        path: path!,
        key: headers['idempotency-key'],
        body: sent && JSON.parse(sent),
      })
      // the first answer to a creation is lost
      if (seen.length === 1) request.socket.destroy()
      else response.end('{"ok":true,"data":{"done":true}}')
    }))
  })
  afterAll(() => server?.close())

  const run = (...args: string[]) => cli([...args, '--url', url, '--token', 'operator'], { env: {} })

  test.for(commands.map(({ name }) => name))('%s has help', async (name) => {
    const { code, stdout } = await cli([...name.split(' '), '--help'])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Usage: compstream ${name}`)])
  })

  test('is listed in the help of the program and of its group', async () => {
    const whole = (await cli(['--help'])).stdout
    for (const name of new Set(commands.map(({ name }) => name.split(' ')[0]!))) {
      expect(whole).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
    }
    expect((await cli(['help', 'policies'])).stdout).toMatch(/^ {2}update +change terms of a policy$/m)
  })

  test('has a group that says in a sentence what it is for', async () => {
    const groups = commands
      .map(({ name }) => name.split(' '))
      .flatMap(([first, ...verbs]) => (verbs[0] ? [first!] : []))
    for (const name of new Set([...groups, 'payroll', 'webhooks'])) {
      expect((await cli([name, '--help'])).stdout).toMatch(/^Usage: .*\n\n[A-Z][^.]*\.\n\n/)
    }
  })

  test('takes a text to be looked for as it is, percent signs and all', async () => {
    await run('search', '100% Cotton_Ltd')
    expect(new URL(seen.at(-1)!.path, url).searchParams.get('q')).toBe('100% Cotton_Ltd')
  })

  test('creates once although an answer was lost: the key stays the same', async () => {
    seen.length = 0
    const { code } = await run('tenants', 'create', '--name', 'Acme')
    expect([code, seen.length]).toEqual([0, 2])
    expect(seen[0]).toEqual({
      method: 'POST',
      path: '/ops/v1/tenants',
      body: { name: 'Acme' },
      key: expect.stringMatching(/^cli-/),
    })
    expect(seen[1]).toEqual(seen[0])
  })

  test('sends arguments in the path, options in query and body', async () => {
    await run('streams', 'show', 'policy-a/b', '--limit', '5', '--reveal')
    expect(seen.at(-1)).toMatchObject({
      method: 'GET',
      path: '/ops/v1/streams/policy-a%2Fb?limit=5&reveal=true',
      key: undefined,
    })
    await run('policies', 'update', 'p1', '--billing-type', 'null', '--states', 'CA,NV')
    expect(seen.at(-1)).toMatchObject({
      method: 'PATCH',
      path: '/ops/v1/policies/p1',
      body: { billing_type: null, states: ['CA', 'NV'] },
    })
    await run('faults', 'inject', 'pipeline', 'hold', '--times', '2')
    expect(seen.at(-1)!.body).toEqual({ point: 'pipeline', mode: 'hold', times: 2 })
    await run('faults', 'clear', 'pipeline')
    expect(seen.at(-1)!.body).toEqual({ point: 'pipeline', times: 0 })
    await run('projections', 'pause', 'policies')
    expect(seen.at(-1)).toMatchObject({ path: '/ops/v1/projections/policies/pause', body: '' })
  })

  test.for([
    [['employers', 'create', '--fein', '12-3456789'], /missing: --tenant-id, --legal-name/],
    [['tenants', 'create', '--name'], /argument missing/],
    [['tenants', 'show'], /missing required argument 'tenant-id'/],
    [['employers', 'register', 'e1', 'false'], /too many arguments/],
    [['projections', 'rebuild', 'policies', '--sometimes'], /unknown option/],
    [['policies'], /--help/],
  ] as const)('%j is wrong usage and sends nothing', async ([args, words]) => {
    const before = seen.length
    const { code, stderr } = await run(...args)
    expect([code, stderr]).toEqual([2, expect.stringMatching(words)])
    expect(seen.length).toBe(before)
  })
})

describe('events that are followed', () => {
  test('are shown page by page, a line for each, and then as they come', async () => {
    const event = (position: string) => ({
      position,
      stream: 'policy-a',
      revision: 0,
      type: 'PolicyIssued',
      recorded_at: '2026-01-31T12:00:00.000Z',
      data: {},
      metadata: { actor: { type: 'operator', id: 'jane' } },
    })
    const pages = [
      { data: [event('1')], pagination: { next: '1', read_to: '1' } },
      { data: [event('7')], pagination: { next: null, read_to: '9' } },
      { data: [event('10')], pagination: { next: null, read_to: '10' } },
    ]
    const asked: unknown[] = []
    const stopping = new AbortController()
    const { server, url } = await plainServer((request, response) => {
      asked.push(request.url)
      if (asked.length === pages.length) stopping.abort()
      response.end(JSON.stringify({ ok: true, ...pages[asked.length - 1] }))
    })
    const stdout = new PassThrough()
    const io = { stdin: process.stdin, stdout, stderr: process.stderr, env: {} }
    const client = () => new OperatorClient(io, { url }, async () => 'operator')
    const endpoint = operatorEndpoints.find(({ operation }) => operation === 'listEvents')!
    const called = {
      io,
      client,
      endpoint,
      args: [],
      options: {},
      input: { params: {}, query: { type: 'PolicyIssued' } },
    }
    const { json } = await follow(called, stopping.signal)
    server.close()
    expect(json).toEqual({ shown: 3 })
    expect(asked).toEqual(['', '&from=1', '&from=9'].map((from) => `/ops/v1/events?type=PolicyIssued${from}`))
    expect(String(stdout.read()).split('\n')[1]).toBe(
      '7  2026-01-31T12:00:00.000Z  PolicyIssued  policy-a@0  operator/jane  {}',
    )
  })

  test.for(['--reveal', '--to-time 2026-01-31T12:00:00Z'])('are not with %s', async (option) => {
    const run = await cli(['events', 'list', '--follow', ...option.split(' '), '--token', 'operator'])
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(option.split(' ')[0]!)])
  })
})

describe('a rebuild that is followed', () => {
  const projection = (generation: number, rebuild: object | null, retired: object | null = null) => ({
    name: 'policies',
    state: 'active',
    generation,
    version: 1,
    parked_streams: 0,
    rebuild,
    retired,
  })
  const building = (position: number, others: object = {}) =>
    projection(1, {
      generation: 2,
      version: 1,
      switch: 'auto',
      position,
      head: 200,
      events_left: 200 - position,
      events_per_second: 50,
      seconds_left: (200 - position) / 50,
      parked_streams: 0,
      failure: null,
      comparison: null,
      ...others,
    })
  const contents = { rows: 50, hash: '7:7' }
  const differs = {
    position: 200,
    equal: false,
    tables: [
      {
        table: 'policies',
        equal: false,
        live: contents,
        shadow: { rows: 50, hash: '8:8' },
        differing_rows: 1,
        differences: [
          {
            key: { policy_id: 'p1' },
            missing_in: null,
            columns: [
              { column: 'status', live: 'active', shadow: 'cancelled' },
              { column: 'note', live: null, shadow: 'a\nb' },
            ],
          },
        ],
      },
    ],
  }
  const compared = { equal: true, position: 200, tables: [] }

  /** Follows a rebuild that stands as these answers say, one after the other. */
  async function followed(answers: readonly object[], ...options: string[]) {
    const left = [{ generation: 2, version: 1 }, ...answers]
    const { server, url } = await plainServer((_, response) =>
      response.end(JSON.stringify({ ok: true, data: left.shift() })),
    )
    const args = ['projections', 'rebuild', 'policies', '--follow', ...options, '--url', url, '--token', 'x']
    const run = await cli(args, { env: {} })
    server.close()
    return run
  }

  test('tells on a pipe, in lines, how far it is, and ends well once it answers', async () => {
    const { code, stdout, stderr } = await followed([
      building(50),
      building(200),
      projection(2, null, { generation: 1, version: 1, position: 200, comparison: compared }),
    ])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Done: generation 2 of policies answers/m)])
    expect(stdout).toContain('Compared at position 200: equal.')
    expect(stderr).toBe(
      'rebuilding: 25 %, 150 events to go, 50 events/s, 3 s left\ncomparing at position: 200\n',
    )
  })

  test('that is held back fails, and shows the rows that differ', async () => {
    const { code, stdout, stderr } = await followed([
      building(200, { switch: 'manual', comparison: differs }),
    ])
    expect([code, stderr]).toEqual([1, expect.stringContaining('its rows differ')])
    expect(stdout).toContain(
      [
        'Compared at position 200: not equal; columns read live → rebuilt.',
        'policies: rows that differ: 1',
        '  live     50 rows, digest 7:7',
        '  rebuilt  50 rows, digest 8:8',
        '  policy_id p1',
        '    status: active → cancelled',
        '    note: – → a\ufffdb',
      ].join('\n'),
    )
  })

  test('that is to wait for its switch ends well when it does, equal or not', async () => {
    for (const comparison of [compared, differs]) {
      const waits = building(200, { switch: 'manual', comparison })
      const { code, stdout } = await followed([waits], '--switch', 'manual')
      expect([code, stdout]).toEqual([0, expect.stringContaining('waits for: projections switch policies')])
    }
  })

  test.for([
    ['was cancelled', projection(1, null)],
    ['was cancelled', building(9, { generation: 3 })],
    ['was switched to and rolled back', projection(1, null, { generation: 2 })],
    ['is paused', { ...building(9), state: 'paused' }],
    ['failed: disk full', building(9, { failure: { category: 'fatal', message: 'disk full' } })],
    [
      'has dead-lettered streams',
      building(200, { switch: 'manual', parked_streams: 1, comparison: compared }),
    ],
  ] as const)('fails where it %s', async ([words, answer]) => {
    const { code, stderr } = await followed([answer])
    expect([code, stderr]).toEqual([1, expect.stringContaining(words)])
  })
})
