import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'

/** A server that keeps what it is asked and answers what the test wants. */
let server: Server
let url: string
let directory: string
let requests: { method: string; path: string; headers: IncomingMessage['headers']; body: unknown }[]
let answer: { status: number; body: string }

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'compstream-cli-'))
  server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const text = Buffer.concat(parts).toString()
    const { method, url: path, headers } = request
    requests.push({ method: method!, path: path!, headers, body: text === '' ? null : JSON.parse(text) })
    response.statusCode = answer.status
    response.end(answer.body)
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
    const run = await operator('tenants', 'create', '--name', 'Acme', '--json')
    expect(run).toMatchObject({ code: 1, stdout: '', stderr: 'error: Conflict: the fein is taken\n' })
  })

  test('an answer that is not JSON is told apart from a refusal', async () => {
    answer = { status: 502, body: '<html>' }
    const run = await operator('clock', 'show')
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('not JSON')
  })

  test('an address where nothing listens is named', async () => {
    const run = await cli(['clock', 'show', '--url', 'http://127.0.0.1:1'], { env: { OPERATOR_TOKEN: 'x' } })
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('http://127.0.0.1:1 cannot be reached')
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
