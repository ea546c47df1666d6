// @module-tag alone: it compares how long calls take with others of the same run
import { Agent, request } from 'node:http'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { percentile } from '../../../bench/statistics.ts'
import { employeeRecord, reportBody } from '../../support/core.ts'
import { partner } from '../../support/payments.ts'
import { operate, payrollRow, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

/** Milliseconds that nobody may be held up by anybody else, on a machine that is as fast as the idle service shows. */
const ALLOWED_MS = 250
/** Milliseconds between two pings. */
const PAUSE_MS = 10

let service: RunningService
let attacker: SeededTenant
let victim: SeededTenant
let seller: SeededTenant
let plain: { worker: Worker; url: string }
const agents: Agent[] = []

beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '100' } })
  const class_codes = Array.from({ length: 500 }, (_, index) => String(1000 + index))
  attacker = await seedTenant(service, { policy: { class_codes, rates: [] } })
  victim = await seedTenant(service)
  seller = await seedTenant(service)
  const worker = new Worker(new URL('../../support/plain-server.mjs', import.meta.url))
  const port = await new Promise((resolve) => worker.once('message', resolve))
  plain = { worker, url: `http://127.0.0.1:${port}` }
})
afterAll(async () => {
  for (const agent of agents) agent.destroy()
  await plain?.worker.terminate()
  await service?.stop()
})

/** One connection of its own that asks again and again. */
function asker(url: string, headers: Record<string, string>, body: string): () => Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agents.push(agent)
  return () =>
    new Promise((resolve, reject) => {
      const start = performance.now()
      const sent = request(url, {
        method: 'POST',
        agent,
        headers: { ...headers, 'Content-Length': body.length },
      })
      sent.on('response', (response) => {
        response.resume()
        response.on('end', () =>
          response.statusCode === 200
            ? resolve(performance.now() - start)
            : reject(new Error(`A ping was answered with ${response.statusCode}`)),
        )
      })
      sent.on('error', reject)
      sent.end(body)
    })
}

/** How long pings of the victim take, and asking the plain server, until told to stop. */
async function pingUntil(stopped: Promise<unknown>): Promise<{ ping: number; machine: number }> {
  let isStopped = false
  const stop = stopped.finally(() => {
    isStopped = true
  })
  const ping = asker(
    `${service.mcpUrl}/mcp`,
    { Authorization: `Bearer ${victim.apiKey}` },
    '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  )
  const other = asker(plain.url, {}, '{}')
  const measure = async (ask: () => Promise<number>) => {
    const times: number[] = []
    while (!isStopped || times.length < 100) {
      times.push(await ask())
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
    return percentile(times, 0.99)
  }
  const [pinged, machine] = await Promise.all([measure(ping), measure(other)])
  await stop
  return { ping: pinged, machine }
}

const deep = `'{"id":1,"a":["\\\\ud83d\\\\ude00",' + Array(94000).fill('[[[[]]]]').join() + ']}'`
const uniqueKeys = `'{"id":1,"a":[' + Array.from({ length: 700000 }, (_, i) => '{"k' + i + '":0}').join() + ']}'`
const rows = (record: unknown, count: number, around: (rows: string) => unknown) => {
  const text = JSON.stringify(around('ROWS'))
  const [before, after] = text.split('"ROWS"') as [string, string]
  return `${JSON.stringify(before)} + JSON.stringify(Array.from({ length: ${count} }, (_, i) =>
    ({ ...${JSON.stringify(record)}, employee_id: 'E-' + i }))) + ${JSON.stringify(after)}`
}

/** Creates a page of the largest payment links or subscriptions that there can be. */
async function fillPage(kind: 'links' | 'plans'): Promise<void> {
  const metadata = Object.fromEntries(
    Array.from({ length: 500 }, (_, n) => [`key-${n}`, 'x'.repeat(kind === 'links' ? 110 : 1)]),
  )
  const body = {
    employer_id: seller.employerId,
    carrier_id: seller.carrierId,
    policy_id: seller.policyId,
    metadata,
    premium_cents: 1_000_000,
    payment_context: 'down_payment',
    delivery: { email: false },
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
    ...(kind === 'links'
      ? {
          payment_type: 'ONE_TIME',
          fee_breakdown: Array(200).fill({ label: 'é'.repeat(100), amount_cents: 1 }),
        }
      : { payment_type: 'DIRECT_BILLING', total_installments: 360, down_payment_months: 1 }),
  }
  for (let made = 0; made < 200; ) {
    const answer = await partner(service, seller.clientHeaders, 'POST', '/payment-links', body)
    expect([201, 429], answer.text).toContain(answer.status)
    if (answer.status === 429) await new Promise((resolve) => setTimeout(resolve, 1000))
    else {
      made += 1
      await operate(service, 'POST', `/card-processor/${answer.body.data._id}/succeed`)
    }
  }
  await operate(service, 'POST', '/drain')
}

interface Attack {
  readonly what: string
  url(): string
  headers(): Record<string, string>
  /** None: it asks, for a page that is made before. */
  readonly body?: () => string
  readonly prepare?: () => Promise<void>
  readonly times: number
}
const tool = () => `${service.mcpUrl}/mcp`
const core = (path: string) => () => `${service.coreUrl}/api/v1${path}`
const agentKey = () => ({ Authorization: `Bearer ${attacker.apiKey}` })
const client = () => attacker.clientHeaders
const badKey = () => ({ Authorization: 'Bearer mcp_0000000000000000000000000000000000000000' })

const attacks: readonly Attack[] = [
  { what: 'deep arrays without a key', url: tool, headers: () => ({}), body: () => deep, times: 5 },
  { what: 'many keys under a wrong key', url: tool, headers: badKey, body: () => uniqueKeys, times: 5 },
  {
    what: 'many keys without credentials',
    url: core('/payroll/reports'),
    headers: () => ({}),
    body: () => uniqueKeys,
    times: 5,
  },
  { what: 'deep arrays', url: tool, headers: agentKey, body: () => deep, times: 5 },
  { what: 'many keys', url: tool, headers: agentKey, body: () => uniqueKeys, times: 5 },
  {
    what: 'many keys in a report',
    url: core('/payroll/reports'),
    headers: client,
    body: () => uniqueKeys,
    times: 5,
  },
  {
    what: 'a dry run of 50,000 bad rows',
    url: tool,
    headers: agentKey,
    body: () =>
      rows(payrollRow({ class_code: 'XXXX', state: 'ZZ' }), 50_000, (given) => ({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'validate_payroll_submission',
          arguments: { employer_id: attacker.employerId, policy_id: attacker.policyId, rows: given },
        },
      })),
    times: 5,
  },
  {
    what: 'reports of 50,000 persons under a key',
    url: core('/payroll/reports'),
    headers: () => ({ ...client(), 'Idempotency-Key': 'large' }),
    body: () =>
      rows(employeeRecord({ class_code: '1000' }), 50_000, (given) =>
        reportBody(attacker, { employees: given }),
      ),
    times: 3,
  },
  ...(['links', 'plans'] as const).map((kind) => ({
    what: `pages of 200 of the largest ${kind}`,
    url: () =>
      `${service.paymentsUrl}/api/v1/${kind === 'links' ? 'payment-links' : 'subscriptions'}?limit=200`,
    headers: () => seller.clientHeaders,
    prepare: () => fillPage(kind),
    times: 3,
  })),
  {
    what: 'syncs of 50,000 persons',
    url: core('/employees/sync'),
    headers: client,
    body: () =>
      rows({ action: 'hire', name: 'Ada Baker', hire_date: '2026-01-01' }, 50_000, (given) => ({
        employer_id: attacker.employerId,
        employees: given,
      })),
    times: 3,
  },
]

it.each(attacks)('is answered in time during $what', async ({ url, headers, body, prepare, times }) => {
  await prepare?.()
  // without it the machine's first seconds count
  const idle = await pingUntil(new Promise((resolve) => setTimeout(resolve, 2000)))
  const worker = new Worker(new URL('../../support/volley.mjs', import.meta.url), {
    workerData: { url: url(), headers: headers(), body: body?.(), times },
  })
  await new Promise((resolve) => worker.once('message', resolve))
  const answered = new Promise<number[]>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  worker.postMessage('send')
  plain.worker.postMessage('work')
  const during = await pingUntil(answered)
  plain.worker.postMessage('rest')
  const statuses = await answered
  await worker.terminate()
  expect(statuses).toHaveLength(times)
  for (const status of statuses) expect([200, 202, 400, 401, 413, 429]).toContain(status)
  // what a server takes that does as much work in slices, and nothing else, is the machine's doing
  const allowed = Math.max(ALLOWED_MS, 3 * idle.ping) + 3 * during.machine
  expect(during.ping, `idle ${idle.ping}, machine ${during.machine}`).toBeLessThan(allowed)
})
