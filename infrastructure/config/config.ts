import { ConfigError } from '../config-error.ts'
import { impossibleTogether, type Problem, surprising } from './combinations.ts'
import { readSecretFiles } from './secret-files.ts'
import type { AddressRange } from './setting-kinds.ts'
import { type LogLevel, type Role, SETTING_NAMES, SETTINGS, type Settings } from './settings.ts'

export { ConfigError } from '../config-error.ts'
export type { AddressRange } from './setting-kinds.ts'

/** Everything that is set from outside, checked. */
export interface Config {
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
  return toConfig(parsed.data)
}

function oneLine(problems: readonly Problem[]): ConfigError {
  const first = problems[0]!
  const others = [...new Set(problems.map(({ name }) => name))].filter((name) => name !== first.name)
  const also = others.length > 0 ? ` (also to be corrected: ${others.join(', ')})` : ''
  return new ConfigError(`${first.name}${first.problem}${also}`)
}

function toConfig(settings: Settings): Config {
  return {
    logLevel: settings.LOG_LEVEL,
    serverName: settings.SERVER_NAME,
    roles: new Set(settings.ROLES),
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
    webhookTargets: {
      allowedRanges: settings.WEBHOOK_ALLOW_CIDRS,
      extraCa: settings.WEBHOOK_EXTRA_CA_FILE ?? null,
    },
    probeRanges: settings.PROBE_ALLOW_CIDRS,
    forwardCutoff: settings.FORWARD_CUTOFF,
    debitBatchIntervalSeconds: settings.DEBIT_BATCH_INTERVAL_SECONDS,
    warnings: [...surprising(settings)],
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
