// @module-tag once: it restarts processes under load
// @module-tag long: unit/http/shutdown restarts a host without nginx
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { findProgram } from '../../support/find-server.ts'
import { enableCheckout, newSession, tokenOf } from '../../support/payment-sessions.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { freePort } from '../../support/server-process.ts'
import { type RunningService, startProcess } from '../../support/service.ts'
import { underLoad } from '../../support/under-load.ts'
import { until } from '../../support/workbench.ts'

const nginxPath = await findProgram(['nginx'])

/** Host names of deploy/nginx.conf. */
const CORE = 'api.example.com'
const MCP = 'mcp.example.com'
const PAYMENTS = 'payments.example.com'
const PORTAL = 'pay.example.com'

describe.skipIf(nginxPath === null)('nginx before two api processes (needs nginx)', () => {
  let database: TestDatabase
  let directory: string
  let env: Record<string, string>
  let others: RunningService
  let apis: RunningService[]
  let tenant: SeededTenant
  let nginx: ChildProcess
  let port: number

  const start = async (settings: Record<string, string>) => {
    const service = await startProcess({ dataDir: directory, env: { ...env, ...settings } })
    await until(async () => (await send(`${service.opsUrl}/readyz`)).status === 200)
    return service
  }

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: false })
    directory = await mkdtemp(join(tmpdir(), 'compstream-nginx-'))
    env = {
      DATABASE_URL: database.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
      MCP_URL: `https://${MCP}`,
      CLOCK: 'system',
    }
    others = await start({ ROLES: 'projector,worker' })
    apis = [await start({ ROLES: 'api' }), await start({ ROLES: 'api' })]
    tenant = await seedTenant(apis[0]!)
    port = await freePort()
    nginx = await startNginx(directory, port, apis)
    await until(async () => (await ask('GET', CORE, '/nothing').catch(() => null))?.status === 404)
  })
  afterAll(async () => {
    if (nginx && nginx.exitCode === null) {
      const exited = new Promise((resolve) => nginx.once('exit', resolve))
      nginx.kill('SIGQUIT')
      await exited
    }
    for (const service of [...(apis ?? []), others]) await service?.stop()
    await database?.drop()
    await rm(directory, { recursive: true, force: true })
  })

  const agent = new Agent({ keepAlive: true })

  /** A request to the proxy. */
  function ask(
    method: string,
    host: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, method, path, agent, headers: { ...headers, Host: host } }
      const sent = httpRequest(options, (answer) => {
        let text = ''
        answer.on('data', (part) => {
          text += part
        })
        answer.once('end', () => resolve({ status: answer.statusCode!, text }))
      })
      sent.once('error', reject)
      sent.end(body)
    })
  }

  test('pages of a tenant are found under its own host and port, and no log has their addresses', async () => {
    const web_address = 'pay.partner.example:8443'
    await enableCheckout(apis[0]!, tenant, { web_address, link_format: '/to/{token}' })
    await operate(apis[0]!, 'POST', `/tenants/${tenant.tenantId}/checkout/verify-web-address`, {
      force: true,
    })
    const session = await newSession(apis[0]!, tenant)
    const token = tokenOf(session)
    expect(session.url).toBe(`https://${web_address}/to/${token}`)
    const page = await ask('GET', web_address, `/to/${token}`)
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('Harbor Premium Pay')])

    // of the servers behind each, one is away: that is an error of nginx, which names the request
    const look = async (host: string, path: string, status: number) => {
      for (let n = 0; n < 3; n += 1) expect((await ask('GET', host, path)).status).toBe(status)
    }
    await look(PORTAL, `/pay/${token}`, 200)
    await look(PAYMENTS, `/public/payment-sessions/${token}`, 200)
    await look(PAYMENTS, '/public/financing-checkouts/nobody', 404)
    await look(PAYMENTS, '/api/v1/known', 404)
    const logOf = (name: string) => readFile(join(directory, 'nginx', name), 'utf8')
    for (const name of ['access.log', 'error.log']) {
      await until(async () => (await logOf(name)).includes('/api/v1/known'))
      const text = await logOf(name)
      expect([token, '/public/', '/pay/', '/to/'].filter((one) => text.includes(one))).toEqual([])
    }
  })

  test('callers see nothing of processes that are restarted one after another', async () => {
    const seen = new Map<string, number>()
    const rpc = { Authorization: `Bearer ${tenant.apiKey}`, 'Content-Type': 'application/json' }
    const sendOne = async (sender: number) => {
      const what = ['status', 'ping'][sender % 2]!
      const { status } =
        what === 'status'
          ? await ask('GET', CORE, `/api/v1/files/status/${'0'.repeat(24)}`, tenant.clientHeaders)
          : await ask('POST', MCP, '/mcp', rpc, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }))
      const key = `${what} ${status}`
      seen.set(key, (seen.get(key) ?? 0) + 1)
    }
    await underLoad(8, sendOne, async (more) => {
      await more(400)
      for (const [index, api] of apis.entries()) {
        expect(await api.end()).toBe(0)
        await more(400)
        apis[index] = await start({
          ROLES: 'api',
          CORE_PORT: new URL(api.coreUrl).port,
          MCP_PORT: new URL(api.mcpUrl).port,
        })
        await more(400)
      }
    })
    expect([...seen.keys()].sort()).toEqual(['ping 200', 'status 404'])
  })
})

/**
 * deploy/nginx.conf without TLS and with a rate that one caller cannot reach, before two processes. Payments and pages
 * have a third one, which is away.
 */
async function startNginx(
  directory: string,
  port: number,
  apis: readonly RunningService[],
): Promise<ChildProcess> {
  const folder = join(directory, 'nginx')
  await mkdir(folder)
  const away = String(await freePort())
  const ports: Record<string, string[]> = {
    4001: apis.map(({ mcpUrl }) => new URL(mcpUrl).port),
    4002: apis.map(({ coreUrl }) => new URL(coreUrl).port),
    4003: [...apis.map(({ paymentsUrl }) => new URL(paymentsUrl).port), away],
    4004: [...apis.map(({ portalUrl }) => new URL(portalUrl).port), away],
  }
  const deployed = (await readFile('deploy/nginx.conf', 'utf8'))
    .replace(/^ssl_.*$/gm, '')
    .replaceAll('/var/log/nginx', folder)
    .replaceAll('listen 443 ssl', `listen 127.0.0.1:${port}`)
    .replace('rate=100r/s', 'rate=100000r/s')
    .replace(/server 127\.0\.0\.1:(\d+)([^;]*);/g, (_, from, parameters) =>
      ports[from]!.map((to) => `server 127.0.0.1:${to}${parameters};`).join(' '),
    )
  const file = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((what) => `${what}_temp_path ${join(folder, what)};`)
    .join('\n')
  await writeFile(
    file,
    `pid ${join(folder, 'pid')};\nworker_processes 1;\nevents { worker_connections 256; }\n` +
      `http {\naccess_log ${join(folder, 'access.log')};\n${temporary}\n${deployed}\n}\n`,
  )
  return spawn(nginxPath!, ['-p', folder, '-c', file, '-e', join(folder, 'error.log'), '-g', 'daemon off;'], {
    stdio: 'inherit',
  })
}
