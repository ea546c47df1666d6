import { resolve } from 'node:path'
import { z } from 'zod'
import {
  address,
  addressRanges,
  baseUrl,
  baseUrlOrOff,
  certificateFile,
  decimalNumber,
  directory,
  eventStoreAddress,
  flag,
  host,
  keys,
  LOCAL_RANGES,
  list,
  moment,
  nameServers,
  OPERATOR_TOKEN,
  OPERATOR_TOKEN_EXPECTED,
  origins,
  privateKeyFile,
  routingNumber,
  text,
  wholeNumber,
  witnessKeys,
  word,
} from './setting-kinds.ts'

export type Role = 'api' | 'projector' | 'worker'
export const ROLES: readonly Role[] = ['api', 'projector', 'worker']

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Samplers of the OpenTelemetry SDK. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

const NACHA_NAME = /^[\x20-\x7e]{1,23}$/
const NACHA_NAME_EXPECTED = '1 to 23 printable ASCII characters'

const port = (fallback: number) => wholeNumber(0, 65_535).default(fallback)
const secret = () => text('up to 1000 visible characters', /^[\x21-\x7e]{1,1000}$/).optional()

const NATS_CREDS =
  /^-+BEGIN NATS USER JWT-+\s+\S+\s+-+END NATS USER JWT-+[\s\S]*-+BEGIN USER NKEY SEED-+\s+SU[A-Z2-7]{56}\s+-+END USER NKEY SEED-+/

const OWN = "the listener's own"

declare module 'zod' {
  interface GlobalMeta {
    /** Text that stands for a setting that is not set, where that is no default that can be shown. */
    readonly fallback?: string
    /** Whether `<NAME>_FILE` may name a file with the value: it is a secret, or an address that may hold a password. */
    readonly isSecret?: boolean
  }
}

/** Every environment variable that is read: form, default and meaning (Markdown, links are relative to `docs/reference`). */
export const SETTINGS = z.object({
  HOST: host().default('127.0.0.1').describe('Address that all listeners bind'),
  MCP_PORT: port(4001).describe('Tool server; 0 picks a free port, as for all listeners'),
  CORE_PORT: port(4002).describe('Core API'),
  PAYMENTS_PORT: port(4003).describe('Payments'),
  PORTAL_PORT: port(4004).describe('Hosted pages'),
  OPS_PORT: port(4005).describe('Operator API'),
  MCP_URL: baseUrl().optional().meta({
    description: 'Public address of the tool server; its host name passes the `Host` and `Origin` check',
    fallback: OWN,
  }),
  CORE_URL: baseUrl()
    .optional()
    .meta({ description: 'Public address of the core API, which its description names', fallback: OWN }),
  PAYMENTS_URL: baseUrl()
    .optional()
    .meta({ description: 'Public address of the payments host', fallback: OWN }),
  PORTAL_URL: baseUrlOrOff().optional().meta({
    description:
      'Public address of hosted pages; `off`: no page host, links lead to their data on the payments host',
    fallback: OWN,
  }),
  MCP_ALLOWED_ORIGINS: origins()
    .default([])
    .describe(
      'Browser origins whose pages may call the tool server, see [agents](../agents/tool-server.md#from-a-browser)',
    ),
  SERVER_NAME: text('up to 100 printable characters', /^[^\p{C}]{1,100}$/u)
    .default('payroll-reporting-tools')
    .describe('Name of the tool server in `initialize`'),
  DATA_DIR: directory()
    .default(() => resolve('data'))
    .meta({
      description: "The embedded server's data, generated keys, operator token",
      fallback: '`./data`',
    }),
  DATABASE_URL: address('a PostgreSQL address such as postgresql://user:password@host:5432/name', [
    'postgresql',
    'postgres',
  ])
    .optional()
    .meta({
      description:
        'PostgreSQL 14 or later: read models, keys, work, and the event log without `EVENTSTORE_URL`',
      fallback: 'the embedded server',
      isSecret: true,
    }),
  DATABASE_PASSWORD: text('up to 1000 printable characters', /^[^\p{C}]{1,1000}$/u)
    .optional()
    .meta({ description: 'For a `DATABASE_URL` without a password', isSecret: true }),
  EVENTSTORE_URL: eventStoreAddress()
    .optional()
    .meta({
      description:
        'EventStoreDB 23.10 or KurrentDB 26 ([versions](../operators/deployment.md#eventstoredb-and-kurrentdb)), which then holds the event log; `esdb+discover://` for a cluster; ' +
        '`user:password@` before the host. See [event log](../auditors/event-log.md#in-eventstoredb)',
      isSecret: true,
    }),
  NATS_URL: list('a comma list of NATS addresses such as nats://host:4222', (item) =>
    /^(nats|tls):\/\/\S+$/.test(item) && URL.canParse(item) ? item : undefined,
  )
    .optional()
    .meta({
      description:
        'NATS with JetStream, a list for one cluster; `user:password@` or `token@` before the host. See ' +
        '[NATS](../operators/operations.md#nats)',
      isSecret: true,
    }),
  NATS_NKEY_SEED: text("a user's nkey seed, which begins with SU", /^SU[A-Z2-7]{56}$/)
    .optional()
    .meta({
      description: "The user's nkey seed, where NATS wants one; in place of credentials in `NATS_URL`",
      isSecret: true,
    }),
  NATS_CREDS: text("what a user's creds file holds: a JWT and an nkey seed", NATS_CREDS).optional().meta({
    description:
      "Content of the user's creds file (JWT and nkey seed), where NATS wants one; in place of credentials in `NATS_URL`",
    isSecret: true,
  }),
  NATS_CA_FILE: certificateFile()
    .optional()
    .describe(
      'CA certificates that NATS servers are verified with, in place of the public ones; nothing but TLS then',
    ),
  NATS_CLIENT_CERT_FILE: certificateFile()
    .optional()
    .describe(
      'Client certificate for NATS, with its chain, together with `NATS_CLIENT_KEY_FILE`; nothing but TLS then',
    ),
  NATS_CLIENT_KEY_FILE: privateKeyFile().optional().describe('Private key of `NATS_CLIENT_CERT_FILE`'),
  NATS_REPLICAS: wholeNumber(1, 5)
    .default(1)
    .describe('Replicas of the streams that the service creates: 3 in a cluster of three servers'),
  ROLES: list(`a comma list of ${ROLES.join(', ')}`, (item) => ROLES.find((role) => role === item), {
    quoted: true,
  })
    .default(ROLES)
    .describe(
      'What this process does, see [several processes](../operators/operations.md#several-processes)',
    ),
  OPERATOR_TOKEN: text(OPERATOR_TOKEN_EXPECTED, OPERATOR_TOKEN).optional().meta({
    description:
      'Bearer token of the [first admin](../operators/operators.md#the-first-admin) until it is rotated or revoked; a warning below 32 characters',
    fallback: 'generated',
    isSecret: true,
  }),
  SECOND_OPERATOR: word(['off', 'on'])
    .default('off')
    .describe(
      '`on`: an erasure, a release of a bank debit and the resending of an uncertain file [wait for a second operator](../operators/operators.md#a-second-operator)',
    ),
  MASTER_KEY: keys().optional().meta({
    description: 'Wraps all other keys',
    fallback: 'generated; required with `DATABASE_URL`',
    isSecret: true,
  }),
  CLOCK: word(['system', 'virtual'])
    .default('system')
    .describe('`virtual`: time moves by the operator API only; refused with `NODE_ENV=production`'),
  RATE_LIMIT_RPS: decimalNumber(0, 1_000_000)
    .default(100)
    .describe('Requests per second and credential; 0: no rate limits'),
  AUDIT_CHECKPOINTS_DIR: directory()
    .optional()
    .describe(
      'Folder where [signed checkpoints](../auditors/event-log.md#checkpoints) of the log are kept as well as in the database; not in ' +
        '`DATA_DIR`, and best on another machine',
    ),
  AUDIT_WITNESS_KEYS: witnessKeys()
    .optional()
    .describe(
      'Verifier keys of [witnesses](../auditors/event-log.md#witnesses) whose cosignatures of checkpoints are taken, in a comma list',
    ),
  TECHNICAL_DEADLINE_SCALE: decimalNumber(1, 100)
    .default(1)
    .describe(
      'Multiplies [technical deadlines](../operators/operations.md#technical-deadlines), for tests on slow machines; refused with ' +
        '`NODE_ENV=production` unless 1',
    ),
  PROBE_ALLOW_CIDRS: addressRanges().default(LOCAL_RANGES).meta({
    description:
      'Addresses that read [probes and metrics](../operators/operations.md#probes-and-metrics) without the token',
    fallback: 'loopback, link-local and private ranges',
  }),
  ACCESS_LOG: word(['on', 'off'])
    .default('off')
    .describe('`on`: [a line for each request](../operators/telemetry.md#access-log), of level `info`'),
  OTEL_EXPORTER_OTLP_ENDPOINT: baseUrl()
    .optional()
    .describe(
      '[Traces](../operators/telemetry.md#traces) are sent to `/v1/traces` below this address; other standard `OTEL_*` variables count, too',
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: baseUrl()
    .optional()
    .describe('The whole address that traces are sent to, in place of the one before'),
  OTEL_EXPORTER_OTLP_PROTOCOL: word(['http/json', 'http/protobuf'])
    .default('http/json')
    .describe('Traces are sent as JSON either way: collectors take both at one address. There is no gRPC'),
  OTEL_TRACES_SAMPLER: word(SAMPLERS)
    .default('parentbased_always_on')
    .describe('Which traces are kept; `parentbased_…`: those that callers keep are kept, too'),
  OTEL_TRACES_SAMPLER_ARG: decimalNumber(0, 1)
    .default(1)
    .describe('The part of all traces that is kept, with a sampler by ratio'),
  OTEL_SDK_DISABLED: flag().default(false).describe('`true`: no traces, whatever else is set'),
  LOG_LEVEL: word(LOG_LEVELS).default('info').describe('Least level of lines that are written'),
  NODE_ENV: z.string().optional().describe('`production` refuses what is for tests only'),
  PROCESSOR: word(['simulated', 'stripe'])
    .default('simulated')
    .describe('Card processor of live keys; what sandbox keys do stays with the simulated one'),
  STRIPE_API_KEY: secret().meta({ description: 'Required with `PROCESSOR=stripe`', isSecret: true }),
  STRIPE_API_BASE: baseUrl().default('https://api.stripe.com').describe('Address of Stripe, without a path'),
  STRIPE_WEBHOOK_SECRET: secret().meta({ description: 'Required with `PROCESSOR=stripe`', isSecret: true }),
  STRIPE_PUBLISHABLE_KEY: secret().describe('Required with `PROCESSOR=stripe`'),
  BANKCONNECT: word(['simulated', 'plaid'])
    .default('simulated')
    .describe(
      'Bank link of live keys, see [bank linking](../partners/bank-linking.md); what sandbox keys do stays with the simulated one',
    ),
  PLAID_CLIENT_ID: secret().meta({ description: 'Required with `BANKCONNECT=plaid`', isSecret: true }),
  PLAID_SECRET: secret().meta({ description: 'Required with `BANKCONNECT=plaid`', isSecret: true }),
  PLAID_BASE_URL: baseUrl()
    .default('https://production.plaid.com')
    .describe('Address of Plaid, with `BANKCONNECT=plaid`'),
  BANK_RAIL: word(['simulated', 'nacha'])
    .default('simulated')
    .describe(
      'Bank rail of live debits, see [bank debits](../partners/bank-debits.md) and [NACHA files](../operators/nacha.md); what sandbox keys do ' +
        'stays with the simulated one',
    ),
  NACHA_OUTBOX_DIR: directory()
    .optional()
    .describe('Required with `BANK_RAIL=nacha`: where files for the bank are put; not in `DATA_DIR`'),
  NACHA_INBOX_DIR: directory()
    .optional()
    .describe('Required with `BANK_RAIL=nacha`: where files of the bank are put; not in `DATA_DIR`'),
  NACHA_DESTINATION_ROUTING: routingNumber()
    .optional()
    .describe('Required with `BANK_RAIL=nacha`: the bank, as file headers name it'),
  NACHA_ORIGIN_ID: text('9 or 10 letters or digits', /^[A-Z0-9]{9,10}$/)
    .optional()
    .describe('Required with `BANK_RAIL=nacha`: who sends, as file headers name it'),
  NACHA_COMPANY_ID: text('9 or 10 letters or digits', /^[A-Z0-9]{9,10}$/)
    .optional()
    .describe('Required with `BANK_RAIL=nacha`: the company, as batches name it'),
  NACHA_COMPANY_NAME: text('1 to 16 printable ASCII characters', /^[\x20-\x7e]{1,16}$/)
    .optional()
    .describe('Required with `BANK_RAIL=nacha`: what payers read on their statements'),
  NACHA_DESTINATION_NAME: text(NACHA_NAME_EXPECTED, NACHA_NAME)
    .optional()
    .meta({ description: 'Name of the bank in file headers', fallback: '`BANK`' }),
  NACHA_ORIGIN_NAME: text(NACHA_NAME_EXPECTED, NACHA_NAME)
    .optional()
    .meta({ description: 'Name of who sends in file headers', fallback: "the company's" }),
  NACHA_ODFI_ROUTING: routingNumber().optional().meta({
    description: 'The originating bank, whose first 8 digits begin trace numbers',
    fallback: 'the destination',
  }),
  NACHA_BALANCED: flag()
    .default(false)
    .describe('With `BANK_RAIL=nacha`: files carry the offsetting entries'),
  NACHA_OFFSET_ROUTING: routingNumber()
    .optional()
    .describe('Required with `NACHA_BALANCED=true`: the account to which debits are credited'),
  NACHA_OFFSET_ACCOUNT: text('an account number of 1 to 17 digits', /^\d{1,17}$/)
    .optional()
    .meta({ description: 'Required with `NACHA_BALANCED=true`: its number', isSecret: true }),
  NACHA_OFFSET_ACCOUNT_TYPE: word(['checking', 'savings']).default('checking').describe('Its type'),
  NACHA_POLL_SECONDS: wholeNumber(1, 86_400).default(30).describe('How often both folders are looked into'),
  SMTP_URL: address('an SMTP address such as smtps://user:password@host:465', ['smtp', 'smtps'])
    .optional()
    .meta({
      description:
        'Delivers email; `?from=` names the sender where a tenant has none. Without it emails are recorded, not sent',
      isSecret: true,
    }),
  SMS_URL: address('an http or https address', ['http', 'https']).optional().meta({
    description:
      'Delivers texts as Twilio does: account and token as user and password, `?from=` the number. Without it texts are recorded, not sent',
    isSecret: true,
  }),
  WEBHOOK_ALLOW_CIDRS: addressRanges()
    .default([])
    .describe(
      'Ranges that webhook targets, logos and web addresses of partners may lie in although they are not public',
    ),
  WEBHOOK_EXTRA_CA_FILE: certificateFile().optional().describe('Further CA certificates for the same'),
  DNS_SERVERS: nameServers()
    .optional()
    .meta({ description: 'Name servers that are asked about the same', fallback: "the machine's" }),
  WEBHOOK_HISTORY_DAYS: wholeNumber(3, 3_650)
    .default(30)
    .describe('Days after which deliveries of webhooks, with the bodies that were sent, leave the history'),
  FORWARD_CUTOFF: moment()
    .default(() => Date.parse('2026-04-27T00:00:00Z'))
    .meta({
      description: 'Debits whose source was accepted earlier are not collected',
      fallback: '`2026-04-27T00:00:00Z`',
    }),
  DEBIT_BATCH_INTERVAL_SECONDS: wholeNumber(1, 86_400)
    .default(60)
    .describe('How often the debit batch worker runs while debits wait'),
})
/** All variables, each well-formed. */
export type Settings = z.output<typeof SETTINGS>

/** Their names. */
export const SETTING_NAMES = Object.keys(SETTINGS.shape) as readonly (keyof Settings)[]
/** Those that are also read from the file that `<NAME>_FILE` names. */
export const SECRET_SETTINGS = SETTING_NAMES.filter((name) => SETTINGS.shape[name].meta()?.isSecret)
