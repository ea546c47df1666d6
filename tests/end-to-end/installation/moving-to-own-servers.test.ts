// @module-tag once: it has both engines at once
// @module-tag long: integration/installation/moved-database and copy-events move what it moves, pairing refuses what does not belong together
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../../infrastructure/database/migrate.ts'
import { cli } from '../../support/cli.ts'
import { logHead, post, reportBody, serviceTime, sign, status } from '../../support/core.ts'
import { createTestDatabase, sessionsThatWait } from '../../support/database.ts'
import { findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { expectComplete, type LargePayroll, largePayroll } from '../../support/large-payroll.ts'
import { continueStory, expectStory, makeStory, type Story, storedLog } from '../../support/payroll-story.ts'
import { type Answer, askOperator, newFein, operate, payrollRow, sendRpc } from '../../support/seed.ts'
import { type RunningService, startProcess } from '../../support/service.ts'
import { withClient } from '../../support/table-copies.ts'
import { until } from '../../support/workbench.ts'

const hasEventStore = (await findEventStore()) !== null

/** A request under a key, to be sent again and again. */
interface Keyed {
  readonly what: string
  send(service: RunningService): Promise<Answer>
  first: Answer
}

/** What the embedded installation holds when it is stopped, in its data directory. */
let dataDir: string
let story: Story
let keyed: Keyed[]
/** The employee register with what is sealed in it opened. */
let register: unknown
/** The log as it stands, but for positions, which are those of an engine. */
let log: unknown[]
let held: { fileId: string; payroll: LargePayroll }

const closers: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'compstream-own-'))
  closers.push(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}

/** Requests of every kind that a key makes repeatable, each under several keys. */
function requests(service: RunningService): Omit<Keyed, 'first'>[] {
  const { tenant, connection } = story
  const under = (key: string) => ({ 'Idempotency-Key': key })
  const now = serviceTime(service)
  return [1, 2, 3].flatMap((n): Omit<Keyed, 'first'>[] => {
    const employer = {
      tenant_id: tenant.tenantId,
      environment: 'live',
      legal_name: `Keyed Bakery ${n} LLC`,
      fein: newFein(),
      address: { line1: '1 Main St', city: 'Reno', state: 'NV', zip: '89501' },
      contact_email: `payroll-${n}@bakery.example`,
    }
    const push = JSON.stringify(reportBody(tenant, { pay_period: period(n) }))
    return [
      {
        what: `report ${n}`,
        send: (to) =>
          post(
            to,
            '/api/v1/payroll/reports',
            { ...tenant.clientHeaders, ...under(`report-${n}`) },
            reportBody(tenant),
          ),
      },
      {
        what: `sync ${n}`,
        send: (to) =>
          post(
            to,
            '/api/v1/employees/sync',
            { ...tenant.clientHeaders, ...under(`sync-${n}`) },
            {
              employer_id: tenant.employerId,
              employees: [
                { employee_id: `K-${n}`, action: 'hire', name: 'Key Holder', hire_date: '2026-01-05' },
              ],
            },
          ),
      },
      {
        what: `employer ${n}`,
        send: (to) => askOperator(to, 'POST', '/employers', employer, under(`employer-${n}`)),
      },
      {
        what: `tool call ${n}`,
        send: (to) =>
          sendRpc(
            to,
            tenant.apiKey,
            {
              jsonrpc: '2.0',
              id: n,
              method: 'tools/call',
              params: {
                name: 'submit_payroll_data',
                arguments: {
                  employer_id: tenant.employerId,
                  policy_id: tenant.policyId,
                  rows: [payrollRow()],
                },
              },
            },
            under(`tool-${n}`),
          ),
      },
      {
        what: `signed push ${n}`,
        send: async (to) =>
          post(
            to,
            `/api/v1/webhook/inbound/${connection.connection_id}`,
            {
              'X-Webhook-Timestamp': String(await now),
              'X-Webhook-Signature': sign(connection.secret, await now, push),
              ...under(`push-${n}`),
            },
            push,
          ),
      },
    ]
  })
}

function period(n: number) {
  return { start_date: `2026-0${n}-01`, end_date: `2026-0${n}-15` }
}

beforeAll(async () => {
  dataDir = await temporary()
  const service = await startProcess({ dataDir })
  story = await makeStory(service)
  keyed = []
  for (const request of requests(service)) {
    const first = await request.send(service)
    expect([200, 201, 202], `${request.what}: ${first.text}`).toContain(first.status)
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    keyed.push({ ...request, first })
  }
  await operate(service, 'POST', '/drain')
  // a file on its way: its next step is work in the database
  await operate(service, 'POST', '/faults', { point: 'pipeline', mode: 'hold' })
  const payroll = largePayroll(1_200, 7)
  const large = { employees: payroll.employees }
  const { body } = await post(
    service,
    '/api/v1/payroll/reports',
    story.tenant.clientHeaders,
    reportBody(story.tenant, large),
  )
  held = { fileId: body.report_id, payroll }
  await until(async () => (await operate(service, 'GET', '/work')).counts.held === 1)
  register = await registerOf(service)
  log = await contentOf(service)
  expect(await service.end()).toBe(0)
})

function registerOf(service: RunningService): Promise<unknown> {
  const path = `/employers/${story.tenant.employerId}/register?limit=200&reveal=true`
  return operate(service, 'GET', path)
}

async function contentOf(service: RunningService): Promise<unknown[]> {
  // a look at what is sealed is recorded, too
  const events = (await storedLog(service)).filter(({ stream }) => !stream.startsWith('operatorAction-'))
  return events.map(({ position: _, ...content }) => content)
}

/** A copy of the embedded installation as it was stopped. */
async function embedded(): Promise<string> {
  const directory = join(await temporary(), 'data')
  await cp(dataDir, directory, { recursive: true, preserveTimestamps: true })
  return directory
}

async function emptyDatabase(): Promise<string> {
  const database = await createTestDatabase({ migrate: false })
  closers.push(database.drop)
  return database.url
}

async function emptyEventStore(): Promise<string> {
  const server = await startEventStore()
  closers.push(() => server.stop())
  return server.url
}

/** The one command, with the settings of the target. */
function move(from: string, env: Record<string, string>) {
  const places = env.EVENTSTORE_URL
    ? ['--to', 'EVENTSTORE_URL', '--to-database', 'DATABASE_URL']
    : ['--to', 'DATABASE_URL']
  return cli(['events', 'copy', '--from', 'embedded', ...places, '--json'], {
    env: { ...env, DATA_DIR: from },
  })
}

async function startOn(env: Record<string, string>, directory?: string): Promise<RunningService> {
  const service = await startProcess({ dataDir: directory ?? (await temporary()), env })
  closers.push(() => service.kill())
  return service
}

/** Nothing of what was acknowledged is stored again, and everything is answered as it was at first. */
async function expectFirstAnswers(service: RunningService): Promise<void> {
  const head = await logHead(service)
  for (const { what, first, send } of keyed) {
    const again = await send(service)
    expect(again.headers.get('idempotent-replayed'), `${what}: ${again.text}`).toBe('true')
    expect(again.body, what).toEqual(first.body)
  }
  expect(await logHead(service)).toBe(head)
}

/** Everything that the embedded service acknowledged holds on another one, and goes on there. */
async function expectEverything(service: RunningService): Promise<void> {
  await operate(service, 'POST', '/drain')
  expect((await contentOf(service)).slice(0, log.length)).toEqual(log)
  expect(await registerOf(service)).toEqual(register)
  await expectStory(service, { ...story, register: expect.anything(), log: [] })
  await expectFirstAnswers(service)
  await expectComplete(service, story.tenant, held.fileId, held.payroll)
  expect((await status(service, story.tenant, held.fileId)).body.status).toBe('NORMALIZED')
  await continueStory(service, story)
  const erased = { employer_id: story.tenant.employerId, employee_id: 'K-1' }
  await operate(service, 'POST', '/erasures', erased)
  await operate(service, 'POST', '/drain')
  const shown = JSON.stringify(await registerOf(service))
  expect(shown).toContain('(erased)')
  expect(shown).not.toContain('(unreadable)')
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
}

const secretsOf = async (env: Record<string, string>, directory: string) => [
  ...Object.values(env).map((value) => (value.includes('://') ? new URL(value).password : value)),
  (await readFile(join(directory, 'master-key'), 'utf8')).trim(),
  ...[story.tenant.clientSecret, story.tenant.apiKey, story.connection.secret],
]

const newKey = () => randomBytes(32).toString('base64')
const targets = [
  ['PostgreSQL', async () => ({ DATABASE_URL: await emptyDatabase() })],
  ...(hasEventStore
    ? ([
        [
          'EventStoreDB and PostgreSQL',
          async () => ({ DATABASE_URL: await emptyDatabase(), EVENTSTORE_URL: await emptyEventStore() }),
        ],
      ] as const)
    : []),
] as const

describe.each(targets)("from the embedded default to %s of one's own", (_, servers) => {
  test('one command carries everything over, under another master key, and the old place is refused', async () => {
    const from = await embedded()
    const env = { ...(await servers()), MASTER_KEY: newKey(), OPERATOR_TOKEN: newKey() }
    const run = await move(from, env)
    expect(run.code, run.stderr).toBe(0)
    const { data_keys: dataKeys, secrets, work } = run.json().database.carried
    expect(run.json()).toMatchObject({
      logs_equal: true,
      equal: true,
      database: { outcome: 'moved', checkpoints: expect.any(Number) },
      not_carried: expect.arrayContaining([expect.stringMatching(/^read models/)]),
    })
    expect(dataKeys).toBeGreaterThan(1_000)
    expect([secrets, work]).toEqual([3, 1])
    for (const secret of (await secretsOf(env, from)).filter((text) => text.length >= 8)) {
      expect(run.stdout + run.stderr).not.toContain(secret)
    }
    // two services with the same keys would each accept what the other never hears of
    await expect(startOn({}, from)).rejects.toThrow(/was moved to PostgreSQL at [^\n]+: start it there/)
    // nothing was made by a service yet: again, and it comes to the same
    expect((await move(from, env)).json()).toMatchObject({ equal: true, copied: 0 })
    await expectEverything(await startOn(env))
  })
})

describe('a target', () => {
  const [, servers] = targets[0]

  test('without a master key is refused before anything is written', async () => {
    const from = await embedded()
    const env = await servers()
    const run = await move(from, env)
    expect([run.code, run.stdout]).toEqual([1, ''])
    expect(JSON.parse(run.stderr).message).toMatch(
      /^MASTER_KEY is missing: expected the one that the service on PostgreSQL/m,
    )
    const verified = await cli(['events', 'verify', '--at', Object.values(env).at(-1)!, '--json'])
    expect(verified.json()).toMatchObject({ events: 0 })
    expect(await startOn({}, from).then((service) => service.end())).toBe(0)
  })

  test('with the keys of another installation is refused, and keeps them', async () => {
    const from = await embedded()
    const env = { ...(await servers()), MASTER_KEY: newKey(), OPERATOR_TOKEN: newKey() }
    await (await startOn(env)).end()
    const run = await move(from, env)
    expect([run.code, run.stdout]).toEqual([1, ''])
    expect(run.stderr).toMatch(/holds the keys of another installation: take an empty database/)
    await (await startOn(env)).end()
  })
})

test('back to the embedded server, and forth again', async () => {
  const from = await embedded()
  const env = { DATABASE_URL: await emptyDatabase(), MASTER_KEY: newKey(), OPERATOR_TOKEN: newKey() }
  expect((await move(from, env)).code).toBe(0)
  const service = await startOn(env)
  await operate(service, 'POST', '/drain')
  await continueStory(service, story)
  await service.end()
  // MASTER_KEY is that of the target; what opens the keys comes behind it
  const masterKey = (await readFile(join(from, 'master-key'), 'utf8')).trim()
  const back = await cli(['events', 'copy', '--from', 'DATABASE_URL', '--to', 'embedded', '--json'], {
    env: { ...env, DATA_DIR: from, MASTER_KEY: `${masterKey},${env.MASTER_KEY}` },
  })
  expect(back.code, back.stderr).toBe(0)
  await expect(startOn(env)).rejects.toThrow(/was moved to PostgreSQL at/)
  const again = await startOn({}, from)
  await operate(again, 'POST', '/drain')
  await expectFirstAnswers(again)
  await again.end()
  expect((await move(from, env)).json()).toMatchObject({ equal: true })
  await expectEverything(await startOn(env))
})

describe.skipIf(!hasEventStore)('a full log in EventStoreDB', () => {
  test('is refused on an empty database, given or embedded, and its database can follow later', async () => {
    const from = await embedded()
    const eventStore = { EVENTSTORE_URL: await emptyEventStore() }
    const masterKey = (await readFile(join(from, 'master-key'), 'utf8')).trim()
    const own = { ...eventStore, MASTER_KEY: masterKey, OPERATOR_TOKEN: newKey() }
    const log = await cli(['events', 'copy', '--from', from, '--to', eventStore.EVENTSTORE_URL, '--json'])
    expect(log.json()).toMatchObject({ equal: true, database: { carried: null } })
    // as after a start with a new DATABASE_URL
    const empty = { ...own, DATABASE_URL: await emptyDatabase() }
    const refusal =
      /^The service ended with code 1:\n(?:\{[^\n]+\n)*(DATABASE_URL|DATA_DIR): the event log holds events, and this database holds no keys of it: [^\n]+$/
    for (let start = 0; start < 2; start += 1) await expect(startOn(empty)).rejects.toThrow(refusal)
    // as after the loss of a data directory
    await expect(startOn(own)).rejects.toThrow(refusal)
    await withClient(empty.DATABASE_URL, async (client) => {
      expect((await client.query('SELECT FROM runtime.secrets')).rowCount).toBe(0)
    })
    const database = await cli(
      [
        ...['events', 'copy', '--from', 'EVENTSTORE_URL', '--to', 'EVENTSTORE_URL', '--json'],
        ...['--from-database', from, '--to-database', 'DATABASE_URL'],
      ],
      { env: empty },
    )
    expect(database.code, database.stderr).toBe(0)
    expect(database.json()).toMatchObject({ equal: true, copied: 0, database: { outcome: 'moved' } })
    await expect(startOn(own, from)).rejects.toThrow(/was moved to PostgreSQL at/)
    await expectEverything(await startOn(empty))
  })
})

describe('killed on the way', () => {
  /** Starts the command in a process of its own. */
  function start(from: string, env: Record<string, string>) {
    const to = env.EVENTSTORE_URL
      ? ['--to', 'EVENTSTORE_URL', '--to-database', 'DATABASE_URL']
      : ['--to', 'DATABASE_URL']
    const child = spawn(
      process.execPath,
      ['bin/compstream.js', 'events', 'copy', '--from', 'embedded', ...to, '--json'],
      { env: { PATH: process.env.PATH, ...env, DATA_DIR: from }, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (text) => {
      stdout += text
    })
    child.stderr.on('data', (text) => {
      stderr += text
    })
    return {
      child,
      ended: new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
        child.once('close', (code) => resolve({ code, stdout, stderr })),
      ),
    }
  }

  /** What the command writes at the target one after the other, when the whole log is there. */
  const TABLES = ['process_managers', 'data_keys', 'secrets', 'last_used', 'work', 'projections']

  /** Kills the command as soon as it waits to write to a table of the target. */
  async function killAt(table: string, from: string, env: Record<string, string>): Promise<void> {
    await withClient(env.DATABASE_URL!, async (holder) => {
      await holder.query(`BEGIN; LOCK TABLE runtime.${table} IN SHARE ROW EXCLUSIVE MODE`)
      const run = start(from, env)
      try {
        await until(async () => (await sessionsThatWait(holder)) > 0)
      } finally {
        run.child.kill('SIGKILL')
        await run.ended
      }
      await holder.query('ROLLBACK')
      const { rows } = await holder.query('SELECT ref FROM runtime.secrets')
      expect(rows).toEqual([])
    })
  }

  test.each(targets)(
    'to %s, the same command goes on, and everything is carried once',
    {
      timeout: 300_000,
    },
    async (_, servers) => {
      const from = await embedded()
      const env = { ...(await servers()), MASTER_KEY: newKey(), OPERATOR_TOKEN: newKey() }
      await migrate({ url: env.DATABASE_URL })
      for (const table of TABLES) await killAt(table, from, env)
      const last = await start(from, env).ended
      expect(last.code, last.stderr).toBe(0)
      expect(JSON.parse(last.stdout)).toMatchObject({ equal: true })
      await expectEverything(await startOn(env))
    },
  )
})
