import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyWebhook } from '../../../clients/node/index.ts'
import { type CliRun, cli } from '../../support/cli.ts'
import { newPartner, type Partner, registerWebhook } from '../../support/partners.ts'
import { type SeededTenant, seedTenant } from '../../support/seed.ts'
import { freePort } from '../../support/server-process.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

/** `webhooks listen` and `webhooks trigger`, beside a service and a local receiver that go away and come back. */

const dataDir = temporaryDirectory()
let settings: { env: Record<string, string>; dataDir: string }
let service: RunningService
let tenant: SeededTenant
let partner: Partner
let env: Record<string, string>
let subscription: string

beforeAll(async () => {
  settings = { env: { PAYMENTS_PORT: String(await freePort()) }, dataDir }
  service = await startService(settings)
  tenant = await seedTenant(service, { environment: 'sandbox' })
  partner = await newPartner(service, tenant.tenantId, { environment: 'sandbox' })
  env = environmentOf(partner)
  // nobody is there, as with an address that is not ready yet
  subscription = (await registerWebhook(partner, 'https://127.0.0.1:64999/')).id
})
afterAll(() => service?.stop())

function environmentOf({ clientId, clientSecret }: Partner): Record<string, string> {
  return {
    COMPSTREAM_PAYMENTS_URL: service.paymentsUrl,
    COMPSTREAM_CLIENT_ID: clientId,
    COMPSTREAM_CLIENT_SECRET: clientSecret,
  }
}

const webhooks = (...args: string[]): Promise<CliRun> => cli(['webhooks', ...args, '--json'], { env })

/** Triggers a sample. @returns the id of its event. */
async function triggered(type: string): Promise<string> {
  const { code, stderr, json } = await webhooks('trigger', type)
  expect([code, stderr]).toEqual([0, ''])
  expect(json()).toMatchObject({ event_type: type, delivered: false, attempts: 1 })
  return json().event_id
}

/** A local receiver over http, as a developer runs it. */
interface Local {
  readonly ids: string[]
  readonly requests: { readonly headers: Record<string, string>; readonly body: string }[]
  stop(): Promise<void>
}
async function localReceiver(port: number, status = 200): Promise<Local> {
  const requests: Local['requests'] = []
  const ids: string[] = []
  const server: Server = createServer(async (request, response) => {
    const parts = []
    for await (const part of request) parts.push(part as Buffer)
    const headers = request.headers as Record<string, string>
    requests.push({ headers, body: Buffer.concat(parts).toString() })
    ids.push(headers['x-webhook-id']!)
    response.writeHead(status).end()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    requests,
    ids,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** `webhooks listen` as it runs in a terminal. */
interface Listener {
  readonly secret: string
  /** Lines of JSON behind the first one. */
  readonly lines: Record<string, unknown>[]
  readonly notices: string[]
  readonly process: ChildProcess
}
async function listener(port: number, ...options: string[]): Promise<Listener> {
  const args = [
    'webhooks',
    'listen',
    '--forward-to',
    `http://127.0.0.1:${port}/hooks`,
    '--poll',
    '0.05',
    '--json',
  ]
  const child = spawn(process.execPath, ['dist/cli.js', ...args, ...options], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: Record<string, unknown>[] = []
  const notices: string[] = []
  createInterface({ input: child.stdout! }).on('line', (line) => {
    if (line.startsWith('{"')) lines.push(JSON.parse(line))
  })
  createInterface({ input: child.stderr! }).on('line', (line) => notices.push(line))
  await expect.poll(() => [lines.length, notices, child.exitCode]).toEqual([1, [], null])
  const { listening } = lines.shift() as { listening: { secret: string; subscription_id: string } }
  expect(listening.subscription_id).toBe(subscription)
  return { secret: listening.secret, lines, notices, process: child }
}
async function ended({ process: child }: Listener): Promise<unknown> {
  child.kill('SIGINT')
  const [code] = await once(child, 'exit')
  return code
}

test('new deliveries are forwarded once each, signed with the printed secret, whatever is answered', async () => {
  await triggered('payment.refunded')
  const port = await freePort()
  const local = await localReceiver(port, 500)
  const listening = await listener(port)
  const ids = [await triggered('payment.completed'), await triggered('installment.paid')]
  await expect
    .poll(() => listening.lines)
    .toMatchObject([
      { event_id: ids[0], event_type: 'payment.completed', status: 500 },
      { event_id: ids[1], event_type: 'installment.paid', status: 500 },
    ])
  expect(local.ids).toEqual(ids)
  for (const { headers, body } of local.requests) {
    const event = verifyWebhook({ payload: body, headers, secret: listening.secret })
    const { body: history } = await partner.call('GET', `/webhooks/${subscription}/deliveries`)
    const record = history.data.find(({ event_id }: { event_id: string }) => event_id === event.id)
    expect(event.data).toEqual(record.payload)
  }
  expect(await ended(listening)).toBe(0)
  await local.stop()
})

// it lives through real pauses; the one before it forwards what comes
test('they wait for a local receiver that is away, and for the service', { tags: 'long' }, async () => {
  const port = await freePort()
  const given = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
  env = { ...env, COMPSTREAM_WEBHOOK_SECRET: given }
  const listening = await listener(port)
  expect(listening.secret).toBe(given)
  const ids = [await triggered('payment.completed')]
  await expect.poll(() => listening.notices).toEqual([expect.stringContaining('cannot be reached')])
  ids.push(await triggered('payment.failed'))
  const local = await localReceiver(port)
  await expect.poll(() => local.ids).toEqual(ids)

  await service.kill()
  await expect.poll(() => listening.notices.length).toBe(3)
  service = await startService(settings)
  await expect.poll(() => listening.notices.at(-1)).toBe('the service is back')
  ids.push(await triggered('subscription.created'))
  await expect.poll(() => local.ids).toEqual(ids)
  // the line comes after the receiver's answer
  await expect.poll(() => listening.lines.map(({ event_id }) => event_id)).toEqual(ids)

  // a receiver that restarts is given nothing a second time
  await local.stop()
  const again = await localReceiver(port)
  const last = await triggered('installment.failed')
  await expect.poll(() => again.ids).toEqual([last])
  expect(await ended(listening)).toBe(0)
  await again.stop()
})

describe('a listener', () => {
  test('ends with the reason when the subscription is deleted', async () => {
    const port = await freePort()
    const other = await newPartner(service, (await seedTenant(service)).tenantId)
    const { id } = await registerWebhook(other, 'https://127.0.0.1:64999/')
    const own = { ...env, ...environmentOf(other) }
    const running = cli(
      ['webhooks', 'listen', '--forward-to', `http://127.0.0.1:${port}`, '--poll', '0.05', '--json'],
      {
        env: own,
      },
    )
    await other.call('DELETE', `/webhooks/${id}`)
    const { code, stderr } = await running
    expect([code, JSON.parse(stderr)]).toMatchObject([1, { ok: false }])
  })

  test.each([
    [['listen'], 2, /--forward-to/],
    [['listen', '--forward-to', 'nowhere'], 1, /not an http/],
    [['listen', '--forward-to', 'http://localhost:1', '--webhook-secret', 'hunter2'], 1, /whsec_/],
    [
      ['listen', '--forward-to', 'http://localhost:1', '--subscription', '0'.repeat(24)],
      1,
      /no webhook subscription/,
    ],
    [['trigger', 'payment.unknown'], 2, /payment\.completed, /],
    [['trigger', 'subscription.created', '--of', '0'.repeat(24)], 2, /--of/],
    [['trigger', 'payment.completed', '--subscription', '0'.repeat(24)], 1, /no webhook subscription/],
  ])('or trigger of %j ends with %i', async (args, code, message) => {
    const run = await webhooks(...args)
    expect([run.code, JSON.parse(run.stderr).message]).toEqual([code, expect.stringMatching(message)])
    expect(run.stderr).not.toContain('hunter2')
  })

  test('or trigger without credentials, or with wrong ones, is told so', async () => {
    const none = await cli(['webhooks', 'trigger', 'payment.completed', '--json'], {
      env: { COMPSTREAM_PAYMENTS_URL: service.paymentsUrl },
    })
    expect([none.code, JSON.parse(none.stderr).message]).toEqual([
      2,
      expect.stringContaining('COMPSTREAM_CLIENT_ID'),
    ])
    const wrong = await cli(['webhooks', 'trigger', 'payment.completed', '--json'], {
      env: { ...env, COMPSTREAM_CLIENT_SECRET: 'x' },
    })
    expect([wrong.code, JSON.parse(wrong.stderr).error]).toEqual([1, 'Unauthorized'])
  })

  test('asks which of several subscriptions is meant, and a trigger is for the sandbox', async () => {
    const other = await newPartner(service, tenant.tenantId, { environment: 'live' })
    const live = await cli(['webhooks', 'trigger', 'payment.completed', '--json'], {
      env: environmentOf(other),
    })
    expect([live.code, JSON.parse(live.stderr).message]).toEqual([2, expect.stringContaining('sandbox')])
    await registerWebhook(partner, 'https://127.0.0.1:64999/second')
    const several = await webhooks('trigger', 'payment.completed')
    expect([several.code, JSON.parse(several.stderr).message]).toEqual([
      2,
      expect.stringContaining('--subscription'),
    ])
    const chosen = await webhooks('trigger', 'payment.completed', '--subscription', subscription)
    expect(chosen.code).toBe(0)
  })
})
