// @module-tag once: it starts the embedded server itself
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { databaseProcesses } from '../../support/chaos.ts'
import { allEvents, employeeRecord, report, status } from '../../support/core.ts'
import { callTool, operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { until } from '../../support/workbench.ts'

const dataDir = temporaryDirectory()

const FREE_PORTS = { MCP_PORT: '0', CORE_PORT: '0', PAYMENTS_PORT: '0', PORTAL_PORT: '0', OPS_PORT: '0' }

/** A process and what it wrote. */
interface Started {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  readonly exit: Promise<{ code: number | null; signal: string | null }>
}

const started: Started[] = []
afterEach(() => {
  // with what it started: npm does not pass SIGKILL on
  for (const { child } of started.splice(0)) if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
})

function start(command: string, args: readonly string[], env: Record<string, string>): Started {
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TECHNICAL_DEADLINE_SCALE: process.env.TECHNICAL_DEADLINE_SCALE,
      ...FREE_PORTS,
      DATA_DIR: dataDir,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const exit = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  )
  const running = { child, out: () => out, err: () => err, exit }
  started.push(running)
  return running
}

/** The addresses of the ready line. */
async function ready(running: Started): Promise<Record<string, string>> {
  const line = () =>
    running
      .out()
      .split('\n')
      .find((text) => text.includes('"ready"') && text.endsWith('}'))
  await until(() => line() !== undefined)
  return JSON.parse(line()!)
}

describe('a stopped service', () => {
  let service: RunningService
  let tenant: SeededTenant
  let token: string
  const large = Array.from({ length: 600 }, (_, index) => employeeRecord({ employee_id: `E-${index}` }))

  afterAll(() => service?.stop())

  test('answers what is in flight, drains and exits 0', async () => {
    service = await startService({ dataDir })
    token = service.operatorToken
    tenant = await seedTenant(service)
    const before = (await allEvents(service, 'PayrollFileReceived')).length
    const inFlight = Array.from({ length: 3 }, () => report(service, tenant, { employees: large }))
    await until(async () => (await allEvents(service, 'PayrollFileReceived')).length > before)
    expect(await service.end()).toBe(0)
    const answers = await Promise.all(inFlight)
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 202))
    expect(await databaseProcesses(dataDir)).toEqual([])
    for (const line of service.output) expect(JSON.parse(line).level, line).toBe('info')

    service = await startService({ dataDir })
    await operate(service, 'POST', '/drain')
    for (const { body } of answers) {
      expect((await status(service, tenant, body.report_id)).body).toMatchObject({
        status: 'NORMALIZED',
        phase_3: { processed_rows: 600 },
      })
    }
  })

  test('continues where it stopped: token, credentials, read models and personal data', async () => {
    expect(service.operatorToken).toBe(token)
    const { result } = await callTool(service, tenant.apiKey, 'list_employer_policies', {
      employer_id: tenant.employerId,
    })
    expect(result.policy_count).toBe(1)
    expect((await operate(service, 'GET', `/employers/${tenant.employerId}`)).fein).toBe(tenant.fein)
    expect((await operate(service, 'POST', '/audit/verify')).verified).toBe(true)
    expect((await report(service, tenant)).status).toBe(202)
  })
})

describe('npm start', () => {
  // the first test here ends by SIGTERM; the other services of the tests start with the same command
  test('drains and exits 0 on SIGINT', { tags: 'long' }, async () => {
    const running = start('npm', ['start'], {})
    const { ops } = await ready(running)
    expect((await send(`${ops}/readyz`)).status).toBe(200)
    running.child.kill('SIGINT')
    expect(await running.exit).toEqual({ code: 0, signal: null })
    expect(running.out()).toContain('"stopped"')
    expect(await databaseProcesses(dataDir)).toEqual([])
    await expect(send(`${ops}/readyz`)).rejects.toThrow()
  })
})

describe('settings that cannot work end the start with one clear line and exit code 1', () => {
  let taken: Server
  let takenPort: number
  const emptyDir = temporaryDirectory()
  const key = randomBytes(32).toString('base64')

  beforeAll(async () => {
    taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    takenPort = (taken.address() as { port: number }).port
  })
  afterAll(() => void taken.close())

  interface Wrong {
    readonly what: string
    readonly env: () => Record<string, string>
    readonly line: RegExp
    readonly tags?: 'long'
  }
  // unit/config/config has every other setting and key, integration/database/embedded-postgres files in the way
  const wrong: readonly Wrong[] = [
    {
      what: 'a port that is in use',
      env: () => ({ CORE_PORT: String(takenPort) }),
      line: /^CORE_PORT: .*in use/,
      tags: 'long',
    },
    {
      what: 'a database that does not answer',
      env: () => ({ DATABASE_URL: 'postgresql://me:s3cretpass@127.0.0.1:1/db', MASTER_KEY: key }),
      line: /^PostgreSQL at 127\.0\.0\.1:1\/db: .*ECONNREFUSED/,
    },
    {
      what: 'a host that is none',
      env: () => ({ HOST: '192.0.2.1' }),
      line: /192\.0\.2\.1.*cannot be bound/,
      tags: 'long',
    },
  ]
  for (const { what, env, line, tags } of wrong)
    test(what, { tags }, async () => {
      const running = start(process.execPath, ['dist/main.js'], env())
      expect((await running.exit).code).toBe(1)
      const lines = running.err().trimEnd().split('\n')
      expect(lines).toEqual([expect.stringMatching(line)])
      expect(running.out()).not.toContain('"ready"')
      expect(running.out() + running.err()).not.toMatch(/s3cret|at .*\.(ts|js):\d/)
    })

  // integration/database/embedded-postgres starts an interrupted initdb over
  test('what they stopped half-way is no obstacle for a start that can work', { tags: 'long' }, async () => {
    const env = { DATA_DIR: join(emptyDir, 'data') }
    const stopped = start(process.execPath, ['dist/main.js'], { ...env, CORE_PORT: String(takenPort) })
    expect((await stopped.exit).code).toBe(1)
    const running = start(process.execPath, ['dist/main.js'], env)
    await ready(running)
    const token = (await readFile(join(emptyDir, 'data', 'operator-token'), 'utf8')).trim()
    expect(token.length).toBeGreaterThan(8)
    running.child.kill('SIGTERM')
    expect((await running.exit).code).toBe(0)
  })
})
