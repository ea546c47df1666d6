// @module-tag once: its subject is the same whatever holds the log
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { build } from 'esbuild'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { copyBinaries } from '../../../infrastructure/embedded-postgres/binaries.ts'
import {
  EmbeddedPostgresError,
  lockDataDirectory,
} from '../../../infrastructure/embedded-postgres/data-directory-lock.ts'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../infrastructure/embedded-postgres/embedded-postgres.ts'
import { listServerProcesses, processIdentity } from '../../../infrastructure/embedded-postgres/processes.ts'

// real servers on a busy machine take longer than vitest's five seconds
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const isRoot = process.getuid?.() === 0
const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0
const repository = join(import.meta.dirname, '../..', '..')

const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function temporaryDirectory(mode = 0o755): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'compstream-pg-'))
  await chmod(path, mode)
  cleanups.push(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  return path
}

let made: string
/** The first start of all, in `made`, and what it said of itself. */
let cold: { readonly url: string; readonly settings: readonly Record<string, unknown>[] }

beforeAll(async () => {
  made = join(await mkdtemp(join(tmpdir(), 'compstream-pg-made-')), 'data')
  const server = await startEmbeddedPostgres({ dataDir: made, durable: false })
  const settings = await query(
    server.url,
    `select name, setting from pg_settings
     where name in ('server_encoding', 'TimeZone', 'jit', 'listen_addresses', 'unix_socket_directories')
     order by name`,
  )
  await query(server.url, 'create table first_start as select 42 as answer')
  await Promise.all([server.stop(), server.stop()])
  cold = { url: server.url, settings }
})
afterAll(() => rm(join(made, '..'), { recursive: true, force: true }))

/** A data directory as an earlier start has left it. */
async function usedDirectory(): Promise<string> {
  const path = await temporaryDirectory()
  const parts = ['postgres', 'postgres-password'].map((name) => join(made, name))
  execFileSync('cp', ['-a', ...parts, path])
  return path
}

async function start(dataDir: string, log?: (line: string) => void): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, durable: false, ...(log ? { log } : {}) })
  cleanups.push(() => server.stop())
  return server
}

async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 240_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('the condition was not met in time')
    await delay(10)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function postmasterPid(dataDir: string): Promise<number> {
  return Number((await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0])
}

const refusal = (message: RegExp) =>
  expect.objectContaining({ name: 'EmbeddedPostgresError', message: expect.stringMatching(message) })

describe('starting and stopping', () => {
  test('a cold start creates the cluster, a warm start finds the data again', async () => {
    expect(cold.url).toMatch(/^postgresql:\/\/compstream:[0-9a-f]+@127\.0\.0\.1:\d+\/compstream$/)
    expect(cold.settings.map((row) => `${row.name}=${row.setting}`)).toEqual([
      'TimeZone=UTC',
      'jit=off',
      'listen_addresses=127.0.0.1',
      'server_encoding=UTF8',
      'unix_socket_directories=',
    ])
    expect(await listServerProcesses(join(made, 'postgres'))).toEqual([])
    expect((await stat(join(made, 'postgres-password'))).mode & 0o777).toBe(0o600)
    const warm = await start(await usedDirectory())
    expect(await query(warm.url, 'select answer from first_start')).toEqual([{ answer: 42 }])
  })

  test('durable is the default: fsync, full page writes and synchronous commit are on', async () => {
    const server = await startEmbeddedPostgres({ dataDir: await usedDirectory() })
    cleanups.push(() => server.stop())
    const rows = await query(
      server.url,
      `select setting from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit')`,
    )
    expect(rows).toEqual([{ setting: 'on' }, { setting: 'on' }, { setting: 'on' }])
  })

  test('neither statements nor values reach the log', async () => {
    const lines: string[] = []
    const server = await start(await usedDirectory(), (line) => lines.push(line))
    await query(server.url, 'create table person (ssn text primary key)')
    await query(server.url, `insert into person values ('123-45-6789')`)
    await expect(query(server.url, `insert into person values ('123-45-6789')`)).rejects.toThrow(/duplicate/)
    await expect(query(server.url, `select '123-45-6789'::int`)).rejects.toThrow(/invalid input/)
    await server.stop()
    expect(lines.join('\n')).toContain('ready to accept connections')
    expect(lines.join('\n')).not.toMatch(/123-45|insert|select/)
  })

  test('a lost password file is replaced', async () => {
    const dataDir = await usedDirectory()
    const first = await start(dataDir)
    await query(first.url, 'create table kept as select 7 as answer')
    await first.stop()
    await rm(join(dataDir, 'postgres-password'))
    const second = await start(dataDir)
    expect(second.url).not.toBe(first.url)
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 7 }])
  })
})

describe('refusals', () => {
  test('a cluster of another major version', async () => {
    const dataDir = await temporaryDirectory()
    await mkdir(join(dataDir, 'postgres'))
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '16\n')
    await expect(start(dataDir)).rejects.toEqual(refusal(/^.* PostgreSQL 16, .* PostgreSQL 17.*$/))
  })

  test('a file in the way of the data directory', async () => {
    const file = join(await temporaryDirectory(), 'file')
    await writeFile(file, '')
    await expect(start(file)).rejects.toEqual(refusal(/^data directory .*file is in the way.*$/))
    await expect(start(join(file, 'below'))).rejects.toEqual(
      refusal(/^data directory .*file is in the way.*$/),
    )
    await expect(lockDataDirectory(file)).rejects.toBeInstanceOf(EmbeddedPostgresError)
  })

  test.skipIf(isRoot)(
    'a data directory that is not writable (skipped as root, who may write anywhere)',
    async () => {
      const dataDir = await temporaryDirectory(0o500)
      await expect(start(dataDir)).rejects.toEqual(refusal(/^data directory .*no permission.*$/))
    },
  )

  test('files that are no cluster', async () => {
    const dataDir = await temporaryDirectory()
    await mkdir(join(dataDir, 'postgres'))
    await writeFile(join(dataDir, 'postgres', 'notes.txt'), 'mine')
    await expect(start(dataDir)).rejects.toEqual(refusal(/no PostgreSQL cluster/))
    expect(await readFile(join(dataDir, 'postgres', 'notes.txt'), 'utf8')).toBe('mine')
  })
})

describe('after a crash', () => {
  let script: string

  beforeAll(async () => {
    const result = await build({
      stdin: {
        contents: `
          import { startEmbeddedPostgres } from './infrastructure/embedded-postgres/embedded-postgres.ts'
          const server = await startEmbeddedPostgres({ dataDir: process.argv[2], durable: false })
          process.stdout.write(server.url + '\\n')
          setInterval(() => undefined, 60_000)
        `,
        resolveDir: repository,
        loader: 'ts',
      },
      bundle: true,
      write: false,
      platform: 'node',
      format: 'esm',
      packages: 'external',
    })
    script = result.outputFiles[0]?.text ?? ''
  })

  /** A service process of its own; `PATH` decides whether it finds setpriv. */
  function spawnService(dataDir: string, path = process.env.PATH ?? ''): ChildProcess {
    const child = spawn(process.execPath, ['--input-type=module', '-', dataDir], {
      cwd: repository,
      env: { ...process.env, PATH: path },
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    cleanups.push(async () => child.kill('SIGKILL'))
    child.stdin?.end(script)
    return child
  }

  async function urlOf(child: ChildProcess): Promise<string> {
    const [text] = (await once(child.stdout!, 'data')) as [Buffer]
    return text.toString().trim()
  }

  test('kill -9 of the postmaster is reported, and its busy backend does not block the next start', async () => {
    const dataDir = await usedDirectory()
    const first = await start(dataDir)
    await query(first.url, 'create table kept as select 1 as answer')
    const sleeper = new pg.Client({ connectionString: first.url })
    sleeper.on('error', () => undefined)
    await sleeper.connect()
    const sleeping = sleeper
      .query(`select count(*) from generate_series(1, 100000000000)`)
      .catch(() => undefined)
    const clusterDir = join(dataDir, 'postgres')
    await until(async () => {
      const rows = await query(
        first.url,
        `select 1 from pg_stat_activity where query like '%generate_series(1, 1%'`,
      )
      return rows.length > 1
    })
    process.kill(await postmasterPid(dataDir), 'SIGKILL')
    expect(await first.unexpectedExit).toMatch(/SIGKILL/)
    // the busy backend does not notice by itself
    expect((await listServerProcesses(clusterDir)).length).toBeGreaterThan(0)
    await first.stop()
    const second = await start(dataDir)
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 1 }])
    await sleeping
    await sleeper.end().catch(() => undefined)
  })

  test('kill -9 of the service leaves the postmaster alive: the next start ends it and keeps the data', async () => {
    const dataDir = await usedDirectory()
    const service = spawnService(dataDir, '/nonexistent')
    const url = await urlOf(service)
    await query(url, 'create table kept as select 2 as answer')
    const oldPid = await postmasterPid(dataDir)
    service.kill('SIGKILL')
    await once(service, 'exit')
    expect(isAlive(oldPid)).toBe(true)
    expect(await query(url, 'select answer from kept')).toEqual([{ answer: 2 }])

    const next = await start(dataDir)
    expect(await postmasterPid(dataDir)).not.toBe(oldPid)
    await until(async () => (await processIdentity(oldPid)) === null)
    expect(await query(next.url, 'select answer from kept')).toEqual([{ answer: 2 }])
  })

  // the one before it ends what a kill left
  test.skipIf(!hasSetpriv)(
    'kill -9 of the service takes the server along (skipped without setpriv)',
    { tags: 'long' },
    async () => {
      const dataDir = await usedDirectory()
      const service = spawnService(dataDir)
      await urlOf(service)
      const clusterDir = join(dataDir, 'postgres')
      expect((await listServerProcesses(clusterDir)).length).toBeGreaterThan(0)
      service.kill('SIGKILL')
      await until(async () => (await listServerProcesses(clusterDir)).length === 0)
    },
  )

  test('a stale pid file that names an unrelated live process is removed, the process is left alone', async () => {
    const dataDir = await usedDirectory()
    const bystander = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60000)'], {
      stdio: 'ignore',
    })
    cleanups.push(async () => bystander.kill('SIGKILL'))
    const clusterDir = join(dataDir, 'postgres')
    const pidFile = [
      bystander.pid,
      clusterDir,
      1_700_000_000,
      5432,
      '',
      '127.0.0.1',
      '  1234 5',
      'ready   ',
      '',
    ]
    await writeFile(join(clusterDir, 'postmaster.pid'), pidFile.join('\n'))
    const server = await start(dataDir)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await postmasterPid(dataDir)).not.toBe(bystander.pid)
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull()
  })

  // a start on a cluster that was killed is above
  test('an interrupted initdb is started over', { tags: 'long' }, async () => {
    const dataDir = await temporaryDirectory()
    const service = spawnService(dataDir, '/nonexistent')
    const drafts = async () => (await readdir(dataDir)).filter((name) => name.startsWith('postgres.init-'))
    await until(async () => {
      const [draft] = await drafts()
      return draft !== undefined && existsSync(join(dataDir, draft, 'cluster', 'PG_VERSION'))
    })
    service.kill('SIGKILL')
    await once(service, 'exit')
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false)
    expect(await drafts()).toHaveLength(1)
    const server = await start(dataDir)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await drafts()).toEqual([])
  })
})

describe('as root', () => {
  // the server refuses to run as root: services that root starts in other suites have it unprivileged
  test.skipIf(!isRoot || !hasSetpriv)(
    'the server runs unprivileged below a 0700 directory of root, whose mode stays (skipped unless root with setpriv)',
    { tags: 'long' },
    async () => {
      const parent = await temporaryDirectory(0o700)
      const dataDir = join(parent, 'inner', 'data')
      await mkdir(dataDir, { recursive: true, mode: 0o700 })
      const first = await start(dataDir)
      await query(first.url, 'create table kept as select 4 as answer')
      const status = await readFile(`/proc/${await postmasterPid(dataDir)}/status`, 'utf8')
      expect(Number(/^Uid:\s+(\d+)/m.exec(status)?.[1])).toBeGreaterThan(0)
      expect(/^CapEff:\s+(\w+)/m.exec(status)?.[1]).toMatch(/^0+[24]$/)
      await first.stop()
      const second = await start(dataDir)
      expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 4 }])
      for (const path of [parent, dataDir]) {
        expect(await stat(path)).toMatchObject({ uid: 0 })
        expect((await stat(path)).mode & 0o777).toBe(0o700)
      }
    },
  )
})

describe('the lock of the data directory', () => {
  test('a second service is refused by pid until the first releases', async () => {
    const dataDir = join(await temporaryDirectory(), 'data')
    const first = await lockDataDirectory(dataDir)
    await expect(lockDataDirectory(dataDir)).rejects.toEqual(refusal(new RegExp(`^.*pid ${process.pid}:.*$`)))
    await first.release()
    await first.release()
    const second = await lockDataDirectory(dataDir)
    await first.release()
    await expect(lockDataDirectory(dataDir)).rejects.toBeInstanceOf(EmbeddedPostgresError)
    await second.release()
    expect(await readdir(dataDir)).toEqual([])
  })

  test.each([
    [
      'of a process that ended',
      async () => JSON.stringify({ pid: await deadPid(), identity: 'x', token: 'old' }),
    ],
    [
      'whose pid was given to another process',
      async () => JSON.stringify({ pid: 1, identity: 'x', token: 'old' }),
    ],
    ['that a power failure left empty', async () => ''],
  ])('a stale lock %s is taken over by exactly one of many', async (_name, content) => {
    const dataDir = await temporaryDirectory()
    await writeFile(join(dataDir, 'service.lock'), await content())
    const results = await Promise.allSettled(Array.from({ length: 12 }, () => lockDataDirectory(dataDir)))
    const winners = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    expect(winners).toHaveLength(1)
    expect(JSON.parse(await readFile(join(dataDir, 'service.lock'), 'utf8'))).toMatchObject({
      pid: process.pid,
    })
    await winners[0]?.release()
    expect(await readdir(dataDir)).toEqual([])
  })

  async function deadPid(): Promise<number> {
    const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' })
    await once(child, 'exit')
    return child.pid!
  }
})

test('copied binaries get the links and executable bits npm did not bring', async () => {
  const directory = await temporaryDirectory()
  const native = join(directory, 'native')
  await mkdir(join(native, 'bin'), { recursive: true })
  await mkdir(join(native, 'lib'))
  for (const path of ['bin/initdb', 'bin/postgres', 'lib/libx.so.1.2']) {
    await writeFile(join(native, path), '', { mode: 0o644 })
  }
  const links = [{ source: 'native/lib/libx.so.1.2', target: 'native/lib/libx.so.1' }]
  await writeFile(join(native, 'pg-symlinks.json'), JSON.stringify(links))
  const copied = await copyBinaries({ native, version: '17.0.0' }, directory)
  expect(await readlink(join(copied.native, 'lib', 'libx.so.1'))).toBe('libx.so.1.2')
  expect((await stat(copied.initdb)).mode & 0o111).toBe(0o111)
  expect((await readdir(directory)).sort()).toEqual(['native', 'postgres-binaries-17.0.0'])
})
