import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { type Config, loadConfig } from '../../../infrastructure/config/config.ts'
import { SECRET_SETTINGS, SETTING_NAMES } from '../../../infrastructure/config/settings.ts'
import { LARGE_BODY } from '../../../interfaces/http/body.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../../..')
const read = (path: string) => readFile(join(root, path), 'utf8')

const DEFAULTS = loadConfig({})
const PORTS: readonly number[] = Object.values(DEFAULTS.ports)
const FILE_VARIABLES = SECRET_SETTINGS.map((name) => `${name}_FILE`)
const KNOWN = new Set([...SETTING_NAMES, ...FILE_VARIABLES])
type Env = Readonly<Record<string, string>>

/** Secrets as `deploy/make-secrets.sh` makes them. */
let secrets: string
let manifest: { scripts: Record<string, string>; engines: { node: string } }
beforeAll(async () => {
  secrets = join(await mkdtemp(join(tmpdir(), 'compstream-deployment-')), 'secrets')
  await run(join(root, 'deploy/make-secrets.sh'), [secrets])
  manifest = JSON.parse(await read('package.json'))
})
afterAll(() => rm(resolve(secrets, '..'), { recursive: true, force: true }))

/** Reads settings as the program would, with the secrets that lie in `directory` there and in `secrets` here. */
function configOf(env: Env, directory: string): Config {
  for (const name of Object.keys(env)) expect(KNOWN, `${name} is no setting`).toContain(name)
  const here = Object.entries(env).map(([name, value]) => {
    if (!FILE_VARIABLES.includes(name)) return [name, value]
    expect(value.startsWith(directory), `${name} is ${value}`).toBe(true)
    return [name, join(secrets, value.slice(directory.length))]
  })
  return loadConfig(Object.fromEntries(here))
}

describe('make-secrets.sh', () => {
  test('makes what the program accepts, out of reach of other users', async () => {
    expect((await stat(secrets)).mode & 0o777).toBe(0o700)
    const config = configOf({ MASTER_KEY_FILE: '/master-key', OPERATOR_TOKEN_FILE: '/operator-token' }, '/')
    expect(config).toMatchObject({ masterKeys: [expect.anything()], warnings: [] })
  })

  test('leaves what exists as it is', async () => {
    const contents = async () =>
      Promise.all((await readdir(secrets)).map((name) => readFile(join(secrets, name), 'utf8')))
    const before = await contents()
    await run(join(root, 'deploy/make-secrets.sh'), [secrets])
    expect(await contents()).toEqual(before)
  })

  test('makes anew what an earlier attempt left empty', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'compstream-deployment-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    await writeFile(join(directory, 'master-key'), '')
    await run(join(root, 'deploy/make-secrets.sh'), [directory])
    expect(await readFile(join(directory, 'master-key'), 'utf8')).toMatch(/^[\w+/]{43}=\n$/)
  })

  test.each([
    { missing: 'head', before: [] },
    { missing: 'base64', before: [] },
    { missing: 'od', before: ['master-key'] },
    { missing: 'tr', before: ['master-key'] },
  ])('makes no weak secret without $missing', async ({ missing, before }) => {
    const directory = await mkdtemp(join(tmpdir(), 'compstream-deployment-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    const programs = join(directory, 'bin')
    await mkdir(programs)
    for (const program of ['mkdir', 'chmod', 'head', 'od', 'tr', 'base64']) {
      if (program === missing) continue
      const { stdout } = await run('sh', ['-c', `command -v ${program}`])
      await symlink(stdout.trim(), join(programs, program))
    }
    const made = join(directory, 'secrets')
    const making = run(join(root, 'deploy/make-secrets.sh'), [made], { env: { PATH: programs } })
    await expect(making).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('was not made') })
    expect(await readdir(made)).toEqual(before)
  })
})

describe('Dockerfile', () => {
  /** What stands behind an instruction, its lines joined. */
  let instructions: (name: string) => string[]
  beforeAll(async () => {
    const lines = (await read('Dockerfile')).replaceAll(/\\\n\s*/g, '').split('\n')
    instructions = (name) =>
      lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1))
  })

  test('has one Node.js of a line with long support, which the program runs on', () => {
    const bases = instructions('FROM').map((base) => Number(/^node:(\d+)-/.exec(base)![1]))
    expect(new Set(bases).size).toBe(1)
    expect(bases[0]! % 2).toBe(0)
    expect(bases[0]).toBeGreaterThanOrEqual(Number(/\d+/.exec(manifest.engines.node)![0]))
  })

  test('its settings are those of the program, and let it be reached', () => {
    const env = Object.fromEntries(
      instructions('ENV')
        .flatMap((line) => line.split(/\s+/))
        .map((one) => one.split('=')),
    )
    expect(env).toMatchObject({ NODE_ENV: 'production' })
    expect(configOf(env, '/').host).toBe('0.0.0.0')
  })

  test('exposes the ports of the program', () => {
    expect(instructions('EXPOSE').flatMap((line) => line.split(' ').map(Number))).toEqual(PORTS)
  })

  test('runs what npm start runs, and not as root', () => {
    expect(instructions('USER')).toEqual(['node'])
    expect(`exec ${JSON.parse(instructions('CMD')[0]!).join(' ')}`).toBe(manifest.scripts.start)
  })

  test('copies only what exists', async () => {
    const paths = instructions('COPY')
      .filter((line) => !line.startsWith('--'))
      .flatMap((line) => line.split(' ').slice(0, -1))
    for (const path of paths) await stat(join(root, path))
    expect(paths).toContain('deploy/healthcheck.mjs')
  })
})

/** A service of docker-compose.yml, as far as the tests look at it. */
interface ComposeService {
  readonly build?: string
  readonly environment: Env
  readonly ports?: readonly string[]
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly stop_grace_period?: string
}

describe('docker-compose.yml', () => {
  let services: Readonly<Record<string, ComposeService>>
  let files: Readonly<Record<string, { file: string }>>
  let volumes: readonly string[]
  beforeAll(async () => {
    const compose = parse(await read('docker-compose.yml'), { merge: true })
    services = compose.services
    files = compose.secrets
    volumes = Object.keys(compose.volumes)
  })

  /** Variables with their defaults in place. */
  const settled = (env: Env): Env =>
    Object.fromEntries(
      Object.entries(env).map(([name, value]) => [name, /^\$\{\w+:-(.*)\}$/.exec(value)?.[1] ?? value]),
    )
  const own = () => Object.entries(services).filter(([, { build }]) => build !== undefined)

  test('has a process for each role, which takes every variable and finds its engines', () => {
    expect(own().map(([name]) => name)).toEqual([...DEFAULTS.roles])
    for (const [name, service] of own()) {
      const env = settled(service.environment)
      const image = { NODE_ENV: 'production', HOST: '0.0.0.0' }
      const config = configOf({ ...image, ...env }, '/run/secrets/')
      expect([[...config.roles], config.warnings]).toEqual([[name], []])
      const hosts = ['EVENTSTORE_URL', 'DATABASE_URL', 'NATS_URL'].map((one) => new URL(env[one]!).hostname)
      expect(Object.keys(services)).toEqual(expect.arrayContaining(hosts))
      const { POSTGRES_USER, POSTGRES_DB } = services.postgres!.environment
      const { username, pathname } = new URL(env.DATABASE_URL!)
      expect([username, pathname]).toEqual([POSTGRES_USER, `/${POSTGRES_DB}`])
      expect(Number.parseInt(service.stop_grace_period!, 10)).toBeGreaterThan(30)
    }
  })

  test('publishes the ports of the program on this machine alone, under the addresses it tells', () => {
    const published = Object.entries(services).flatMap(([, { ports = [] }]) => ports)
    expect(published).toEqual(PORTS.map((port) => `127.0.0.1:${port}:${port}`))
    const { MCP_URL, CORE_URL, PAYMENTS_URL, PORTAL_URL } = settled(services.api!.environment)
    const { ops: _, ...ports } = DEFAULTS.ports
    expect([MCP_URL, CORE_URL, PAYMENTS_URL, PORTAL_URL]).toEqual(
      Object.values(ports).map((port) => `http://127.0.0.1:${port}`),
    )
  })

  test('has every secret and volume that it uses, and no secret as a value', async () => {
    const used = Object.values(services)
    const values = used.flatMap(({ environment }) => Object.keys(environment ?? {}))
    const known = ['DATABASE_PASSWORD', 'MASTER_KEY', 'OPERATOR_TOKEN', 'POSTGRES_PASSWORD']
    expect(values.filter((name) => known.includes(name))).toEqual([])
    expect(new Set(used.flatMap((service) => service.secrets ?? []))).toEqual(new Set(Object.keys(files)))
    expect(used.flatMap((service) => service.volumes ?? []).map((one) => one.split(':')[0])).toEqual(volumes)
    expect(
      Object.values(files)
        .map(({ file }) => file)
        .sort(),
    ).toEqual((await readdir(secrets)).map((name) => `./secrets/${name}`).sort())
  })
})

describe.each(['deploy/compstream.service', 'deploy/compstream@.service'])('%s', (path) => {
  let lines: string[]
  const values = (key: string) =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1))
  beforeAll(async () => {
    lines = (await read(path)).split('\n')
  })

  test('starts what npm start starts, and gives it time to stop', () => {
    expect(`exec ${values('ExecStart')[0]!.replace('/usr/bin/', '')}`).toBe(manifest.scripts.start)
    expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(30)
  })

  test('the program takes every variable, for every role', () => {
    const credentials = values('LoadCredential').map((one) => one.split(':')[0]!)
    const pairs = values('Environment').map((one) => one.split(/=(.*)/s).slice(0, 2) as [string, string])
    const used = pairs.filter(([name]) => name.endsWith('_FILE')).map(([, file]) => file)
    expect(used).toEqual(credentials.map((name) => `%d/${name}`))
    const isTemplate = path.includes('@')
    for (const role of DEFAULTS.roles) {
      const env = pairs.map(([name, value]) => [
        name,
        value.replace('%i', role).replace('%d/database-password', '%d/postgres-password'),
      ])
      const given = isTemplate ? { DATABASE_URL: 'postgresql://compstream@db/compstream' } : {}
      const config = configOf({ ...given, ...Object.fromEntries(env) }, '%d/')
      expect(env).toContainEqual(['NODE_ENV', 'production'])
      expect(config.warnings).toEqual([])
      expect([...config.roles]).toEqual(isTemplate ? [role] : [...DEFAULTS.roles])
    }
  })
})

test('nginx.conf leads to the public ports, and lets through the largest bodies that the program takes', async () => {
  const text = await read('deploy/nginx.conf')
  const ports = [...text.matchAll(/server 127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port))
  const { ops: _, ...others } = DEFAULTS.ports
  expect(ports).toEqual(Object.values(others))
  const [, mebibytes] = /client_max_body_size (\d+)m;/.exec(text)!
  expect(Number(mebibytes) * 1024 * 1024).toBeGreaterThan(LARGE_BODY)
})
