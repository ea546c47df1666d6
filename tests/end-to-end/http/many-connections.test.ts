// @module-tag long: unit/http/admission has who waits and who is refused
import { Agent, type ClientRequest, type RequestOptions, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { employeeRecord, report, reportBody } from '../../support/core.ts'
import { type SeededTenant, seedTenant, send, sendRpc } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

const CONNECTIONS = 1_000
/** A server that is slow to take connections drops those beyond its backlog. */
const OPENED_AT_ONCE = 50
/** Milliseconds; well below the 30 s after which the service closes an idle one, whatever is just on its way there. */
const IDLE_MS = 15_000
const TOO_MANY = 'The service has more requests than it can answer soon'

let service: RunningService
let busy: SeededTenant
let other: SeededTenant
/** Each keeps a connection of its own. */
let agents: Agent[]

beforeAll(async () => {
  service = await startService()
  busy = await seedTenant(service)
  other = await seedTenant(service)
})
beforeEach(() => {
  agents = Array.from(
    { length: CONNECTIONS },
    () => new Agent({ keepAlive: true, maxSockets: 1, timeout: IDLE_MS }),
  )
})
afterEach(() => {
  for (const agent of agents) agent.destroy()
})
afterAll(() => service?.stop())

interface Answered {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}

/** Begins a request on the n-th connection. */
function begin(
  n: number,
  path: string,
  options: RequestOptions = {},
): { sent: ClientRequest; answer: Promise<Answered> } {
  const sent = request(`${service.coreUrl}/api/v1${path}`, { agent: agents[n]!, ...options })
  const answer = new Promise<Answered>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      const { statusCode, headers } = response
      text(response).then(
        (read) => resolve({ status: statusCode!, retryAfter: headers['retry-after'], text: read }),
        reject,
      )
    })
  })
  return { sent, answer }
}

/** Does something on every connection, for a few of them at once. */
async function onEach(atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const workNext = async () => {
    while (next < CONNECTIONS) {
      next += 1
      await work(next - 1)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, workNext))
}

const ping = () => sendRpc(service, other.apiKey, { jsonrpc: '2.0', id: 1, method: 'ping' })

async function refusalsReported(): Promise<number> {
  const metrics = await send(`${service.opsUrl}/metrics`, {
    headers: { Authorization: `Bearer ${service.operatorToken}` },
  })
  return Number(/^compstream_http_refused_total (\d+)$/m.exec(metrics.text)![1])
}

it('waits for what a caller sends on a thousand connections, serves or refuses it then, and answers another', async () => {
  const before = await refusalsReported()
  const answers: Answered[] = []
  const requests: { sent: ClientRequest; rest: string; answer: Promise<unknown> }[] = []
  await onEach(OPENED_AT_ONCE, async (n) => {
    const body = JSON.stringify(reportBody(busy, { employees: [employeeRecord({ employee_id: `E-${n}` })] }))
    const headers = { ...busy.clientHeaders, 'Content-Length': body.length }
    const { sent, answer } = begin(n, '/payroll/reports', { method: 'POST', headers })
    requests.push({ sent, rest: body.slice(50), answer: answer.then((one) => answers.push(one)) })
    await new Promise<void>((resolve) => sent.write(body.slice(0, 50), () => resolve()))
  })
  // nobody has sent a whole request: the service waits for all of them, and answers others
  expect((await ping()).status).toBe(200)
  expect((await report(service, other)).status).toBe(202)
  expect((await send(`${service.opsUrl}/healthz`)).status).toBe(200)
  expect(answers).toEqual([])

  for (const { sent, rest } of requests) sent.end(rest)
  await Promise.all(requests.map(({ answer }) => answer))
  expect(answers).toHaveLength(CONNECTIONS)
  for (const { status, retryAfter } of answers) {
    expect([202, 503]).toContain(status)
    if (status === 503) expect(Number(retryAfter)).toBeGreaterThanOrEqual(1)
  }
  expect(answers.filter(({ status }) => status === 202).length).toBeGreaterThanOrEqual(100)
  // a log that is slow to take what was let in has 503 as its answer, too
  const refused = answers.filter((answer) => answer.text.includes(TOO_MANY))
  expect(refused).toHaveLength((await refusalsReported()) - before)
})
