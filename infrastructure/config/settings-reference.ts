import { SECRET_SETTINGS } from './secret-files.ts'
import { SETTINGS } from './settings.ts'

/** What people read of a setting. */
export interface SettingReference {
  readonly name: string
  /** Text that stands for the setting when it is not set; null: nothing does. */
  readonly fallback: string | null
  /** What a value looks like, as errors say it; null: any text. */
  readonly form: string | null
  /** Markdown; links are relative to `docs/reference`. */
  readonly meaning: string
  /** Whether `<NAME>_FILE` may name a file with the value. */
  readonly mayBeFile: boolean
}

const own = "the listener's own"

/** What each setting is for, in the order of the page. */
const MEANINGS: Readonly<
  Record<keyof typeof SETTINGS.shape, string | readonly [fallback: string, meaning: string]>
> = {
  HOST: 'Address that all listeners bind',
  MCP_PORT: 'Tool server; 0 picks a free port, as for all listeners',
  CORE_PORT: 'Core API',
  PAYMENTS_PORT: 'Payments',
  PORTAL_PORT: 'Hosted pages',
  OPS_PORT: 'Operator API',
  MCP_URL: [own, 'Public address of the tool server; its host name passes the `Host` and `Origin` check'],
  CORE_URL: [own, 'Public address of the core API, which its description names'],
  PAYMENTS_URL: [own, 'Public address of the payments host'],
  PORTAL_URL: [
    own,
    'Public address of hosted pages; `off`: no page host, links lead to their data on the payments host',
  ],
  MCP_ALLOWED_ORIGINS:
    'Browser origins whose pages may call the tool server, see [agents](../agents.md#from-a-browser)',
  SERVER_NAME: 'Name of the tool server in `initialize`',
  DATA_DIR: ['`./data`', "The embedded server's data, generated keys, operator token"],
  DATABASE_URL: [
    'the embedded server',
    'PostgreSQL 14 or later: read models, keys, work, and the event log without `EVENTSTORE_URL`',
  ],
  DATABASE_PASSWORD: 'For a `DATABASE_URL` without a password',
  EVENTSTORE_URL:
    'EventStoreDB 23.10 or KurrentDB 26 ([versions](../deployment.md#eventstoredb-and-kurrentdb)), which then holds the event log; `esdb+discover://` for a cluster; ' +
    '`user:password@` before the host. See [event log](../event-log.md#in-eventstoredb)',
  NATS_URL:
    'NATS with JetStream, a list for one cluster; `user:password@` or `token@` before the host. See ' +
    '[NATS](../operations.md#nats)',
  NATS_NKEY_SEED: "The user's nkey seed, where NATS wants one; in place of credentials in `NATS_URL`",
  NATS_CREDS:
    "Content of the user's creds file (JWT and nkey seed), where NATS wants one; in place of credentials in `NATS_URL`",
  NATS_CA_FILE:
    'CA certificates that NATS servers are verified with, in place of the public ones; nothing but TLS then',
  NATS_CLIENT_CERT_FILE:
    'Client certificate for NATS, with its chain, together with `NATS_CLIENT_KEY_FILE`; nothing but TLS then',
  NATS_CLIENT_KEY_FILE: 'Private key of `NATS_CLIENT_CERT_FILE`',
  NATS_REPLICAS: 'Replicas of the streams that the service creates: 3 in a cluster of three servers',
  ROLES: 'What this process does, see [several processes](../operations.md#several-processes)',
  OPERATOR_TOKEN: ['generated', 'Bearer token of the operator API; a warning below 32 characters'],
  MASTER_KEY: ['generated; required with `DATABASE_URL`', 'Wraps all other keys'],
  CLOCK: '`virtual`: time moves by the operator API only; refused with `NODE_ENV=production`',
  RATE_LIMIT_RPS: 'Requests per second and credential; 0: no rate limits',
  TECHNICAL_DEADLINE_SCALE:
    'Multiplies [technical deadlines](../operations.md#technical-deadlines), for tests on slow machines; refused with ' +
    '`NODE_ENV=production` unless 1',
  PROBE_ALLOW_CIDRS: [
    'loopback, link-local and private ranges',
    'Addresses that read [probes and metrics](../operations.md#probes-and-metrics) without the token',
  ],
  LOG_LEVEL: 'Least level of lines that are written',
  NODE_ENV: '`production` refuses what is for tests only',
  PROCESSOR: 'Card processor of live keys; what sandbox keys do stays with the simulated one',
  STRIPE_API_KEY: 'Required with `PROCESSOR=stripe`',
  STRIPE_API_BASE: 'Address of Stripe, without a path',
  STRIPE_WEBHOOK_SECRET: 'Required with `PROCESSOR=stripe`',
  STRIPE_PUBLISHABLE_KEY: 'Required with `PROCESSOR=stripe`',
  BANKCONNECT:
    'Bank link of live keys, see [bank linking](../bank-linking.md); what sandbox keys do stays with the simulated one',
  PLAID_CLIENT_ID: 'Required with `BANKCONNECT=plaid`',
  PLAID_SECRET: 'Required with `BANKCONNECT=plaid`',
  PLAID_BASE_URL: 'Address of Plaid, with `BANKCONNECT=plaid`',
  BANK_RAIL:
    'Bank rail of live debits, see [bank debits](../bank-debits.md) and [NACHA files](../nacha.md); what sandbox keys do ' +
    'stays with the simulated one',
  NACHA_OUTBOX_DIR: 'Required with `BANK_RAIL=nacha`: where files for the bank are put; not in `DATA_DIR`',
  NACHA_INBOX_DIR: 'Required with `BANK_RAIL=nacha`: where files of the bank are put; not in `DATA_DIR`',
  NACHA_DESTINATION_ROUTING: 'Required with `BANK_RAIL=nacha`: the bank, as file headers name it',
  NACHA_ORIGIN_ID: 'Required with `BANK_RAIL=nacha`: who sends, as file headers name it',
  NACHA_COMPANY_ID: 'Required with `BANK_RAIL=nacha`: the company, as batches name it',
  NACHA_COMPANY_NAME: 'Required with `BANK_RAIL=nacha`: what payers read on their statements',
  NACHA_DESTINATION_NAME: ['`BANK`', 'Name of the bank in file headers'],
  NACHA_ORIGIN_NAME: ["the company's", 'Name of who sends in file headers'],
  NACHA_ODFI_ROUTING: ['the destination', 'The originating bank, whose first 8 digits begin trace numbers'],
  NACHA_BALANCED: 'With `BANK_RAIL=nacha`: files carry the offsetting entries',
  NACHA_OFFSET_ROUTING: 'Required with `NACHA_BALANCED=true`: the account to which debits are credited',
  NACHA_OFFSET_ACCOUNT: 'Required with `NACHA_BALANCED=true`: its number',
  NACHA_OFFSET_ACCOUNT_TYPE: 'Its type',
  NACHA_POLL_SECONDS: 'How often both folders are looked into',
  SMTP_URL:
    'Delivers e-mail; `?from=` names the sender where a tenant has none. Without it e-mails are recorded, not sent',
  SMS_URL:
    'Delivers texts as Twilio does: account and token as user and password, `?from=` the number. Without it texts are recorded, not sent',
  WEBHOOK_ALLOW_CIDRS:
    'Ranges that webhook targets, logos and web addresses of partners may lie in although they are not public',
  WEBHOOK_EXTRA_CA_FILE: 'Further CA certificates for the same',
  DNS_SERVERS: ["the machine's", 'Name servers that are asked about the same'],
  WEBHOOK_HISTORY_DAYS:
    'Days after which deliveries of webhooks, with the bodies that were sent, leave the history',
  FORWARD_CUTOFF: ['`2026-04-27T00:00:00Z`', 'Debits whose source was accepted earlier are not collected'],
  DEBIT_BATCH_INTERVAL_SECONDS: 'How often the debit batch worker runs while debits wait',
}

/** A value that no setting takes, but those that take any text. */
const NO_VALUE = '\u0000'

/** All settings, from what declares them. */
export function settingsReference(): readonly SettingReference[] {
  const defaults: Readonly<Record<string, unknown>> = SETTINGS.parse({})
  const mayBeFiles: ReadonlySet<string> = new Set(SECRET_SETTINGS)
  return Object.entries(MEANINGS).map(([name, said]) => {
    const [fallback, meaning] = typeof said === 'string' ? [shown(defaults[name]), said] : said
    const refused = SETTINGS.shape[name as keyof typeof SETTINGS.shape].safeParse(NO_VALUE)
    const form = refused.error?.issues[0]?.message.replace(/^.*expected /s, '') ?? null
    return { name, fallback, form, meaning, mayBeFile: mayBeFiles.has(name) }
  })
}

function shown(value: unknown): string | null {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null
  return `\`${Array.isArray(value) ? value.join(',') : value}\``
}
