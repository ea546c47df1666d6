import { execFile } from 'node:child_process'
import { access, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Config, loadConfig } from '../../infrastructure/config/config.ts'
import { SECRET_SETTINGS } from '../../infrastructure/config/secret-files.ts'
import { SETTING_NAMES } from '../../infrastructure/config/settings.ts'
import { Metrics } from '../../infrastructure/telemetry/metrics.ts'
import { LARGE_BODY } from '../../interfaces/http/body.ts'
import { environmentOf, execForm, ignoredBy, parseDockerfile, type Stage } from '../support/dockerfile.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')
const read = (path: string) => readFile(join(root, path), 'utf8')
const exists = (path: string) =>
  access(join(root, path)).then(
    () => true,
    () => false,
  )

const DEFAULTS = loadConfig({})
const PORTS: readonly number[] = Object.values(DEFAULTS.ports)
const FILE_VARIABLES = SECRET_SETTINGS.map((name) => `${name}_FILE`)
const KNOWN = new Set([...SETTING_NAMES, ...FILE_VARIABLES])

/** Secrets as `deploy/make-secrets.sh` makes them. */
let secrets: string
let manifest: { scripts: Record<string, string>; bin: Record<string, string>; engines: { node: string } }
beforeAll(async () => {
  secrets = join(await mkdtemp(join(tmpdir(), 'compstream-deployment-')), 'secrets')
  await run(join(root, 'deploy/make-secrets.sh'), [secrets])
  manifest = JSON.parse(await read('package.json'))
})
afterAll(() => rm(resolve(secrets, '..'), { recursive: true, force: true }))

/** Reads settings as the program would, with the secrets that lie in `directory` there and in `secrets` here. */
function configOf(env: Readonly<Record<string, string>>, directory: string): Config {
  for (const name of Object.keys(env)) expect(KNOWN, `${name} is no setting`).toContain(name)
  const here = Object.entries(env).map(([name, value]) => {
    if (!FILE_VARIABLES.includes(name)) return [name, value]
    expect(value.startsWith(directory), `${name} is ${value}`).toBe(true)
    return [name, join(secrets, value.slice(directory.length))]
  })
  return loadConfig(Object.fromEntries(here))
}

describe('make-secrets.sh', () => {
  const made = ['master-key', 'operator-token', 'postgres-password']

  test('makes what the program accepts, out of reach of other users', async () => {
    expect((await readdir(secrets)).sort()).toEqual(made)
    expect((await stat(secrets)).mode & 0o777).toBe(0o700)
    // containers read them as users of their own
    for (const name of made) expect((await stat(join(secrets, name))).mode & 0o777).toBe(0o644)
    const config = loadConfig({
      MASTER_KEY_FILE: join(secrets, 'master-key'),
      OPERATOR_TOKEN_FILE: join(secrets, 'operator-token'),
    })
    expect(config.masterKeys).toHaveLength(1)
    expect(config.operatorToken).toMatch(/^op_[0-9a-f]{64}$/)
    expect(config.warnings).toEqual([])
    expect(await readFile(join(secrets, 'postgres-password'), 'utf8')).toMatch(/^[0-9a-f]{48}\n$/)
  })

  test('leaves what exists as it is, and makes different ones elsewhere', async () => {
    const contents = () => Promise.all(made.map((name) => readFile(join(secrets, name), 'utf8')))
    const before = await contents()
    await run(join(root, 'deploy/make-secrets.sh'), [secrets])
    expect(await contents()).toEqual(before)
    const other = join(resolve(secrets, '..'), 'other')
    await run(join(root, 'deploy/make-secrets.sh'), [other])
    const others = await Promise.all(made.map((name) => readFile(join(other, name), 'utf8')))
    for (const [index, name] of made.entries()) expect(others[index], name).not.toBe(before[index])
  })
})

describe('Dockerfile', () => {
  let all: Stage[]
  let last: Stage
  const rests = (name: string, of = last) =>
    of.instructions.filter((one) => one.name === name).map(({ rest }) => rest)
  beforeAll(async () => {
    all = parseDockerfile(await read('Dockerfile'))
    last = all.at(-1)!
  })

  test('every stage has a Node.js that the program runs on', () => {
    const least = /^>=(\d+)/.exec(manifest.engines.node)![1]
    for (const { base } of all) expect(base).toBe(`node:${least}-bookworm-slim`)
  })

  test('its settings are those of the program, and let it be reached', () => {
    const env = environmentOf(rests('ENV').join(' '))
    expect(env).toMatchObject({ NODE_ENV: 'production' })
    expect(configOf(env, '/').host).toBe('0.0.0.0')
  })

  test('exposes the ports of the program', () => {
    expect(rests('EXPOSE').flatMap((rest) => rest.split(' ').map(Number))).toEqual(PORTS)
  })

  test('runs what npm start runs, not as root', () => {
    expect(rests('USER')).toEqual(['node'])
    // in exec form: no shell stands between signals and the program
    expect(`exec ${execForm(rests('CMD')[0]!).join(' ')}`).toBe(manifest.scripts.start)
    // whatever comes after would not be root's
    const names = last.instructions.map(({ name }) => name)
    expect(names.slice(names.indexOf('USER') + 1)).toEqual(['EXPOSE', 'HEALTHCHECK', 'CMD'])
  })

  test('keeps secrets, data and what is installed here out of the image', async () => {
    const isIgnored = await ignoredBy(root)
    for (const kept of ['.git', 'secrets', 'data', 'node_modules', 'dist', 'x.log']) {
      expect(isIgnored(kept), kept).toBe(true)
    }
    for (const needed of ['domain', 'interfaces', 'scripts', 'package.json']) {
      expect(isIgnored(needed), needed).toBe(false)
    }
  })

  test('links the command of package.json to an executable file', async () => {
    const link = /ln -s \/app\/(\S+) \/usr\/local\/bin\/(\S+)/.exec(rests('RUN')[0]!)!
    expect(manifest.bin[link[2]!]).toBe(link[1])
    expect((await stat(join(root, link[1]!))).mode & 0o111).not.toBe(0)
  })

  test('is healthy as long as the program says so', async () => {
    const command = execForm(rests('HEALTHCHECK')[0]!)
    expect(command).toEqual(['node', 'deploy/healthcheck.mjs'])
    const program = await read(command[1]!)
    expect(program).toContain(`'${DEFAULTS.ports.ops}'`)
    expect(program).toContain('/healthz')
  })
})

/** A service of docker-compose.yml, as far as the tests look at it. */
interface ComposeService {
  readonly image: string
  readonly build?: string
  readonly command?: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly networks: readonly string[]
  readonly stop_grace_period?: string
  readonly depends_on?: Readonly<Record<string, { condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
}

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: Readonly<Record<string, { internal?: boolean } | null>>
  readonly volumes: Readonly<Record<string, null>>
  readonly secrets: Readonly<Record<string, { file: string }>>
}

describe('docker-compose.yml', () => {
  let compose: Compose
  let own: [string, ComposeService][]
  let engines: [string, ComposeService][]
  beforeAll(async () => {
    compose = parse(await read('docker-compose.yml'), { merge: true }) as Compose
    const all = Object.entries(compose.services)
    own = all.filter(([, service]) => service.build !== undefined)
    engines = all.filter(([, service]) => service.build === undefined)
  })

  /** Variables with their defaults in place. */
  const settled = (env: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(env).map(([name, value]) => {
        const [, variable, fallback] = /^\$\{(\w+):-(.*)\}$/.exec(value) ?? []
        // an operator overrides a setting by its own name
        if (variable !== undefined) expect(variable).toBe(name)
        return [name, fallback ?? value]
      }),
    )

  test('has the three engines, and each role in a process of its own', () => {
    expect(engines.map(([name]) => name)).toEqual(['eventstore', 'postgres', 'nats'])
    expect(own.map(([name]) => name)).toEqual([...DEFAULTS.roles])
    for (const [name, { environment, build }] of own) {
      expect(build).toBe('.')
      expect([...configOf(settled(environment), '/run/secrets/').roles]).toEqual([name])
    }
  })

  test('the program takes every variable without a complaint', async () => {
    const password = (await readFile(join(secrets, 'postgres-password'), 'utf8')).trim()
    for (const [name, { environment }] of own) {
      const image = { NODE_ENV: 'production', HOST: '0.0.0.0' }
      const config = configOf({ ...image, ...settled(environment) }, '/run/secrets/')
      expect(config.warnings, name).toEqual([])
      const database = new URL(config.databaseUrl!)
      expect([database.username, database.searchParams.get('password')]).toEqual(['compstream', password])
    }
  })

  test('addresses lead to the services of that name, as they are set up', () => {
    for (const [, { environment }] of own) {
      const [eventStore, database, nats] = ['EVENTSTORE_URL', 'DATABASE_URL', 'NATS_URL'].map(
        (name) => new URL(environment[name]!),
      )
      expect([eventStore!.host, eventStore!.searchParams.get('tls')]).toEqual(['eventstore:2113', 'false'])
      expect(compose.services.eventstore!.environment.EVENTSTORE_INSECURE).toBe('true')
      expect([database!.host, nats!.host]).toEqual(['postgres:5432', 'nats:4222'])
      const { environment: postgres } = compose.services.postgres!
      expect([postgres.POSTGRES_USER, `/${postgres.POSTGRES_DB}`]).toEqual([
        database!.username,
        database!.pathname,
      ])
    }
    for (const [name, port] of [
      ['MCP_URL', DEFAULTS.ports.mcp],
      ['CORE_URL', DEFAULTS.ports.core],
      ['PAYMENTS_URL', DEFAULTS.ports.payments],
      ['PORTAL_URL', DEFAULTS.ports.portal],
    ] as const) {
      expect(settled(compose.services.api!.environment)[name]).toBe(`http://127.0.0.1:${port}`)
    }
  })

  test('only the api is published, with the ports of the program and on this machine alone', () => {
    const published = Object.entries(compose.services).filter(([, { ports }]) => ports !== undefined)
    expect(published.map(([name]) => name)).toEqual(['api'])
    expect(published[0]![1].ports).toEqual(PORTS.map((port) => `127.0.0.1:${port}:${port}`))
    for (const [name, { networks }] of Object.entries(compose.services)) {
      expect(networks).toEqual(name === 'api' ? ['engines', 'front'] : ['engines'])
    }
    expect(Object.keys(compose.networks)).toEqual(['engines', 'front'])
    expect(compose.networks.engines).toEqual({ internal: true })
  })

  test('processes wait for healthy engines, and are given time to stop', () => {
    for (const [name, service] of own) {
      expect(service.depends_on, name).toEqual(
        Object.fromEntries(engines.map(([engine]) => [engine, { condition: 'service_healthy' }])),
      )
      expect(service.healthcheck!.test).toEqual(['CMD', 'node', 'deploy/healthcheck.mjs'])
      expect(Number.parseInt(service.stop_grace_period!, 10)).toBeGreaterThan(30)
    }
    for (const [name, service] of engines) expect(service.healthcheck?.test[0], name).toBe('CMD')
  })

  test('what engines store is on volumes, all of which are declared', () => {
    const used = Object.values(compose.services).flatMap(({ volumes = [] }) => volumes)
    for (const volume of used) expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0])
    expect(used.map((volume) => volume.split(':')[0])).toEqual(Object.keys(compose.volumes))
    for (const [name, service] of engines) expect(service.volumes?.length, name).toBeGreaterThan(0)
    const store = /--store_dir=(\S+)/.exec(compose.services.nats!.command!.join(' '))![1]
    expect(compose.services.nats!.volumes).toEqual([`nats-data:${store}`])
  })

  test('secrets are the files that make-secrets.sh makes, and no secret is a value', async () => {
    const made = await readdir(secrets)
    expect(Object.keys(compose.secrets).sort()).toEqual(made.sort())
    for (const [name, { file }] of Object.entries(compose.secrets)) expect(file).toBe(`./secrets/${name}`)
    for (const [name, service] of Object.entries(compose.services)) {
      const named = Object.entries(service.environment ?? {}).filter(([variable]) =>
        variable.endsWith('_FILE'),
      )
      expect(named.map(([, path]) => basename(path)).sort(), name).toEqual(
        [...(service.secrets ?? [])].sort(),
      )
      for (const [, path] of named) expect(path).toBe(`/run/secrets/${basename(path)}`)
      const values = Object.keys(service.environment ?? {})
      for (const secret of ['DATABASE_PASSWORD', 'MASTER_KEY', 'OPERATOR_TOKEN', 'POSTGRES_PASSWORD']) {
        expect(values, name).not.toContain(secret)
      }
    }
    expect((await read('.gitignore')).split('\n')).toContain('secrets/')
  })
})

describe.each(['deploy/compstream.service', 'deploy/compstream@.service'])('%s', (path) => {
  let lines: string[]
  const values = (key: string) =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1))
  beforeAll(async () => {
    lines = (await read(path)).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  })

  test('starts what npm start starts, and gives it time to stop', () => {
    expect(`exec ${values('ExecStart')[0]!.replace('/usr/bin/', '')}`).toBe(manifest.scripts.start)
    expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(30)
  })

  test('the program takes every variable, for every role', async () => {
    const credentials = values('LoadCredential').map((one) => one.split(':')[0]!)
    const pairs = values('Environment').map((one) => one.split(/=(.*)/s).slice(0, 2) as [string, string])
    const files = pairs.filter(([name]) => name.endsWith('_FILE')).map(([, file]) => file)
    expect(files).toEqual(credentials.map((name) => `%d/${name}`))
    for (const role of DEFAULTS.roles) {
      const env = pairs.map(([name, value]) => [
        name,
        value.replace('%i', role).replace('%d/database-password', '%d/postgres-password'),
      ])
      const given = path.includes('@') ? { DATABASE_URL: 'postgresql://compstream@db/compstream' } : {}
      const config = configOf({ ...given, ...Object.fromEntries(env) }, '%d/')
      expect(env).toContainEqual(['NODE_ENV', 'production'])
      expect(config.warnings).toEqual([])
      if (path.includes('@')) expect([...config.roles]).toEqual([role])
    }
  })
})

test('nginx.conf leads to the public ports, keeps the operator API inside and lets large bodies through', async () => {
  const text = await read('deploy/nginx.conf')
  const ports = [...text.matchAll(/server 127\.0\.0\.1:(\d+) max_fails=0;/g)].map(([, port]) => Number(port))
  const { ops, ...others } = DEFAULTS.ports
  expect(ports).toEqual(Object.values(others))
  expect(ports).not.toContain(ops)
  const megabytes = Number(/client_max_body_size (\d+)m;/.exec(text)![1])
  expect(megabytes * 1024 * 1024).toBeGreaterThan(LARGE_BODY)
  const upstreams = [...text.matchAll(/upstream (\w+) /g)].map(([, name]) => name)
  expect([...text.matchAll(/proxy_pass http:\/\/(\w+);/g)].map(([, name]) => name)).toEqual(upstreams)
})

describe('docs/deployment.md', () => {
  /** Variables of the engines and of other programs that the page names. */
  const FOREIGN = /^(EVENTSTORE_(?!URL)|POSTGRES_|COMPSTREAM_|NODE_EXTRA_CA_CERTS$|TEST_PREVIOUS_RELEASE$)/
  let text: string
  beforeAll(async () => {
    text = await read('docs/deployment.md')
  })

  test('every setting that it names is one, and every example of a value is accepted', () => {
    const named = new Set(
      [...text.matchAll(/(?<![\w$])[A-Z]+(?:_[A-Z]+)+(?:_FILE)?\b/g)].map(([name]) => name),
    )
    const unknown = [...named].filter((name) => !KNOWN.has(name) && !FOREIGN.test(name))
    expect(unknown).toEqual([])
    const examples = [/^\s*([A-Z_]+)=(\S+)$/gm, /`([A-Z_]+)=([^`\s]+)`/g]
      .flatMap((form) => [...text.matchAll(form)])
      .filter(([, name]) => !FOREIGN.test(name!))
    expect(examples.length).toBeGreaterThan(5)
    for (const [line, name, value] of examples) {
      if (FILE_VARIABLES.includes(name!)) continue
      const companions = { DATABASE_URL: 'postgresql://u@db/x', MASTER_KEY: 'A'.repeat(43) }
      expect(() => loadConfig({ ...companions, [name!]: value }), line).not.toThrow()
    }
  })

  test('every metric that it names exists', async () => {
    const text = await read('docs/deployment.md')
    const metrics = new Metrics()
    // shown where NATS is configured
    metrics.nats(true)
    metrics.integrationEventsBehind(0)
    const families = new Set(
      [...(await metrics.text()).matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!),
    )
    const named = [...text.matchAll(/\bcompstream_[a-z_]+\b/g)].map(([name]) => name)
    expect(named.length).toBeGreaterThan(5)
    // a role, and volumes of docker compose
    const others = ['compstream_service', 'compstream_eventstore', 'compstream_postgres', 'compstream_nats']
    for (const name of named) {
      if (others.includes(name)) continue
      expect(families, name).toContain(name.replace(/_(bucket|sum|count)$/, ''))
    }
  })

  test('every file of the project that it names exists', async () => {
    const named = [...text.matchAll(/\b(?:deploy|docs)\/[\w@.-]+\.\w+/g)].map(([path]) => path)
    expect(named.length).toBeGreaterThan(3)
    for (const path of named) expect(await exists(path), path).toBe(true)
    for (const [, link] of text.matchAll(/\]\(([\w.-]+\.md)(?:#[\w-]+)?\)/g)) {
      expect(await exists(`docs/${link}`), link).toBe(true)
    }
    const anchors = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    )
    for (const [, anchor] of text.matchAll(/\]\(#([\w-]+)\)/g)) expect(anchors).toContain(anchor)
  })

  test('every table that it has dumped or emptied exists, and the keys are never apart', async () => {
    const migrations = await readdir(join(root, 'infrastructure/database/migrations'))
    const sources = await Promise.all(
      migrations.map((name) => read(`infrastructure/database/migrations/${name}`)),
    )
    const tables = [...sources.join('').matchAll(/CREATE TABLE ([\w.]+)/g)].map(([, name]) => name)
    const dumped = [...text.matchAll(/--table=([\w.]+)/g)].map(([, name]) => name!)
    const emptied = [...text.matchAll(/TRUNCATE ([^']+)'/g)].map(([, names]) => names!.split(', '))
    expect(emptied.length).toBeGreaterThan(1)
    for (const name of dumped) expect(tables).toContain(name)
    for (const names of emptied) expect(dumped).toEqual(expect.arrayContaining(names))
    const keys = ['runtime.data_keys', 'runtime.erasures', 'runtime.secrets']
    for (const names of emptied) expect(names).toEqual(keys)
    const times = keys.map((key) => dumped.filter((name) => name === key).length)
    expect(times).toEqual(times.map(() => times[0]))
  })
})
