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
  word,
} from './setting-kinds.ts'

export type Role = 'api' | 'projector' | 'worker'
export const ROLES: readonly Role[] = ['api', 'projector', 'worker']

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const NACHA_NAME = /^[\x20-\x7e]{1,23}$/
const NACHA_NAME_EXPECTED = '1 to 23 printable ASCII characters'

const port = (fallback: number) => wholeNumber(0, 65_535).default(fallback)
const secret = () => text('up to 1000 visible characters', /^[\x21-\x7e]{1,1000}$/).optional()

const NATS_CREDS =
  /^-+BEGIN NATS USER JWT-+\s+\S+\s+-+END NATS USER JWT-+[\s\S]*-+BEGIN USER NKEY SEED-+\s+SU[A-Z2-7]{56}\s+-+END USER NKEY SEED-+/

/** Every environment variable that is read, with its form and default. */
export const SETTINGS = z.object({
  NODE_ENV: z.string().optional(),
  LOG_LEVEL: word(LOG_LEVELS).default('info'),
  SERVER_NAME: text('up to 100 printable characters', /^[^\p{C}]{1,100}$/u).default(
    'payroll-reporting-tools',
  ),
  ROLES: list(`a comma list of ${ROLES.join(', ')}`, (item) => ROLES.find((role) => role === item), {
    quoted: true,
  }).default(ROLES),
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
  DATA_DIR: directory().default(() => resolve('data')),
  DATABASE_URL: address('a PostgreSQL address such as postgresql://user:password@host:5432/name', [
    'postgresql',
    'postgres',
  ]).optional(),
  DATABASE_PASSWORD: text('up to 1000 printable characters', /^[^\p{C}]{1,1000}$/u).optional(),
  EVENTSTORE_URL: eventStoreAddress().optional(),
  NATS_URL: list('a comma list of NATS addresses such as nats://host:4222', (item) =>
    /^(nats|tls):\/\/\S+$/.test(item) && URL.canParse(item) ? item : undefined,
  ).optional(),
  NATS_NKEY_SEED: text("a user's nkey seed, which begins with SU", /^SU[A-Z2-7]{56}$/).optional(),
  NATS_CREDS: text("what a user's creds file holds: a JWT and an nkey seed", NATS_CREDS).optional(),
  NATS_CA_FILE: certificateFile().optional(),
  NATS_CLIENT_CERT_FILE: certificateFile().optional(),
  NATS_CLIENT_KEY_FILE: privateKeyFile().optional(),
  NATS_REPLICAS: wholeNumber(1, 5).default(1),
  OPERATOR_TOKEN: text(OPERATOR_TOKEN_EXPECTED, OPERATOR_TOKEN).optional(),
  MASTER_KEY: keys().optional(),
  CLOCK: word(['system', 'virtual']).default('system'),
  RATE_LIMIT_RPS: decimalNumber(0, 1_000_000).default(100),
  TECHNICAL_DEADLINE_SCALE: decimalNumber(1, 100).default(1),
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
  NACHA_OUTBOX_DIR: directory().optional(),
  NACHA_INBOX_DIR: directory().optional(),
  NACHA_DESTINATION_ROUTING: routingNumber().optional(),
  NACHA_ORIGIN_ID: text('9 or 10 letters or digits', /^[A-Z0-9]{9,10}$/).optional(),
  NACHA_COMPANY_ID: text('9 or 10 letters or digits', /^[A-Z0-9]{9,10}$/).optional(),
  NACHA_COMPANY_NAME: text('1 to 16 printable ASCII characters', /^[\x20-\x7e]{1,16}$/).optional(),
  NACHA_DESTINATION_NAME: text(NACHA_NAME_EXPECTED, NACHA_NAME).optional(),
  NACHA_ORIGIN_NAME: text(NACHA_NAME_EXPECTED, NACHA_NAME).optional(),
  NACHA_ODFI_ROUTING: routingNumber().optional(),
  NACHA_BALANCED: flag().default(false),
  NACHA_OFFSET_ROUTING: routingNumber().optional(),
  NACHA_OFFSET_ACCOUNT: text('an account number of 1 to 17 digits', /^\d{1,17}$/).optional(),
  NACHA_OFFSET_ACCOUNT_TYPE: word(['checking', 'savings']).default('checking'),
  NACHA_POLL_SECONDS: wholeNumber(1, 86_400).default(30),
  SMTP_URL: address('an SMTP address such as smtps://user:password@host:465', ['smtp', 'smtps']).optional(),
  SMS_URL: address('an http or https address', ['http', 'https']).optional(),
  PROBE_ALLOW_CIDRS: addressRanges().default(LOCAL_RANGES),
  WEBHOOK_ALLOW_CIDRS: addressRanges().default([]),
  WEBHOOK_EXTRA_CA_FILE: certificateFile().optional(),
  DNS_SERVERS: nameServers().optional(),
  WEBHOOK_HISTORY_DAYS: wholeNumber(3, 3_650).default(30),
  FORWARD_CUTOFF: moment().default(() => Date.parse('2026-04-27T00:00:00Z')),
  DEBIT_BATCH_INTERVAL_SECONDS: wholeNumber(1, 86_400).default(60),
})
/** All variables, each well-formed. */
export type Settings = z.output<typeof SETTINGS>

/** Their names; those with secrets are also read as `<NAME>_FILE`. */
export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS.shape)
