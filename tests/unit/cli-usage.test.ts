import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import project from '../../package.json' with { type: 'json' }
import { cli } from '../support/cli.ts'

/** A server that keeps what it is asked and answers what the test wants. */
let server: Server
let url: string
let directory: string
let requests: { method: string; path: string; headers: IncomingMessage['headers']; body: unknown }[]
let answer: { status: number; body: string; headers?: Record<string, string> }
/** Answers given before that one, first come, first served. */
let first: (typeof answer)[]
/** Held up until it is settled. */
let held: Promise<void>

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'compstream-cli-'))
  server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const text = Buffer.concat(parts).toString()
    const { method, url: path, headers } = request
    requests.push({ method: method!, path: path!, headers, body: text === '' ? null : JSON.parse(text) })
    await held
    const { status, body, headers: answered = {} } = first.shift() ?? answer
    response.writeHead(status, answered)
    response.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.close()
  await rm(directory, { recursive: true, force: true })
})
beforeEach(() => {
  requests = []
  first = []
  held = Promise.resolve()
  answer = { status: 200, body: '{"ok":true,"data":{"name":"Acme","ids":["a","b"]}}' }
})

const operator = (...args: string[]) =>
  cli([...args, '--url', url], { env: { OPERATOR_TOKEN: 'operator-secret' } })

describe('usage', () => {
  test('help goes to stdout and is no failure', async () => {
    const run = await cli(['--help'])
    expect(run.code).toBe(0)
    for (const group of [
      'tenants',
      'employers',
      'policies',
      'api-clients',
      'projections',
      'payroll',
      'audit',
    ]) {
      expect(run.stdout).toContain(group)
    }
  })

  test.each([
    [['nonsense']],
    [['tenants', 'create']],
    [['tenants', 'show']],
    [['tenants', 'create', '--name', 'A', '--unknown']],
    [['clock', 'show', '--request-timeout', '0']],
    [['clock', 'show', '--token', 'a', '--token-file', 'b']],
    [['erase', 'person/0123456789abcdef01234567']],
    [['policies', 'create', '--rate', '8810:CA']],
    [['policies', 'create', '--fee', 'Fee:1.5']],
    [['clock', 'advance']],
    [['clock', 'advance', '--seconds', '1', '--to', '2030-01-01T00:00:00Z']],
    [
      [
        'payroll',
        'submit',
        'x.csv',
        '--employer-fein',
        '1',
        '--policy-number',
        '2',
        '--period-start',
        '2026-01-01',
      ],
    ],
    [[]],
  ])('%j ends with code 2 and says why on stderr', async (args) => {
    const run = await operator(...args)
    expect(run.code).toBe(2)
    expect(run.stderr).not.toBe('')
    expect(requests).toEqual([])
    const machine = await operator(...args, '--json')
    expect([machine.code, machine.stdout]).toEqual([2, ''])
    expect(JSON.parse(machine.stderr)).toEqual({ ok: false, error: 'Usage', message: expect.any(String) })
  })

  test('--version prints the version of the package', async () => {
    expect(await cli(['--version'])).toMatchObject({ code: 0, stdout: `${project.version}\n`, stderr: '' })
  })
})

describe('the operator API', () => {
  test('is asked with the token, and its data printed as one JSON document', async () => {
    const run = await operator('tenants', 'create', '--name', 'Acme', '--json')
    expect(run.code).toBe(0)
    expect(run.json()).toEqual({ name: 'Acme', ids: ['a', 'b'] })
    expect(requests).toMatchObject([{ method: 'POST', path: '/ops/v1/tenants', body: { name: 'Acme' } }])
    expect(requests[0]!.headers.authorization).toBe('Bearer operator-secret')
    expect(requests[0]!.headers['idempotency-key']).toMatch(/^cli-/)
  })

  test('is printed as a table without --json, control characters taken out', async () => {
    answer.body = JSON.stringify({ ok: true, data: { name: 'Ac\u001b[31mme' } })
    const run = await operator('tenants', 'create', '--name', 'Acme')
    expect(run.stdout).toContain('name')
    expect(run.stdout).not.toContain('\u001b')
  })

  test('its refusal is one line on stderr and code 1', async () => {
    answer = { status: 409, body: '{"ok":false,"error":"Conflict","message":"the fein is taken"}' }
    const run = await operator('tenants', 'create', '--name', 'Acme')
    expect(run).toMatchObject({ code: 1, stdout: '', stderr: 'error: Conflict: the fein is taken\n' })
    const machine = await operator('tenants', 'create', '--name', 'Acme', '--json')
    expect([machine.code, machine.stdout]).toEqual([1, ''])
    expect(JSON.parse(machine.stderr)).toEqual({
      ...{ ok: false, error: 'Conflict', message: 'the fein is taken' },
    })
  })

  test('an answer that is not JSON is told apart from a refusal', async () => {
    answer = { status: 502, body: '<html>' }
    const run = await operator('clock', 'show')
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('not JSON')
  })

  test('an address where nothing listens is named', async () => {
    const args = ['clock', 'show', '--url', 'http://127.0.0.1:1']
    const run = await cli(args, { env: { OPERATOR_TOKEN: 'x' } })
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('http://127.0.0.1:1 cannot be reached')
    const machine = await cli([...args, '--json'], { env: { OPERATOR_TOKEN: 'x' } })
    expect(JSON.parse(machine.stderr)).toMatchObject({ ok: false, error: 'Unreachable' })
  })

  test('the token is read from the file in DATA_DIR when nothing else is given', async () => {
    await writeFile(join(directory, 'operator-token'), 'from-the-file\n')
    const env = { DATA_DIR: directory, COMPSTREAM_OPS_URL: url }
    expect((await cli(['clock', 'show'], { env })).code).toBe(0)
    expect(requests[0]!.headers.authorization).toBe('Bearer from-the-file')
  })

  test('without any token it says where it looked', async () => {
    const run = await cli(['clock', 'show', '--url', url], { env: { DATA_DIR: '/nowhere' } })
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('/nowhere/operator-token')
  })
})

describe('secrets', () => {
  const show = ['clock', 'show']
  const secretIn = async (text: string) => {
    const file = join(directory, `secret-${text}`)
    await writeFile(file, `${text}\n`)
    return file
  }

  test.each([
    ['an option', ['--token', 'one'], {}, 'one'],
    ['the variable', [], { OPERATOR_TOKEN: 'three' }, 'three'],
    ['an option rather than the variable', ['--token', 'one'], { OPERATOR_TOKEN: 'three' }, 'one'],
  ])('the token is taken from %s', async (_, options, env, token) => {
    await cli([...show, ...options], { env: { COMPSTREAM_OPS_URL: url, ...env } })
    expect(requests[0]!.headers.authorization).toBe(`Bearer ${token}`)
  })

  test('the token is taken from a file that an option or a variable names', async () => {
    const env = { COMPSTREAM_OPS_URL: url }
    const file = await secretIn('from-a-file')
    await cli([...show, '--token-file', file], { env: { ...env, OPERATOR_TOKEN: 'not this one' } })
    await cli(show, { env: { ...env, OPERATOR_TOKEN_FILE: file } })
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill('Bearer from-a-file'))
    const none = await cli([...show, '--token-file', '/nowhere/token'], { env })
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringContaining('--token-file cannot be read (ENOENT)'),
    ])
  })

  test('who sits at a terminal is asked, once, and what is typed is not shown', async () => {
    answer.body = '{"ok":true,"data":{"payroll_company_ids":[]}}'
    const run = await cli(['employers', 'link', 'e', 'c', '--url', url], {
      ...{ env: { DATA_DIR: '/nowhere' }, isTTY: true, stdin: 'typed-secret\n' },
    })
    expect([run.code, run.stderr]).toEqual([0, 'Operator token: \n'])
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill('Bearer typed-secret'))
  })

  test('those of a partner and an agent come from files and variables, too', async () => {
    answer.body = JSON.stringify({ file_id: 'f', status: 'completed', phase_3: { status: 'complete' } })
    const tool = { content: [{ text: '{}' }] }
    const toolAnswer = { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: tool }) }
    const csv = join(directory, 'payroll.csv')
    await writeFile(csv, 'employee_id,gross_wages\nE1,10\n')
    const submit = [
      'payroll',
      'submit',
      csv,
      '--employer-fein',
      '1',
      '--policy-number',
      '2',
      '--client-id',
      'c',
    ]
    const urls = { COMPSTREAM_CORE_URL: url, COMPSTREAM_MCP_URL: url }
    const files = { secret: await secretIn('client-secret'), key: await secretIn('the-agent-key') }
    for (const [options, env] of [
      [['--client-secret-file', files.secret, '--agent-key-file', files.key], {}],
      [[], { COMPSTREAM_CLIENT_SECRET_FILE: files.secret, COMPSTREAM_AGENT_KEY_FILE: files.key }],
      [[], { COMPSTREAM_CLIENT_SECRET: 'client-secret', COMPSTREAM_AGENT_KEY: 'the-agent-key' }],
    ] as const) {
      requests = []
      first = [answer, answer, toolAnswer, toolAnswer]
      const run = await cli([...submit, ...options], { env: { ...urls, ...env } })
      expect([run.code, run.stderr]).toEqual([0, ''])
      expect(requests[0]!.headers['x-client-secret']).toBe('client-secret')
      expect(requests.at(-1)!.headers.authorization).toBe('Bearer the-agent-key')
    }
    requests = []
    const none = await cli(submit, { env: urls })
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('COMPSTREAM_CLIENT_SECRET_FILE')])
    expect(requests).toEqual([])
  })
})

describe('time limits', () => {
  test('a request is given up after its own; what waits for the service by nature is not', async () => {
    let answerAll = () => {}
    held = new Promise((resolve) => {
      answerAll = resolve
    })
    const limit = ['--request-timeout', '0.2']
    const patient = [
      operator('drain', '--timeout', '600', ...limit),
      operator('audit', 'verify', ...limit),
      operator('clock', 'advance', '--seconds', '1', ...limit),
    ]
    answer.body = '{"ok":true,"data":{"verified":true}}'
    const impatient = await operator('clock', 'show', '--json', ...limit)
    expect(impatient.code).toBe(1)
    expect(JSON.parse(impatient.stderr)).toEqual({
      ...{ ok: false, error: 'Timeout', message: `${url} did not answer within 0.2 s` },
    })
    answerAll()
    expect((await Promise.all(patient)).map(({ code, stderr }) => [code, stderr])).toEqual(
      Array(3).fill([0, '']),
    )
    expect(requests.find(({ path }) => path.endsWith('/drain'))!.body).toEqual({ timeout_seconds: 600 })
  })
})

describe('rate limits', () => {
  const refusal = { status: 429, body: '{"ok":false,"error":"Too Many Requests","message":"slow down"}' }

  test('are waited for as long as the service says', async () => {
    const soon = { ...refusal, headers: { 'Retry-After': '0' } }
    first = [soon, soon, soon]
    expect((await operator('audit', 'verify')).stderr).toContain('The log was changed')
    expect(requests.map(({ path }) => path)).toEqual(Array(4).fill('/ops/v1/audit/verify'))
  })

  test('are not waited for longer than two minutes', async () => {
    answer = { ...refusal, headers: { 'Retry-After': '121' } }
    const run = await operator('clock', 'show')
    expect([run.code, run.stderr]).toEqual([1, 'error: Too Many Requests: slow down\n'])
    expect(requests).toHaveLength(1)
  })
})

describe('a policy from options', () => {
  test('is built field by field; options win over the JSON file', async () => {
    const file = join(directory, 'policy.json')
    await writeFile(file, JSON.stringify({ policy_number: 'FROM-FILE', carrier_id: 'c', fees: [] }))
    const run = await operator(
      'policies',
      'create',
      ...['--json-file', file, '--policy-number', 'P-1', '--employer-id', 'e'],
      ...['--class-code', '8810', '--class-code', '5403', '--state', 'CA'],
      ...['--rate', '8810:CA:0.35', '--rate', '5403:CA:10', '--location', 'main:street:CA'],
      ...['--fee', 'Install: one:500', '--billing-type', 'none', '--overtime-exclusion', 'true'],
      ...['--annual-premium-cents', '120000'],
    )
    expect(run.code).toBe(0)
    expect(requests[0]!.body).toEqual({
      policy_number: 'P-1',
      carrier_id: 'c',
      employer_id: 'e',
      class_codes: ['8810', '5403'],
      states: ['CA'],
      rates: [
        { class_code: '8810', state: 'CA', rate_per_100: '0.35' },
        { class_code: '5403', state: 'CA', rate_per_100: '10' },
      ],
      locations: [{ id: 'main:street', state: 'CA' }],
      fees: [{ label: 'Install: one', amount_cents: 500 }],
      billing_type: null,
      overtime_exclusion: true,
      annual_premium_cents: 120000,
    })
  })

  test('a JSON file that holds no object is refused', async () => {
    const file = join(directory, 'list.json')
    await writeFile(file, '[]')
    const run = await operator('policies', 'create', '--json-file', file)
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('must hold a JSON object')
  })
})

describe('links of an employer', () => {
  test('are added to those there are', async () => {
    answer.body = '{"ok":true,"data":{"payroll_company_ids":["one"]}}'
    expect((await operator('employers', 'link', 'e/1', 'two')).code).toBe(0)
    expect(requests).toMatchObject([
      { method: 'GET', path: '/ops/v1/employers/e%2F1' },
      { method: 'PATCH', body: { payroll_company_ids: ['one', 'two'] } },
    ])
  })
})

describe('the check of the hash chains', () => {
  test('fails the command when the log was changed', async () => {
    answer.body = JSON.stringify({
      ok: true,
      data: { verified: false, first_problem: { stream: 'tenant-1', problem: 'hash_mismatch' } },
    })
    const run = await operator('audit', 'verify')
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('hash_mismatch')
  })
})
