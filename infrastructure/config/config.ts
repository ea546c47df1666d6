import type { Originator } from '../../domain/banking/files/nacha/draft.ts'
import { ConfigError } from '../config-error.ts'
import { impossibleTogether, type Problem, surprising } from './combinations.ts'
import { readSecretFiles } from './secret-files.ts'
import { type Role, SETTING_NAMES, SETTINGS, type Settings } from './settings.ts'

export { ConfigError } from '../config-error.ts'
export type { AddressRange } from './setting-kinds.ts'

/** Everything that is set from outside, checked. */
export type Config = Readonly<ReturnType<typeof configOf>>

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
        const expected = issue.code === 'custom' ? issue.params?.expected : undefined
        if (!files.has(name) || expected === undefined) return { name, problem: issue.message }
        return { name: `${name}_FILE`, problem: `: the file should hold ${expected}` }
      }),
    )
  }
  const problems = [...impossibleTogether(parsed.data)]
  if (problems.length > 0) throw oneLine(problems)
  return configOf(parsed.data)
}

function oneLine(problems: readonly Problem[]): ConfigError {
  const first = problems[0]!
  const others = [...new Set(problems.map(({ name }) => name))].filter((name) => name !== first.name)
  const also = others.length > 0 ? ` (also to be corrected: ${others.join(', ')})` : ''
  return new ConfigError(`${first.name}${first.problem}${also}`)
}

function configOf(settings: Settings) {
  return {
    logLevel: settings.LOG_LEVEL,
    /** Whether each request has a line in the log. */
    hasAccessLog: settings.ACCESS_LOG === 'on',
    /** Where traces are posted; null: none are kept. */
    tracesUrl: settings.OTEL_SDK_DISABLED ? null : tracesUrlOf(settings),
    /** Name that the tool server gives itself. */
    serverName: settings.SERVER_NAME,
    roles: new Set(settings.ROLES) as ReadonlySet<Role>,
    /** Address that all listeners bind. */
    host: settings.HOST,
    /** 0 picks a free port. */
    ports: {
      mcp: settings.MCP_PORT,
      core: settings.CORE_PORT,
      payments: settings.PAYMENTS_PORT,
      portal: settings.PORTAL_PORT,
      ops: settings.OPS_PORT,
    },
    /** Public base addresses without trailing slash; null: the listener's own address. */
    urls: {
      mcp: settings.MCP_URL ?? null,
      core: settings.CORE_URL ?? null,
      payments: settings.PAYMENTS_URL ?? null,
      portal: settings.PORTAL_URL === 'off' ? null : (settings.PORTAL_URL ?? null),
    },
    /** False with `PORTAL_URL=off`: the service has no page host of its own. */
    hasPortal: settings.PORTAL_URL !== 'off',
    /** Browser origins that may call the tool server besides its own address. */
    allowedOrigins: settings.MCP_ALLOWED_ORIGINS,
    /** Absolute path. */
    dataDir: settings.DATA_DIR,
    /** With `DATABASE_PASSWORD` in it; null: the embedded server. */
    databaseUrl: withPassword(settings.DATABASE_URL, settings.DATABASE_PASSWORD),
    /** Connection string of EventStoreDB or KurrentDB; null: the event log is in PostgreSQL. */
    eventStoreUrl: settings.EVENTSTORE_URL ?? null,
    /** `nats://` or `tls://` addresses of one server or cluster; null: notices stay in this process. */
    natsUrls: settings.NATS_URL ?? null,
    /** How to NATS beside what the addresses say; certificates and keys are PEM texts. */
    natsAccess: {
      nkeySeed: settings.NATS_NKEY_SEED ?? null,
      creds: settings.NATS_CREDS ?? null,
      ca: settings.NATS_CA_FILE ?? null,
      cert: settings.NATS_CLIENT_CERT_FILE ?? null,
      key: settings.NATS_CLIENT_KEY_FILE ?? null,
    },
    /** Of each JetStream stream that is made. */
    natsReplicas: settings.NATS_REPLICAS,
    /** Null: kept in the data directory. */
    operatorToken: settings.OPERATOR_TOKEN ?? null,
    /** 32 bytes each, the current one first; null: kept in the data directory. */
    masterKeys: settings.MASTER_KEY ?? null,
    clock: settings.CLOCK,
    /** Requests per second and credential; 0: no limit. */
    needsSecondOperator: settings.SECOND_OPERATOR === 'on',
    rateLimitPerSecond: settings.RATE_LIMIT_RPS,
    /** What technical deadlines are multiplied by. */
    technicalDeadlineScale: settings.TECHNICAL_DEADLINE_SCALE,
    /** Where new live links and subscriptions are made. */
    cardProcessor: settings.PROCESSOR,
    /** Null: what is at Stripe cannot be asked about. */
    stripe:
      settings.STRIPE_API_KEY === undefined || settings.STRIPE_WEBHOOK_SECRET === undefined
        ? null
        : {
            apiKey: settings.STRIPE_API_KEY,
            apiBase: settings.STRIPE_API_BASE,
            webhookSecret: settings.STRIPE_WEBHOOK_SECRET,
            publishableKey: settings.STRIPE_PUBLISHABLE_KEY ?? null,
          },
    bankLink:
      settings.BANKCONNECT === 'simulated'
        ? ({ kind: 'simulated' } as const)
        : ({
            kind: 'plaid',
            clientId: settings.PLAID_CLIENT_ID!,
            secret: settings.PLAID_SECRET!,
            baseUrl: settings.PLAID_BASE_URL,
          } as const),
    bankRail:
      settings.BANK_RAIL === 'simulated'
        ? ({ kind: 'simulated' } as const)
        : ({
            kind: 'nacha',
            outboxDir: settings.NACHA_OUTBOX_DIR!,
            inboxDir: settings.NACHA_INBOX_DIR!,
            dataDir: settings.DATA_DIR,
            originator: originatorOf(settings),
            pollSeconds: settings.NACHA_POLL_SECONDS,
          } as const),
    /** Null: emails and texts are recorded, not sent. */
    smtpUrl: settings.SMTP_URL ?? null,
    smsUrl: settings.SMS_URL ?? null,
    /** Servers of others. `extraCa`: PEM text of further CA certificates; `nameServers`: null: the machine's. */
    webhookTargets: {
      allowedRanges: settings.WEBHOOK_ALLOW_CIDRS,
      extraCa: settings.WEBHOOK_EXTRA_CA_FILE ?? null,
      nameServers: settings.DNS_SERVERS ?? null,
    },
    /** How far back the history of webhook deliveries goes. */
    webhookHistoryDays: settings.WEBHOOK_HISTORY_DAYS,
    /** Addresses that may read probes and metrics of the operator listener without a token. */
    probeRanges: settings.PROBE_ALLOW_CIDRS,
    /** Milliseconds since the epoch; debits whose source was accepted earlier are not collected. */
    forwardCutoff: settings.FORWARD_CUTOFF,
    debitBatchIntervalSeconds: settings.DEBIT_BATCH_INTERVAL_SECONDS,
    /** Null: checkpoints of the log are kept in the database alone. */
    auditCheckpointsDir: settings.AUDIT_CHECKPOINTS_DIR ?? null,
    auditWitnessKeys: settings.AUDIT_WITNESS_KEYS ?? [],
    /** Settings that work and may surprise, one line each, for the log. */
    warnings: [...surprising(settings)] as readonly string[],
  }
}

function tracesUrlOf(settings: Settings): string | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = settings
  return whole ?? (base === undefined ? null : `${base}/v1/traces`)
}

function originatorOf(settings: Settings): Originator {
  const companyName = settings.NACHA_COMPANY_NAME!
  return {
    destinationRouting: settings.NACHA_DESTINATION_ROUTING!,
    destinationName: settings.NACHA_DESTINATION_NAME ?? 'BANK',
    originId: settings.NACHA_ORIGIN_ID!,
    originName: settings.NACHA_ORIGIN_NAME ?? companyName,
    companyId: settings.NACHA_COMPANY_ID!,
    companyName,
    odfi: (settings.NACHA_ODFI_ROUTING ?? settings.NACHA_DESTINATION_ROUTING!).slice(0, 8),
    offset: settings.NACHA_BALANCED
      ? {
          routing: settings.NACHA_OFFSET_ROUTING!,
          account: settings.NACHA_OFFSET_ACCOUNT!,
          accountType: settings.NACHA_OFFSET_ACCOUNT_TYPE,
        }
      : null,
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
