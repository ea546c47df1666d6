import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { signerOf, verifierKey } from '../../../application/audit/checkpoint-note.ts'
import { type Config, ConfigError, loadConfig } from '../../../infrastructure/config/config.ts'
import { settingsReference } from '../../../infrastructure/config/settings-reference.ts'
import { prepareDataDirectory } from '../../../infrastructure/installation/data-directory.ts'
import { authorityFile, serverCertificate } from '../../support/certificates.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { newWitness } from '../../support/witness.ts'

const key = randomBytes(32).toString('base64')
const directory = temporaryDirectory()

/** What a rail that writes files needs at the least. */
const NACHA = {
  BANK_RAIL: 'nacha',
  NACHA_OUTBOX_DIR: '/srv/bank/out',
  NACHA_INBOX_DIR: '/srv/bank/in',
  NACHA_DESTINATION_ROUTING: '021000021',
  NACHA_ORIGIN_ID: '1234567890',
  NACHA_COMPANY_ID: '1234567890',
  NACHA_COMPANY_NAME: 'PREMIUM CO',
}

function refusal(env: Record<string, string>): string {
  try {
    loadConfig(env)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    const { message } = error as Error
    expect(message).not.toContain('\n')
    return message
  }
  throw new Error('the setting was accepted')
}

describe('settings', () => {
  test('without any, everything has its default', () => {
    const config = loadConfig({})
    expect(config).toMatchObject({
      logLevel: 'info',
      serverName: 'payroll-reporting-tools',
      host: '127.0.0.1',
      ports: { mcp: 4001, core: 4002, payments: 4003, portal: 4004, ops: 4005 },
      urls: { mcp: null, core: null, payments: null, portal: null },
      hasPortal: true,
      dataDir: resolve('data'),
      databaseUrl: null,
      operatorToken: null,
      masterKeys: null,
      clock: 'system',
      rateLimitPerSecond: 100,
      cardProcessor: 'simulated',
      stripe: null,
      bankLink: { kind: 'simulated' },
      bankRail: { kind: 'simulated' },
      forwardCutoff: Date.UTC(2026, 3, 27),
      debitBatchIntervalSeconds: 60,
      webhookTargets: { allowedRanges: [], extraCa: null },
      warnings: [],
    })
    expect([...config.roles]).toEqual(['api', 'projector', 'worker'])
  })

  test('an empty variable counts as unset and blanks around a value do not count', () => {
    const config = loadConfig({ HOST: '', MCP_PORT: ' ', CORE_PORT: ' 0 ', MASTER_KEY: '' })
    expect(config.host).toBe('127.0.0.1')
    expect(config.ports).toMatchObject({ mcp: 4001, core: 0 })
  })

  test('good values are read', () => {
    const config = loadConfig({
      NODE_ENV: 'production',
      ROLES: 'api, worker',
      HOST: '::1',
      MCP_URL: 'https://mcp.example.com/',
      CORE_URL: 'https://example.com/core/',
      PORTAL_URL: 'off',
      MCP_ALLOWED_ORIGINS: 'https://app.example.com, http://localhost:3000',
      DATABASE_URL: 'postgres://u:p@db:5432/x',
      MASTER_KEY: `${key}, ${randomBytes(32).toString('base64')}`,
      OPERATOR_TOKEN: `op_${'a'.repeat(64)}`,
      RATE_LIMIT_RPS: '0.5',
      WEBHOOK_ALLOW_CIDRS: '10.0.0.0/8, fd00::/8',
      FORWARD_CUTOFF: '2026-05-01T02:00:00+02:00',
      LOG_LEVEL: 'debug',
    })
    expect([...config.roles]).toEqual(['api', 'worker'])
    expect(config).toMatchObject({
      urls: { mcp: 'https://mcp.example.com', core: 'https://example.com/core', portal: null },
      hasPortal: false,
      allowedOrigins: ['https://app.example.com', 'http://localhost:3000'],
      rateLimitPerSecond: 0.5,
      forwardCutoff: Date.UTC(2026, 4, 1),
    })
    expect(config.masterKeys).toHaveLength(2)
    expect(config.masterKeys![0]!.toString('base64')).toBe(key)
    expect(config.webhookTargets.allowedRanges).toEqual([
      { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
      { address: 'fd00::', prefix: 8, family: 'ipv6' },
    ])
  })

  test('traces go where their own address says, else below the one of all signals, and nowhere without either', () => {
    const urlOf = (env: Record<string, string>) => loadConfig(env).tracesUrl
    const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector:4318/'
    expect(urlOf({})).toBeNull()
    expect(urlOf({ OTEL_EXPORTER_OTLP_ENDPOINT })).toBe('http://collector:4318/v1/traces')
    const whole = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/in' }
    expect(urlOf({ OTEL_EXPORTER_OTLP_ENDPOINT, ...whole })).toBe('https://traces.example/in')
    expect(urlOf({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: 'true' })).toBeNull()
  })

  test.each([
    'esdb://one:2113?tls=false',
    'esdb+discover://user:p%40ss@name.example:2113?tlsCAFile=/etc/ca.pem',
    'esdb://user:pass@one.example:2113,two.example:2113,10.0.0.3:2113?tlsCAFile=/etc/ca.pem',
    'kurrentdb://one,two,three',
  ])('EVENTSTORE_URL takes %s, the servers of a cluster too', (url) => {
    expect(loadConfig({ EVENTSTORE_URL: url }).eventStoreUrl).toBe(url)
  })

  test.each([
    ['MCP_PORT', '65536'],
    ['CORE_PORT', '-1'],
    ['PAYMENTS_PORT', '80.5'],
    ['PORTAL_PORT', 'http'],
    ['OPS_PORT', '0x10'],
    ['HOST', 'not a host'],
    ['HOST', '300.1.1.1'],
    ['HOST', 'http://localhost'],
    ['MCP_URL', 'example.com'],
    ['CORE_URL', 'ftp://example.com'],
    ['PAYMENTS_URL', 'https://example.com/?a=1'],
    ['PORTAL_URL', 'none'],
    ['MCP_ALLOWED_ORIGINS', 'https://example.com/path'],
    ['DATABASE_URL', 'mysql://localhost/x'],
    ['DATABASE_URL', 'postgres:foo'],
    ['EVENTSTORE_URL', 'http://localhost:2113'],
    ['EVENTSTORE_URL', 'esdb:one'],
    ['NATS_URL', 'localhost:4222'],
    ['NATS_URL', 'ws://localhost:4222'],
    ['NATS_URL', 'nats://one:4222,two:4222'],
    ['NATS_NKEY_SEED', 'SAAB'],
    ['NATS_CREDS', 'a JWT'],
    ['NATS_CA_FILE', '/nowhere/ca.pem'],
    ['NATS_CLIENT_KEY_FILE', '/nowhere/key.pem'],
    ['NATS_REPLICAS', '0'],
    ['ROLES', 'api,projektor'],
    ['ROLES', ','],
    ['OPERATOR_TOKEN', 'short'],
    ['OPERATOR_TOKEN', 'with blanks inside'],
    ['MASTER_KEY', 'c2hvcnQ='],
    ['MASTER_KEY', `${key},`],
    ['CLOCK', 'fast'],
    ['PROCESSOR', 'Stripe'],
    ['BANKCONNECT', 'real'],
    ['BANK_RAIL', 'ach'],
    ['SMTP_URL', 'http://mail'],
    ['SMS_URL', 'twilio'],
    ['PROBE_ALLOW_CIDRS', 'local'],
    ['WEBHOOK_ALLOW_CIDRS', '10.0.0.0'],
    ['WEBHOOK_ALLOW_CIDRS', '10.0.0.0/33'],
    ['WEBHOOK_EXTRA_CA_FILE', '/nowhere/ca.pem'],
    ['RATE_LIMIT_RPS', '-5'],
    ['RATE_LIMIT_RPS', 'many'],
    ['TECHNICAL_DEADLINE_SCALE', '0.9'],
    ['TECHNICAL_DEADLINE_SCALE', '100.5'],
    ['TECHNICAL_DEADLINE_SCALE', '2x'],
    ['FORWARD_CUTOFF', '2026-02-30T00:00:00Z'],
    ['FORWARD_CUTOFF', '2026-04-27'],
    ['DEBIT_BATCH_INTERVAL_SECONDS', '0'],
    ['LOG_LEVEL', 'loud'],
    ['ACCESS_LOG', 'yes'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://collector:4317'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_TRACES_SAMPLER', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['NACHA_DESTINATION_ROUTING', '123456789'],
    ['SERVER_NAME', 'x'.repeat(101)],
    ['AUDIT_WITNESS_KEYS', 'witness.example/w'],
    ['AUDIT_WITNESS_KEYS', `${newWitness('witness.example/w').key},`],
    ['AUDIT_WITNESS_KEYS', newWitness('witness.example/w').key.replace('witness', 'other')],
    // of a log, not of a witness
    ['AUDIT_WITNESS_KEYS', verifierKey(signerOf('witness.example/w', Buffer.alloc(32, 7)))],
  ])('%s=%s is refused by its name with what is expected', (name, value) => {
    expect(refusal({ [name]: value })).toMatch(
      new RegExp(`^${name}( is ".*",|:| cannot be read:) expected .+`),
    )
  })

  test('AUDIT_WITNESS_KEYS never quotes a private key that is given by mistake', () => {
    expect(refusal({ AUDIT_WITNESS_KEYS: 'PRIVATE+KEY+w+c74f20a3+AWhidden' })).not.toMatch(/hidden/)
  })

  test('EVENTSTORE_URL with an option that is none is refused before anything is touched', () => {
    expect(refusal({ EVENTSTORE_URL: 'esdb://user:Pa55word@host:2113?frobnicate=1' })).toMatch(
      /^EVENTSTORE_URL: .*option/,
    )
  })

  test('settings that contradict each other are refused', () => {
    expect(refusal({ CLOCK: 'virtual', NODE_ENV: 'production' })).toMatch(/^CLOCK .* NODE_ENV=production/)
    const scaled = (scale: string) => ({ TECHNICAL_DEADLINE_SCALE: scale, NODE_ENV: 'production' })
    expect(refusal(scaled('1.5'))).toBe(
      'TECHNICAL_DEADLINE_SCALE is 1.5, which NODE_ENV=production refuses: expected 1',
    )
    expect(loadConfig(scaled('1')).technicalDeadlineScale).toBe(1)
    expect(refusal({ DATABASE_URL: 'postgres://db/x' })).toMatch(/^MASTER_KEY is missing/)
    expect(refusal({ MCP_PORT: '4100', OPS_PORT: '4100' })).toBe(
      'OPS_PORT is 4100, which is MCP_PORT too: expected a port of its own',
    )
    expect(loadConfig({ MCP_PORT: '0', OPS_PORT: '0' }).ports).toMatchObject({ mcp: 0, ops: 0 })
    expect(refusal({ PROCESSOR: 'stripe', STRIPE_API_KEY: 'sk_test_1' })).toBe(
      'STRIPE_WEBHOOK_SECRET is missing, it is required with PROCESSOR=stripe ' +
        '(also to be corrected: STRIPE_PUBLISHABLE_KEY)',
    )
    expect(refusal({ STRIPE_API_BASE: 'https://proxy.example/stripe' })).toMatch(
      /^STRIPE_API_BASE has a path/,
    )
    expect(refusal({ BANKCONNECT: 'plaid' })).toMatch(/^PLAID_CLIENT_ID is missing/)
    expect(refusal({ BANK_RAIL: 'nacha' })).toMatch(/^NACHA_OUTBOX_DIR is missing/)
    expect(refusal({ ...NACHA, DATA_DIR: '/srv/data', NACHA_INBOX_DIR: '/srv/data/in' })).toBe(
      'NACHA_INBOX_DIR is in DATA_DIR (/srv/data), or around it: expected a directory apart',
    )
    expect(refusal({ ...NACHA, NACHA_INBOX_DIR: '/srv/bank/out/in' })).toMatch(
      /^NACHA_INBOX_DIR is in the other/,
    )
    expect(refusal({ ...NACHA, NACHA_BALANCED: 'true', NACHA_OFFSET_ROUTING: '021000021' })).toBe(
      'NACHA_OFFSET_ACCOUNT is missing, it is required with NACHA_BALANCED=true',
    )
  })

  test('credentials and certificates for NATS are given once, whole, and with its address', () => {
    const seed = `SU${'A'.repeat(56)}`
    expect(refusal({ NATS_NKEY_SEED: seed })).toBe(
      'NATS_NKEY_SEED is set and NATS_URL is not: expected both or none',
    )
    expect(refusal({ NATS_NKEY_SEED: seed, NATS_URL: 'nats://user:word@host:4222' })).toBe(
      'NATS_NKEY_SEED is set and NATS_URL holds credentials too: expected them in one of them',
    )
    const [one, other] = [serverCertificate(['one']), serverCertificate(['other'])]
    const file = (name: string, content: string) => {
      writeFileSync(join(directory, name), content)
      return join(directory, name)
    }
    const nats = { NATS_URL: 'tls://host:4222', NATS_CLIENT_CERT_FILE: file('cert', one.cert) }
    expect(refusal(nats)).toBe('NATS_CLIENT_KEY_FILE is missing, it is required with NATS_CLIENT_CERT_FILE')
    expect(refusal({ ...nats, NATS_CLIENT_KEY_FILE: file('other', other.key) })).toBe(
      'NATS_CLIENT_KEY_FILE is not the key of NATS_CLIENT_CERT_FILE',
    )
    const given = {
      ...nats,
      NATS_CLIENT_KEY_FILE: file('key', one.key),
      NATS_NKEY_SEED_FILE: file('seed', `${seed}\n`),
    }
    expect(loadConfig(given).natsAccess).toMatchObject({ nkeySeed: seed, creds: null, key: one.key })
  })

  test('outside providers with everything they need are accepted', () => {
    const config = loadConfig({
      PROCESSOR: 'stripe',
      STRIPE_API_KEY: 'sk_test_1',
      STRIPE_WEBHOOK_SECRET: 'whsec_1',
      STRIPE_PUBLISHABLE_KEY: 'pk_test_1',
      BANKCONNECT: 'plaid',
      PLAID_CLIENT_ID: 'id',
      PLAID_SECRET: 'secret',
    })
    expect(config.cardProcessor).toBe('stripe')
    expect(config.stripe).toMatchObject({ apiBase: 'https://api.stripe.com' })
    expect(config.bankLink).toMatchObject({ kind: 'plaid', clientId: 'id' })
  })

  test('one line names every variable to be corrected', () => {
    expect(refusal({ MCP_PORT: 'x', CLOCK: 'y', LOG_LEVEL: 'z' })).toMatch(
      /\(also to be corrected: .+, .+\)$/,
    )
  })

  test('no refusal quotes a value that may be secret', () => {
    const secret = 'Pa55word-very-secret value'
    for (const name of [
      'MASTER_KEY',
      'OPERATOR_TOKEN',
      'STRIPE_API_KEY',
      'STRIPE_WEBHOOK_SECRET',
      'STRIPE_PUBLISHABLE_KEY',
      'PLAID_CLIENT_ID',
      'PLAID_SECRET',
    ]) {
      expect(refusal({ [name]: secret })).not.toContain('Pa55word')
    }
    for (const name of ['DATABASE_URL', 'EVENTSTORE_URL', 'NATS_URL', 'SMTP_URL', 'SMS_URL', 'MCP_URL']) {
      expect(refusal({ [name]: `bad://user:Pa55word@host/x` })).not.toContain('Pa55word')
    }
  })

  test('what works and may surprise is a warning', () => {
    expect(loadConfig({ ROLES: 'api' }).warnings).toEqual([
      'ROLES leaves out projector, worker, and no other process can join the embedded database: set DATABASE_URL',
    ])
    expect(loadConfig({ HOST: '0.0.0.0', MCP_URL: 'https://mcp.example.com' }).warnings[0]).toContain(
      'set CORE_URL, PAYMENTS_URL, PORTAL_URL',
    )
  })
})

describe('the data directory', () => {
  let made = 0
  function configFor(env: Record<string, string> = {}): Config {
    made += 1
    return loadConfig({ DATA_DIR: join(directory, `data-${made}`), ...env })
  }

  test('gets a token and a key that only its user may read, and keeps them', async () => {
    const config = configFor()
    const first = await prepareDataDirectory(config)
    expect(first.operatorToken).toMatch(/^op_[0-9a-f]{64}$/)
    expect(first.operatorTokenFile).toBe(join(config.dataDir, 'operator-token'))
    for (const name of ['operator-token', 'master-key']) {
      expect((await stat(join(config.dataDir, name))).mode & 0o777).toBe(0o600)
    }
    expect((await readdir(config.dataDir)).sort()).toEqual(['master-key', 'operator-token'])
    const again = await prepareDataDirectory(config)
    expect(again.operatorToken).toBe(first.operatorToken)
    expect(again.masterKeys.currentId).toBe(first.masterKeys.currentId)
  })

  test('processes that start at once agree', async () => {
    const config = configFor()
    const all = await Promise.all(Array.from({ length: 8 }, () => prepareDataDirectory(config)))
    expect(new Set(all.map(({ operatorToken }) => operatorToken)).size).toBe(1)
    expect(new Set(all.map(({ masterKeys }) => masterKeys.currentId)).size).toBe(1)
    expect((await readdir(config.dataDir)).sort()).toEqual(['master-key', 'operator-token'])
  })

  test('is not made when everything is given', async () => {
    const config = configFor({
      DATABASE_URL: 'postgres://db/x',
      MASTER_KEY: key,
      OPERATOR_TOKEN: 'given-token',
    })
    const secrets = await prepareDataDirectory(config)
    expect(secrets).toMatchObject({ operatorToken: 'given-token', operatorTokenFile: null })
    await expect(stat(config.dataDir)).rejects.toThrow('ENOENT')
  })

  test('a key file that others could read is closed to them', async () => {
    const config = configFor()
    await prepareDataDirectory(config)
    await chmod(join(config.dataDir, 'master-key'), 0o644)
    await prepareDataDirectory(config)
    expect((await stat(join(config.dataDir, 'master-key'))).mode & 0o777).toBe(0o600)
  })

  test('a malformed key or token file is one clear line without its content', async () => {
    const config = configFor()
    await mkdir(config.dataDir)
    await writeFile(join(config.dataDir, 'operator-token'), 'tiny\n')
    await expect(prepareDataDirectory(config)).rejects.toThrow(
      /^DATA_DIR: .*operator-token holds no operator/,
    )
    await rm(join(config.dataDir, 'operator-token'))
    await writeFile(join(config.dataDir, 'master-key'), 'not-a-key\n')
    const message = await prepareDataDirectory(config).catch((error: Error) => error.message)
    expect(message).toMatch(/^DATA_DIR: .*master-key is malformed, expected 32 bytes in base64/)
    expect(message).not.toContain('not-a-key')
    expect(await readFile(join(config.dataDir, 'master-key'), 'utf8')).toBe('not-a-key\n')
  })

  test('a missing key beside existing data is refused instead of replaced', async () => {
    const config = configFor()
    await prepareDataDirectory(config)
    await mkdir(join(config.dataDir, 'postgres'))
    await rm(join(config.dataDir, 'master-key'))
    await expect(prepareDataDirectory(config)).rejects.toThrow(/^DATA_DIR: .*master-key is missing/)
    await expect(stat(join(config.dataDir, 'master-key'))).rejects.toThrow('ENOENT')
    const given = { ...config, masterKeys: [Buffer.from(key, 'base64')] }
    await expect(prepareDataDirectory(given)).resolves.toBeDefined()
  })

  test('a path that cannot be a directory is one clear line', async () => {
    const config = configFor()
    await writeFile(config.dataDir, '')
    await expect(prepareDataDirectory(config)).rejects.toThrow(/^DATA_DIR: data directory .* cannot be used/)
    await expect(prepareDataDirectory(config)).rejects.toBeInstanceOf(ConfigError)
  })
})

test('certificates of webhook targets are read and checked', async () => {
  const bad = join(directory, 'bad.pem')
  await writeFile(bad, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  expect(refusal({ WEBHOOK_EXTRA_CA_FILE: bad })).toBe(
    'WEBHOOK_EXTRA_CA_FILE holds no valid certificate: expected PEM certificates',
  )
  const { webhookTargets } = loadConfig({ WEBHOOK_EXTRA_CA_FILE: authorityFile() })
  expect(webhookTargets.extraCa).toContain('BEGIN CERTIFICATE')
})

test('the page of settings says what each takes, not how a value was refused', () => {
  const forms = settingsReference().map(({ form }) => form)
  expect(forms).toContain('a whole number from 0 to 65535')
  expect(forms.filter((form) => form !== null && /expected|\\u0000|^\W/.test(form))).toEqual([])
})
