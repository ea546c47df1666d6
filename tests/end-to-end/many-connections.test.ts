import { Agent, type ClientRequest, type RequestOptions, request } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { employeeRecord, report, reportBody } from '../support/core.ts'
import { type SeededTenant, seedTenant, send, sendRpc } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

const CONNECTIONS = 1_000
/** A server that is slow to take connections drops those beyond its backlog. */
const OPENED_AT_ONCE = 50

let service: RunningService
let busy: SeededTenant
let other: SeededTenant
let agent: Agent

beforeAll(async () => {
  service = await startService()
  busy = await seedTenant(service)
  other = await seedTenant(service)
  agent = new Agent({ keepAlive: true })
})
afterEach(() => agent.destroy())
afterAll(() => service?.stop())

interface Answered {
  readonly status: number
  readonly retryAfter: string | undefined
}

/** Begins a request on a connection that nobody else uses meanwhile. */
function begin(
  path: string,
  options: RequestOptions = {},
): { sent: ClientRequest; answer: Promise<Answered> } {
  const sent = request(`${service.coreUrl}/api/v1${path}`, { agent, ...options })
  const answer = new Promise<Answered>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode!, retryAfter: response.headers['retry-after'] }),
      )
    })
  })
  return { sent, answer }
}

/** Does something for each of so many numbers, for a few of them at once. */
async function forEach(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const workNext = async () => {
    while (next < count) {
      next += 1
      await work(next)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, workNext))
}

const ping = () => sendRpc(service, other.apiKey, { jsonrpc: '2.0', id: 1, method: 'ping' })
const readsOf = (answers: readonly Answered[], status: number) =>
  answers.filter((answer) => answer.status === status)

async function refusalsTold(): Promise<number> {
  const { text } = await send(`${service.opsUrl}/metrics`, {
    headers: { Authorization: `Bearer ${service.operatorToken}` },
  })
  return Number(/^compstream_http_refused_total (\d+)$/m.exec(text)![1])
}

function expectServedOrRefused(answers: readonly Answered[], success: number): void {
  for (const { status, retryAfter } of answers) {
    expect([success, 503]).toContain(status)
    if (status === 503) expect(Number(retryAfter)).toBeGreaterThanOrEqual(1)
  }
}

it('refuses at once what a caller holds open beyond what is served soon, and answers another', async () => {
  const before = await refusalsTold()
  const answers: Answered[] = []
  const requests: { sent: ClientRequest; rest: string; answer: Promise<unknown> }[] = []
  await forEach(CONNECTIONS, OPENED_AT_ONCE, async (n) => {
    const body = JSON.stringify(reportBody(busy, { employees: [employeeRecord({ employee_id: `E-${n}` })] }))
    const headers = { ...busy.clientHeaders, 'Content-Length': body.length }
    const { sent, answer } = begin('/payroll/reports', { method: 'POST', headers })
    requests.push({ sent, rest: body.slice(50), answer: answer.then((one) => answers.push(one)) })
    await new Promise<void>((resolve) => sent.write(body.slice(0, 50), () => resolve()))
  })
  // nobody has sent a whole request: these are refused, and the others wait for their callers
  await expect.poll(() => answers.length).toBeGreaterThan(CONNECTIONS / 4)
  expect(readsOf(answers, 503)).toHaveLength(answers.length)
  expect((await ping()).status).toBe(200)
  expect((await report(service, other)).status).toBe(202)
  expect((await send(`${service.opsUrl}/healthz`)).status).toBe(200)

  for (const { sent, rest } of requests) sent.end(rest)
  await Promise.all(requests.map(({ answer }) => answer))
  expect(answers).toHaveLength(CONNECTIONS)
  expectServedOrRefused(answers, 202)
  expect(readsOf(answers, 202).length).toBeGreaterThanOrEqual(100)
  expect(readsOf(answers, 503)).toHaveLength((await refusalsTold()) - before)
})

it('serves or refuses everything that a thousand connections ask, and answers another meanwhile', async () => {
  const { body } = await report(service, busy)
  const answers: Answered[] = []
  const ask = async () => {
    const { sent, answer } = begin(`/files/status/${body.file_id}`, { headers: busy.clientHeaders })
    sent.end()
    answers.push(await answer)
  }
  await forEach(CONNECTIONS, OPENED_AT_ONCE, ask)
  let isOver = false
  const asking = forEach(5 * CONNECTIONS, CONNECTIONS, ask).finally(() => {
    isOver = true
  })
  const pinged: number[] = []
  while (!isOver) pinged.push((await ping()).status)
  await asking
  expect(answers).toHaveLength(6 * CONNECTIONS)
  expectServedOrRefused(answers, 200)
  expect(new Set(pinged)).toEqual(new Set([200]))
})
