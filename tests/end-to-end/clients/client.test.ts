import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { clientOf } from '../../../clients/node/client.ts'
import {
  ApiError,
  type ClientOptions,
  createClient,
  NoAnswerError,
  type Try,
} from '../../../clients/node/index.ts'
import { allEvents, employeeRecord, serviceTime } from '../../support/core.ts'
import { exampleIn, expectQuickstart, quickstartOf, ran } from '../../support/quickstarts.ts'
import { operate, type SeededTenant, seedEmployer, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** The client of partners, as it is built, against the service as it is. */

let service: SharedService
let tenant: SeededTenant
beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

function clientFor(owner: SeededTenant, options: Partial<ClientOptions> = {}) {
  return createClient({
    baseUrl: service.coreUrl,
    clientId: owner.clientId,
    clientSecret: owner.clientSecret,
    ...options,
  })
}

function reportOf(owner: SeededTenant) {
  return {
    employer_fein: owner.fein,
    policy_number: owner.policyNumber,
    employees: [employeeRecord()],
  }
}

/** A server before the service that does what a test wants with each request, counted from 1. */
async function serverBefore(
  handle: (request: IncomingMessage, response: ServerResponse, number: number) => void,
): Promise<string> {
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    handle(request, response, requests)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Hands a request on to the service. @param answered gets the answer before it goes on to the caller. */
function pass(
  request: IncomingMessage,
  response: ServerResponse,
  url: string,
  headers: Record<string, string> = {},
  answered: () => 'send' | 'lose' = () => 'send',
): void {
  const further = forward(
    `${url}${request.url}`,
    { method: request.method, headers: { ...request.headers, ...headers } },
    (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part) => parts.push(part))
      answer.on('end', () => {
        if (answered() === 'lose') response.destroy()
        else response.writeHead(answer.statusCode!, answer.headers).end(Buffer.concat(parts))
      })
    },
  )
  request.pipe(further)
}

/** A project of a partner, with the package as the service hands it out. */
async function partnerProject(): Promise<string> {
  const cwd = await mkdtemp(join(tmpdir(), 'compstream-partner-'))
  closers.push(() => rm(cwd, { recursive: true, force: true }))
  const answer = await fetch(`${service.coreUrl}/client.tgz`)
  await writeFile(join(cwd, 'client.tgz'), Buffer.from(await answer.arrayBuffer()))
  await writeFile(join(cwd, 'package.json'), '{"private":true}')
  const options = ['--offline', '--no-audit', '--no-fund', '--silent']
  execFileSync('npm', ['install', ...options, './client.tgz'], { cwd })
  expect(await readdir(join(cwd, 'node_modules'))).toEqual(['.package-lock.json', 'compstream'])
  return cwd
}

test('the quickstart of its README sells, reports, debits and catches up, with the package as it is served', async () => {
  const cwd = await partnerProject()
  const env = await quickstartOf(service)
  const example = await exampleIn('clients/node/README.md', 'js')
  const run = (further: Record<string, string>) =>
    ran(process.execPath, ['--input-type=module'], example, { cwd, env: { ...env, ...further } })
  for (const RUN_ID of ['17', '17']) expectQuickstart(await run({ RUN_ID }))
  expect((await run({})).stderr).toContain('Set RUN_ID')
  const refused = await run({ EMPLOYER_FEIN: '12-0000000', RUN_ID: '18' })
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.stderr).toMatch(/^404 Employer not found: .* \(request [0-9a-f]{24}\)\n$/)
})

describe('a call', () => {
  test('resolves with the answer, typed', async () => {
    const compstream = clientFor(tenant)
    const report = await compstream.reportPayroll({ body: reportOf(tenant) })
    expect(report.status).toBe('completed')
    const file = await compstream.getFileStatus({ file_id: report.file_id! })
    expect(file.employee_count).toBe(1)
    const changes = await compstream.syncEmployees({
      body: {
        employer_id: tenant.employerId,
        employees: [{ employee_id: 'E-1', action: 'update', department: 'Bakery' }],
      },
    })
    expect(changes.employees_processed).toBe(1)
  })

  test('that is refused throws what the service says, at the first try', async () => {
    const tries: Try[] = []
    const compstream = clientFor(tenant, { onTry: (one) => tries.push(one) })
    const call = compstream.reportPayroll({ body: { ...reportOf(tenant), policy_number: 'unknown' } })
    const error = await call.then(
      () => null,
      (thrown: ApiError) => thrown,
    )
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      status: 404,
      error: 'Policy not found',
      message: expect.stringMatching(/\S/),
      requestId: tries[0]!.requestId,
      operation: 'reportPayroll',
      tries: 1,
      retryAfter: null,
      idempotencyKey: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(tries).toMatchObject([{ number: 1, status: 404, replayed: false }])
    await expect(
      clientFor(tenant, { clientSecret: 'wrong' }).getFileStatus({ file_id: 'x' }),
    ).rejects.toThrow(
      expect.objectContaining({ status: 401, error: 'Invalid client_secret', idempotencyKey: null }),
    )
  })

  test('without what its path needs, or without credentials, is never sent', async () => {
    const sent: Try[] = []
    const onTry = (one: Try) => void sent.push(one)
    const options = { baseUrl: service.coreUrl, onTry }
    await expect(clientFor(tenant, { onTry }).getFileStatus({ file_id: '' })).rejects.toThrow('file_id')
    await expect(createClient(options).getFileStatus({ file_id: 'x' })).rejects.toThrow('clientSecret')
    const pasted = createClient({ ...options, clientId: 'a', clientSecret: 'secret\nline' })
    const refused = await pasted.getFileStatus({ file_id: 'x' }).catch((error: Error) => error)
    expect(String(refused)).toContain('X-Client-Secret')
    expect(String(refused)).not.toContain('secret\nline')
    expect(sent).toEqual([])
  })

  test('that nobody could mean as it is written is never sent', async () => {
    for (const baseUrl of ['file:///etc', 'api.example.com', 'https://', undefined as never]) {
      expect(() => createClient({ baseUrl })).toThrow('baseUrl takes an http or https address')
    }
    expect(() => clientFor(tenant, { timeout: 5 } as never)).toThrow('timeout is an unknown option')
    const { reportPayroll, getFileStatus, each } = clientFor(tenant)
    const report = { body: reportOf(tenant) }
    await expect(reportPayroll(report, { idempotency_key: 'run-1' } as never)).rejects.toThrow(
      'idempotency_key is an unknown option; known here: idempotencyKey,',
    )
    for (const idempotencyKey of ['', 'two words', 17 as never, null as never]) {
      await expect(reportPayroll(report, { idempotencyKey })).rejects.toThrow('idempotencyKey takes a string')
    }
    await expect(getFileStatus({ file_id: 'x' }, { idempotencyKey: 'run-1' })).rejects.toThrow(
      'getFileStatus takes no idempotencyKey',
    )
    const employees = [{ ...employeeRecord(), gross_wages: Number.NaN }]
    await expect(reportPayroll({ body: { ...report.body, employees } })).rejects.toThrow(
      'gross_wages is NaN, which JSON cannot say',
    )
    await expect(each('listEmployees' as never, {} as never).next()).rejects.toThrow(
      'There is no operation listEmployees',
    )
    const away = clientFor(tenant, { baseUrl: 'http://127.0.0.1:1', retries: 0 })
    await expect(away.getFileStatus({ file_id: 'x' })).rejects.toThrow(/\((?!fetch failed).+\)/)
  })

  test('is signed where the client must sign, or by the secret of a connection', async () => {
    const now = () => at
    const signing = await seedTenant(service, { apiClient: { request_signing: 'required' } })
    const at = await serviceTime(service)
    const compstream = clientFor(signing, { signRequests: true, now })
    const report = await compstream.reportPayroll({ body: reportOf(signing) })
    expect((await compstream.getFileStatus({ file_id: report.file_id! })).status).toBe('NORMALIZED')
    await expect(clientFor(signing).getFileStatus({ file_id: report.file_id! })).rejects.toThrow(
      expect.objectContaining({ error: 'Invalid signature' }),
    )

    const { connection_id, secret } = await operate(service, 'POST', '/inbound-connections', {
      tenant_id: tenant.tenantId,
      environment: 'live',
    })
    const pushing = createClient({ baseUrl: service.coreUrl, connectionSecret: secret, now })
    expect((await pushing.pushPayroll({ connection_id, body: reportOf(tenant) })).status).toBe('completed')
  })
})

describe('a call that meets trouble', () => {
  test('has its effect once, however many answers are lost: all tries carry one key', async () => {
    const owner = await seedTenant(service)
    const keys: unknown[] = []
    const tries: Try[] = []
    const baseUrl = await serverBefore((request, response, number) => {
      keys.push(request.headers['idempotency-key'])
      pass(request, response, service.coreUrl, {}, () => (number < 3 ? 'lose' : 'send'))
    })
    const compstream = clientFor(owner, { baseUrl, onTry: (one) => tries.push(one) })
    const report = await compstream.reportPayroll({ body: reportOf(owner) })
    expect(tries.map(({ status, replayed }) => [status, replayed])).toEqual([
      [null, false],
      [null, false],
      [202, true],
    ])
    expect(new Set(keys).size).toBe(1)
    const received = (await allEvents(service, 'PayrollFileReceived')).filter(
      ({ data }) => data.employer_id === owner.employerId,
    )
    expect(received.map(({ data }) => data.file_id)).toEqual([report.file_id])
  })

  test('with a key of its own is the same call in another process', async () => {
    const owner = await seedTenant(service)
    const first = await clientFor(owner).reportPayroll({ body: reportOf(owner) }, { idempotencyKey: 'run-1' })
    const tries: Try[] = []
    const again = await clientFor(owner, { onTry: (one) => tries.push(one) }).reportPayroll(
      { body: reportOf(owner) },
      { idempotencyKey: 'run-1' },
    )
    expect(again).toEqual(first)
    expect(tries).toMatchObject([{ status: 202, replayed: true }])
  })

  test('waits as long as the service asks', async () => {
    // as rate-limits has it from the service
    const baseUrl = await serverBefore((request, response, number) => {
      if (number > 1) return pass(request, response, service.coreUrl)
      response.writeHead(429, { 'Retry-After': '1' }).end('{"error":"Too many requests","message":"Later"}')
    })
    const ended: { at: number; status: number | null }[] = []
    const compstream = clientFor(tenant, {
      baseUrl,
      onTry: ({ status }) => ended.push({ at: performance.now(), status }),
    })
    await expect(compstream.getFileStatus({ file_id: 'x' })).rejects.toThrow(
      expect.objectContaining({ status: 404 }),
    )
    expect(ended.map(({ status }) => status)).toEqual([429, 404])
    expect(ended[1]!.at - ended[0]!.at).toBeGreaterThan(990)
  })

  test('is given up when its time is over, or its caller wants no more', async () => {
    const baseUrl = await serverBefore(() => {})
    const compstream = clientFor(tenant, { baseUrl, timeoutMs: 40, retries: 1 })
    const error = await compstream.reportPayroll({ body: reportOf(tenant) }).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(NoAnswerError)
    expect(error).toMatchObject({
      message: 'No answer to reportPayroll in time',
      tries: 2,
      idempotencyKey: expect.any(String),
    })
    // no time for another try
    await expect(compstream.getFileStatus({ file_id: 'x' }, { totalMs: 60 })).rejects.toMatchObject({
      name: 'NoAnswerError',
      tries: 1,
    })

    const leaving = new AbortController()
    const call = compstream.getFileStatus({ file_id: 'x' }, { signal: leaving.signal, timeoutMs: 60_000 })
    leaving.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })

  test('is not sent again when nothing tells whether it had its effect', async () => {
    const baseUrl = await serverBefore((_request, response, number) => {
      response.writeHead(number === 1 ? 429 : 503, { 'Content-Type': 'application/json' }).end('{}')
    })
    const { close } = clientOf<ClosingOperations>(
      {
        close: {
          method: 'POST',
          path: '/close',
          credentials: 'none',
          takesKey: false,
          wrapped: false,
          pagedBy: null,
        },
      },
      { baseUrl },
    )
    await expect(close()).rejects.toMatchObject({ status: 503, tries: 2 })
  })

  test('never follows a redirect with its secrets, and takes no page for an answer', async () => {
    const visited: string[] = []
    const baseUrl = await serverBefore((request, response) => {
      visited.push(request.url!)
      if (request.url!.includes('page')) response.end('<html></html>')
      else response.writeHead(302, { Location: '/elsewhere' }).end()
    })
    const compstream = clientFor(tenant, { baseUrl, retries: 0 })
    await expect(compstream.getFileStatus({ file_id: 'moved' })).rejects.toThrow(NoAnswerError)
    await expect(compstream.getFileStatus({ file_id: 'page' })).rejects.toMatchObject({ status: 200 })
    expect(visited).toEqual(['/api/v1/files/status/moved', '/api/v1/files/status/page'])
  })
})

interface ClosingOperations {
  close: { parameters: { path?: never; query?: never }; responses: { 200: object } }
}

interface ListingOperations {
  list: {
    parameters: {
      path?: never
      query?: { limit?: number; page?: number; from?: string; tenant_id?: string; type?: string }
    }
    responses: {
      200: {
        content: { 'application/json': { ok: true; data: { employer_id: string; event_id: string }[] } }
      }
    }
  }
}

describe('a list that is answered in pages', () => {
  async function listing(path: string, pagedBy: 'page' | 'from') {
    const asked: string[] = []
    const authorization = { authorization: `Bearer ${service.operatorToken}` }
    const baseUrl = await serverBefore((request, response) => {
      asked.push(new URL(request.url!, 'http://host').search)
      pass(request, response, service.opsUrl, authorization)
    })
    const list = {
      method: 'GET',
      path,
      credentials: 'none',
      takesKey: false,
      wrapped: true,
      pagedBy,
    } as const
    return { client: clientOf<ListingOperations>({ list }, { baseUrl }), asked }
  }

  test('is read by numbered pages, each when it is needed', async () => {
    const owner = await seedTenant(service)
    const { tenantId } = owner
    const further = [await seedEmployer(service, { tenantId }), await seedEmployer(service, { tenantId })]
    await operate(service, 'POST', '/drain')
    const { client, asked } = await listing('/ops/v1/employers', 'page')
    const ids: string[] = []
    for await (const { employer_id } of client.each('list', { tenant_id: tenantId, limit: 2 })) {
      if (ids.length === 0) expect(asked).toHaveLength(1)
      ids.push(employer_id)
    }
    expect(ids.sort()).toEqual([owner, ...further].map(({ employerId }) => employerId).sort())
    expect(asked).toHaveLength(2)
  })

  test('is read from place to place', async () => {
    const { client, asked } = await listing('/ops/v1/events', 'from')
    const ids = new Set<string>()
    for await (const { event_id } of client.each('list', { type: 'TenantRegistered', limit: 2 }))
      ids.add(event_id)
    expect(asked.length).toBeGreaterThan(1)
    expect(ids.size).toBe((await allEvents(service, 'TenantRegistered')).length)
  })
})
