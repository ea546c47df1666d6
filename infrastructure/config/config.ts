import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { ConfigError } from '../config-error.ts'
import { readConnectionString } from '../event-store/eventstoredb/connection-string.ts'
import { readSecretFiles } from './secret-files.ts'
import {
  type AddressRange,
  address,
  addressRanges,
  baseUrl,
  baseUrlOrOff,
  decimalNumber,
  flag,
  host,
  keys,
  LOCAL_RANGES,
  list,
  moment,
  OPERATOR_TOKEN,
  OPERATOR_TOKEN_EXPECTED,
  origins,
  setting,
  text,
  wholeNumber,
  word,
} from './settings.ts'

export { ConfigError } from '../config-error.ts'
export type { AddressRange } from './settings.ts'

export type Role = 'api' | 'projector' | 'worker'
const ROLES: readonly Role[] = ['api', 'projector', 'worker']

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Everything that is set from outside, checked. */
export interface Config {
  /** True with `NODE_ENV=production`. */
  readonly production: boolean
  readonly logLevel: LogLevel
  /** Name that the tool server gives itself. */
  readonly serverName: string
  readonly roles: ReadonlySet<Role>
  /** Address that all listeners bind. */
  readonly host: string
  /** 0 picks a free port. */
  readonly ports: {
    readonly mcp: number
    readonly core: number
    readonly payments: number
    readonly portal: number
    readonly ops: number
  }
  /** Public base addresses without trailing slash; null: the listener's own address. */
  readonly urls: {
    readonly mcp: string | null
    readonly core: string | null
    readonly payments: string | null
    readonly portal: string | null
  }
  /** False with `PORTAL_URL=off`: the service has no page host of its own. */
  readonly hasPortal: boolean
  /** Browser origins that may call the tool server besides its own address. */
  readonly allowedOrigins: readonly string[]
  /** Absolute path. */
  readonly dataDir: string
  /** With `DATABASE_PASSWORD` in it; null: the embedded server. */
  readonly databaseUrl: string | null
  /** Connection string of EventStoreDB or KurrentDB; null: the event log is in PostgreSQL. */
  readonly eventStoreUrl: string | null
  /** `nats://` or `tls://` addresses of one server or cluster; null: notices stay in this process. */
  readonly natsUrls: readonly string[] | null
  /** Null: kept in the data directory. */
  readonly operatorToken: string | null
  /** 32 bytes each, the current one first; null: kept in the data directory. */
  readonly masterKeys: readonly Buffer[] | null
  readonly clock: 'system' | 'virtual'
  /** Requests per second and credential; 0: no limit. */
  readonly rateLimitPerSecond: number
  readonly cardProcessor:
    | { readonly kind: 'simulated' }
    | {
        readonly kind: 'stripe'
        readonly apiKey: string
        readonly apiBase: string
        readonly webhookSecret: string
        readonly publishableKey: string
      }
  readonly bankLink:
    | { readonly kind: 'simulated' }
    | { readonly kind: 'plaid'; readonly clientId: string; readonly secret: string; readonly baseUrl: string }
  readonly bankRail:
    | { readonly kind: 'simulated' }
    | {
        readonly kind: 'nacha'
        readonly outboxDir: string
        readonly inboxDir: string
        readonly originator: {
          readonly destinationRouting: string
          readonly originId: string
          readonly companyId: string
          readonly companyName: string
          /** Whether a file carries the offsetting credits. */
          readonly balanced: boolean
        }
      }
  /** Null: e-mails and texts are recorded, not sent. */
  readonly smtpUrl: string | null
  readonly smsUrl: string | null
  readonly webhookTargets: {
    readonly allowedRanges: readonly AddressRange[]
    /** PEM text of further CA certificates. */
    readonly extraCa: string | null
  }
  /** Addresses that may read probes and metrics of the operator listener without a token. */
  readonly probeRanges: readonly AddressRange[]
  /** Milliseconds since the epoch; debits whose source was accepted earlier are not collected. */
  readonly forwardCutoff: number
  readonly debitBatchIntervalSeconds: number
  /** Settings that work and may surprise, one line each, for the log. */
  readonly warnings: readonly string[]
}

const port = (fallback: number) => wholeNumber(0, 65_535).default(fallback)
const secret = () => text('up to 1000 visible characters', /^[\x21-\x7e]{1,1000}$/).optional()
const directory = () => setting('the path of a directory', (value) => resolve(value)).optional()

export const SETTINGS = z.object({
  NODE_ENV: z.string().optional(),
  LOG_LEVEL: word(LOG_LEVELS).default('info'),
  SERVER_NAME: text('up to 100 printable characters', /^[^\p{C}]{1,100}$/u).default(
    'payroll-reporting-tools',
  ),
  ROLES: list(`a comma list of ${ROLES.join(', ')}`, (item) => ROLES.find((role) => role === item)).default(
    ROLES,
  ),
  HOST: host().default('127.0.0.1'),
  MCP_PORT: port(4001),
  CORE_PORT: port(4002),
  PAYMENTS_PORT: port(4003),
  PORTAL_PORT: port(4004),
  OPS_PORT: port(4005),
  MCP_URL: baseUrl().optional(),
  CORE_URL: baseUrl().optional(),
  PAYMENTS_URL: baseUrl().optional(),
  PORTAL_URL: baseUrlOrOff().optional(),
  MCP_ALLOWED_ORIGINS: origins().default([]),
  DATA_DIR: setting('the path of a directory', (value) => resolve(value)).default(() => resolve('data')),
  DATABASE_URL: address('a PostgreSQL address such as postgresql://user:password@host:5432/name', [
    'postgresql',
    'postgres',
  ]).optional(),
  DATABASE_PASSWORD: text('up to 1000 printable characters', /^[^\p{C}]{1,1000}$/u).optional(),
  // several hosts with ports are no URL; the adapter reads the rest
  EVENTSTORE_URL: text(
    'an EventStoreDB address such as esdb://host:2113 or esdb://one:2113,two:2113',
    /^(esdb|kurrentdb)(\+discover)?:\/\/\S+$/,
  ).optional(),
  NATS_URL: list('a comma list of NATS addresses such as nats://host:4222', (item) =>
    /^(nats|tls):\/\/\S+$/.test(item) && URL.canParse(item) ? item : undefined,
  ).optional(),
  OPERATOR_TOKEN: text(OPERATOR_TOKEN_EXPECTED, OPERATOR_TOKEN).optional(),
  MASTER_KEY: keys().optional(),
  CLOCK: word(['system', 'virtual']).default('system'),
  RATE_LIMIT_RPS: decimalNumber(1_000_000).default(100),
  PROCESSOR: word(['simulated', 'stripe']).default('simulated'),
  STRIPE_API_KEY: secret(),
  STRIPE_API_BASE: baseUrl().default('https://api.stripe.com'),
  STRIPE_WEBHOOK_SECRET: secret(),
  STRIPE_PUBLISHABLE_KEY: secret(),
  BANKCONNECT: word(['simulated', 'plaid']).default('simulated'),
  PLAID_CLIENT_ID: secret(),
  PLAID_SECRET: secret(),
  PLAID_BASE_URL: baseUrl().default('https://production.plaid.com'),
  BANK_RAIL: word(['simulated', 'nacha']).default('simulated'),
  NACHA_OUTBOX_DIR: directory(),
  NACHA_INBOX_DIR: directory(),
  NACHA_DESTINATION_ROUTING: setting('a routing number of 9 digits with a valid check digit', (value) =>
    isRoutingNumber(value) ? value : undefined,
  ).optional(),
  NACHA_ORIGIN_ID: text('9 or 10 letters or digits', /^[A-Z0-9]{9,10}$/).optional(),
  NACHA_COMPANY_ID: text('9 or 10 letters or digits', /^[A-Z0-9]{9,10}$/).optional(),
  NACHA_COMPANY_NAME: text('1 to 16 printable ASCII characters', /^[\x20-\x7e]{1,16}$/).optional(),
  NACHA_BALANCED: flag().default(false),
  SMTP_URL: address('an SMTP address such as smtps://user:password@host:465', ['smtp', 'smtps']).optional(),
  SMS_URL: address('an http or https address', ['http', 'https']).optional(),
  PROBE_ALLOW_CIDRS: addressRanges().default(LOCAL_RANGES),
  WEBHOOK_ALLOW_CIDRS: addressRanges().default([]),
  WEBHOOK_EXTRA_CA_FILE: z.string().optional(),
  FORWARD_CUTOFF: moment().default(() => Date.parse('2026-04-27T00:00:00Z')),
  DEBIT_BATCH_INTERVAL_SECONDS: wholeNumber(1, 86_400).default(60),
})
type Settings = z.output<typeof SETTINGS>
type Name = keyof Settings & string

/** Every environment variable that {@link loadConfig} reads; those with secrets also as `<NAME>_FILE`. */
export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS.shape)

/** Variables whose value an error may quote; all others may hold a secret. */
const QUOTABLE: ReadonlySet<string> = new Set<Name>([
  'NODE_ENV',
  'LOG_LEVEL',
  'ROLES',
  'HOST',
  'MCP_PORT',
  'CORE_PORT',
  'PAYMENTS_PORT',
  'PORTAL_PORT',
  'OPS_PORT',
  'CLOCK',
  'RATE_LIMIT_RPS',
  'PROCESSOR',
  'BANKCONNECT',
  'BANK_RAIL',
  'NACHA_BALANCED',
  'MCP_ALLOWED_ORIGINS',
  'PROBE_ALLOW_CIDRS',
  'WEBHOOK_ALLOW_CIDRS',
  'FORWARD_CUTOFF',
  'DEBIT_BATCH_INTERVAL_SECONDS',
])

/**
 * Reads and checks all settings. An empty variable counts as unset; secrets may be given as `<NAME>_FILE`, the path
 * of a file that holds them.
 * @param env usually `process.env`.
 * @throws ConfigError for what cannot work: one line about the first problem that names all variables concerned.
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const files = readSecretFiles(env)
  const given: Record<string, string> = {}
  for (const name of SETTING_NAMES) {
    const value = files.get(name) ?? env[name]?.trim()
    if (value) given[name] = value
  }
  const parsed = SETTINGS.safeParse(given)
  if (!parsed.success) {
    throw oneLine(
      parsed.error.issues.map((issue) => {
        const name = String(issue.path[0])
        if (files.has(name))
          return { name: `${name}_FILE`, problem: `: the file should hold ${issue.message}` }
        const found = QUOTABLE.has(name) ? ` is ${JSON.stringify(shortened(given[name]!))}` : ''
        return { name, problem: `${found}${found ? ',' : ':'} expected ${issue.message}` }
      }),
    )
  }
  const settings = parsed.data
  const problems = [...impossibleTogether(settings)]
  const extraCa = settings.WEBHOOK_EXTRA_CA_FILE ? readCertificates(settings.WEBHOOK_EXTRA_CA_FILE) : null
  if (extraCa && 'problem' in extraCa)
    problems.push({ name: 'WEBHOOK_EXTRA_CA_FILE', problem: extraCa.problem })
  if (problems.length > 0) throw oneLine(problems)
  return toConfig(settings, extraCa && 'pem' in extraCa ? extraCa.pem : null)
}

interface Problem {
  readonly name: string
  /** What follows the name, with its leading blank or colon. */
  readonly problem: string
}

function oneLine(problems: readonly Problem[]): ConfigError {
  const first = problems[0]!
  const others = [...new Set(problems.map(({ name }) => name))].filter((name) => name !== first.name)
  const also = others.length > 0 ? ` (also to be corrected: ${others.join(', ')})` : ''
  return new ConfigError(`${first.name}${first.problem}${also}`)
}

function shortened(value: string): string {
  return value.length > 60 ? `${value.slice(0, 60)}…` : value
}

/** Settings that are each well-formed and cannot work with the others. */
function* impossibleTogether(settings: Settings): Iterable<Problem> {
  const unusable = settings.EVENTSTORE_URL === undefined ? null : faultOf(settings.EVENTSTORE_URL)
  if (unusable !== null) yield { name: 'EVENTSTORE_URL', problem: `: ${unusable}` }
  if (settings.CLOCK === 'virtual' && settings.NODE_ENV === 'production') {
    yield { name: 'CLOCK', problem: ' is "virtual", which NODE_ENV=production refuses: expected system' }
  }
  if (settings.DATABASE_URL !== undefined && settings.MASTER_KEY === undefined) {
    yield {
      name: 'MASTER_KEY',
      problem:
        ' is missing, it is required with DATABASE_URL: expected 32 bytes in base64 (openssl rand -base64 32)',
    }
  }
  if (settings.DATABASE_PASSWORD !== undefined) {
    const url = settings.DATABASE_URL
    if (url === undefined) {
      yield { name: 'DATABASE_PASSWORD', problem: ' is set and DATABASE_URL is not: expected both or none' }
    } else if (new URL(url).password !== '' || new URL(url).searchParams.has('password')) {
      yield {
        name: 'DATABASE_PASSWORD',
        problem: ' is set and DATABASE_URL holds a password too: expected it in one of them',
      }
    }
  }
  const ports = ['MCP_PORT', 'CORE_PORT', 'PAYMENTS_PORT', 'PORTAL_PORT', 'OPS_PORT'] as const
  for (const [index, name] of ports.entries()) {
    const twin = ports.slice(0, index).find((earlier) => settings[earlier] === settings[name])
    if (twin && settings[name] !== 0) {
      yield { name, problem: ` is ${settings[name]}, which is ${twin} too: expected a port of its own` }
    }
  }
  const companions = [
    ['PROCESSOR', 'stripe', ['STRIPE_API_KEY', 'STRIPE_WEBHOOK_SECRET', 'STRIPE_PUBLISHABLE_KEY']],
    ['BANKCONNECT', 'plaid', ['PLAID_CLIENT_ID', 'PLAID_SECRET']],
    [
      'BANK_RAIL',
      'nacha',
      [
        'NACHA_OUTBOX_DIR',
        'NACHA_INBOX_DIR',
        'NACHA_DESTINATION_ROUTING',
        'NACHA_ORIGIN_ID',
        'NACHA_COMPANY_ID',
        'NACHA_COMPANY_NAME',
      ],
    ],
  ] as const
  for (const [choice, value, names] of companions) {
    if (settings[choice] !== value) continue
    for (const name of names) {
      if (settings[name] === undefined)
        yield { name, problem: ` is missing, it is required with ${choice}=${value}` }
    }
  }
}

/** What is wrong with a connection string of EventStoreDB, null when nothing is. */
function faultOf(connectionString: string): string | null {
  try {
    readConnectionString(connectionString)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

function readCertificates(path: string): { readonly pem: string } | { readonly problem: string } {
  let pem: string
  try {
    pem = readFileSync(path, 'utf8')
  } catch {
    return { problem: ' cannot be read: expected the path of a file with PEM certificates' }
  }
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) new X509Certificate(block)
    if (blocks.length > 0) return { pem: blocks.join('\n') }
  } catch {
    // said below
  }
  return { problem: ' holds no valid certificate: expected PEM certificates' }
}

function isRoutingNumber(value: string): boolean {
  if (!/^\d{9}$/.test(value)) return false
  const weighted = [...value].map((digit, index) => Number(digit) * [3, 7, 1][index % 3]!)
  return weighted.reduce((sum, part) => sum + part, 0) % 10 === 0
}

function toConfig(settings: Settings, extraCa: string | null): Config {
  const roles = new Set(settings.ROLES)
  return {
    production: settings.NODE_ENV === 'production',
    logLevel: settings.LOG_LEVEL,
    serverName: settings.SERVER_NAME,
    roles,
    host: settings.HOST,
    ports: {
      mcp: settings.MCP_PORT,
      core: settings.CORE_PORT,
      payments: settings.PAYMENTS_PORT,
      portal: settings.PORTAL_PORT,
      ops: settings.OPS_PORT,
    },
    urls: {
      mcp: settings.MCP_URL ?? null,
      core: settings.CORE_URL ?? null,
      payments: settings.PAYMENTS_URL ?? null,
      portal: settings.PORTAL_URL === 'off' ? null : (settings.PORTAL_URL ?? null),
    },
    hasPortal: settings.PORTAL_URL !== 'off',
    allowedOrigins: settings.MCP_ALLOWED_ORIGINS,
    dataDir: settings.DATA_DIR,
    databaseUrl: withPassword(settings.DATABASE_URL, settings.DATABASE_PASSWORD),
    eventStoreUrl: settings.EVENTSTORE_URL ?? null,
    natsUrls: settings.NATS_URL ?? null,
    operatorToken: settings.OPERATOR_TOKEN ?? null,
    masterKeys: settings.MASTER_KEY ?? null,
    clock: settings.CLOCK,
    rateLimitPerSecond: settings.RATE_LIMIT_RPS,
    cardProcessor:
      settings.PROCESSOR === 'simulated'
        ? { kind: 'simulated' }
        : {
            kind: 'stripe',
            apiKey: settings.STRIPE_API_KEY!,
            apiBase: settings.STRIPE_API_BASE,
            webhookSecret: settings.STRIPE_WEBHOOK_SECRET!,
            publishableKey: settings.STRIPE_PUBLISHABLE_KEY!,
          },
    bankLink:
      settings.BANKCONNECT === 'simulated'
        ? { kind: 'simulated' }
        : {
            kind: 'plaid',
            clientId: settings.PLAID_CLIENT_ID!,
            secret: settings.PLAID_SECRET!,
            baseUrl: settings.PLAID_BASE_URL,
          },
    bankRail:
      settings.BANK_RAIL === 'simulated'
        ? { kind: 'simulated' }
        : {
            kind: 'nacha',
            outboxDir: settings.NACHA_OUTBOX_DIR!,
            inboxDir: settings.NACHA_INBOX_DIR!,
            originator: {
              destinationRouting: settings.NACHA_DESTINATION_ROUTING!,
              originId: settings.NACHA_ORIGIN_ID!,
              companyId: settings.NACHA_COMPANY_ID!,
              companyName: settings.NACHA_COMPANY_NAME!,
              balanced: settings.NACHA_BALANCED,
            },
          },
    smtpUrl: settings.SMTP_URL ?? null,
    smsUrl: settings.SMS_URL ?? null,
    webhookTargets: { allowedRanges: settings.WEBHOOK_ALLOW_CIDRS, extraCa },
    probeRanges: settings.PROBE_ALLOW_CIDRS,
    forwardCutoff: settings.FORWARD_CUTOFF,
    debitBatchIntervalSeconds: settings.DEBIT_BATCH_INTERVAL_SECONDS,
    warnings: [...surprising(settings, roles)],
  }
}

function withPassword(databaseUrl: string | undefined, password: string | undefined): string | null {
  if (databaseUrl === undefined || password === undefined) return databaseUrl ?? null
  return databaseUrlWithPassword(databaseUrl, password)
}

/** As a query parameter, for an address by socket has no host to put it before. */
export function databaseUrlWithPassword(databaseUrl: string, password: string): string {
  const url = new URL(databaseUrl)
  url.searchParams.set('password', password)
  return url.toString()
}

function* surprising(settings: Settings, roles: ReadonlySet<Role>): Iterable<string> {
  if (settings.DATABASE_URL === undefined && roles.size < ROLES.length) {
    const left = ROLES.filter((role) => !roles.has(role)).join(', ')
    yield `ROLES leaves out ${left}, and no other process can join the embedded database: set DATABASE_URL`
  }
  if (settings.OPERATOR_TOKEN !== undefined && settings.OPERATOR_TOKEN.length < 32) {
    yield 'OPERATOR_TOKEN is short, 32 random characters or more are hard to guess'
  }
  const urls = ['MCP_URL', 'CORE_URL', 'PAYMENTS_URL', 'PORTAL_URL'] as const
  const unset = urls.filter((name) => settings[name] === undefined)
  if (unset.length > 0 && (settings.HOST === '0.0.0.0' || settings.HOST === '::')) {
    yield `HOST is ${settings.HOST}, which no caller can use as an address: set ${unset.join(', ')}`
  }
}
