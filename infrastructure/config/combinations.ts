import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isAbsolute, relative } from 'node:path'
import { ROLES, type Settings } from './settings.ts'

/** What is wrong with a variable. */
export interface Problem {
  readonly name: string
  /** What follows the name, with its leading blank or colon. */
  readonly problem: string
}

/** Settings that are each well-formed and cannot work with the others. */
export function* impossibleTogether(settings: Settings): Iterable<Problem> {
  if (settings.CLOCK === 'virtual' && settings.NODE_ENV === 'production') {
    yield { name: 'CLOCK', problem: ' is "virtual", which NODE_ENV=production refuses: expected system' }
  }
  if (settings.TECHNICAL_DEADLINE_SCALE !== 1 && settings.NODE_ENV === 'production') {
    const problem = ` is ${settings.TECHNICAL_DEADLINE_SCALE}, which NODE_ENV=production refuses: expected 1`
    yield { name: 'TECHNICAL_DEADLINE_SCALE', problem }
  }
  if (settings.DATABASE_URL !== undefined && settings.MASTER_KEY === undefined) {
    const expected = 'expected 32 bytes in base64 (openssl rand -base64 32)'
    yield { name: 'MASTER_KEY', problem: ` is missing, it is required with DATABASE_URL: ${expected}` }
  }
  if (settings.DATABASE_PASSWORD !== undefined) {
    const url = settings.DATABASE_URL
    if (url === undefined) {
      yield { name: 'DATABASE_PASSWORD', problem: ' is set and DATABASE_URL is not: expected both or none' }
    } else if (new URL(url).password !== '' || new URL(url).searchParams.has('password')) {
      const problem = ' is set and DATABASE_URL holds a password too: expected it in one of them'
      yield { name: 'DATABASE_PASSWORD', problem }
    }
  }
  yield* natsProblems(settings)
  const ports = ['MCP_PORT', 'CORE_PORT', 'PAYMENTS_PORT', 'PORTAL_PORT', 'OPS_PORT'] as const
  for (const [index, name] of ports.entries()) {
    const twin = ports.slice(0, index).find((earlier) => settings[earlier] === settings[name])
    if (twin && settings[name] !== 0) {
      yield { name, problem: ` is ${settings[name]}, which is ${twin} too: expected a port of its own` }
    }
  }
  yield* misplacedFolders(settings)
  yield* missingWith(settings, 'NACHA_BALANCED', true, ['NACHA_OFFSET_ROUTING', 'NACHA_OFFSET_ACCOUNT'])
  if (new URL(settings.STRIPE_API_BASE).pathname !== '/') {
    yield { name: 'STRIPE_API_BASE', problem: ' has a path: expected an address without one' }
  }
  const stripe = ['STRIPE_API_KEY', 'STRIPE_WEBHOOK_SECRET', 'STRIPE_PUBLISHABLE_KEY'] as const
  yield* missingWith(settings, 'PROCESSOR', 'stripe', stripe)
  yield* missingWith(settings, 'BANKCONNECT', 'plaid', ['PLAID_CLIENT_ID', 'PLAID_SECRET'])
  const folders = ['NACHA_OUTBOX_DIR', 'NACHA_INBOX_DIR', 'NACHA_DESTINATION_ROUTING'] as const
  yield* missingWith(settings, 'BANK_RAIL', 'nacha', folders)
  const originator = ['NACHA_ORIGIN_ID', 'NACHA_COMPANY_ID', 'NACHA_COMPANY_NAME'] as const
  yield* missingWith(settings, 'BANK_RAIL', 'nacha', originator)
}

/** What a choice requires and is not set. */
function* missingWith<Choice extends keyof Settings>(
  settings: Settings,
  choice: Choice,
  value: Settings[Choice],
  names: readonly (keyof Settings)[],
): Iterable<Problem> {
  if (settings[choice] !== value) return
  for (const name of names) {
    if (settings[name] === undefined)
      yield { name, problem: ` is missing, it is required with ${choice}=${value}` }
  }
}

function* natsProblems(settings: Settings): Iterable<Problem> {
  const { NATS_URL: urls, NATS_CLIENT_CERT_FILE: cert, NATS_CLIENT_KEY_FILE: key } = settings
  const credentials = (['NATS_NKEY_SEED', 'NATS_CREDS'] as const).filter((name) => settings[name])
  const ofTls = ['NATS_CA_FILE', 'NATS_CLIENT_CERT_FILE', 'NATS_CLIENT_KEY_FILE'] as const
  if (urls === undefined) {
    for (const name of [...credentials, ...ofTls]) {
      if (settings[name] !== undefined)
        yield { name, problem: ' is set and NATS_URL is not: expected both or none' }
    }
    return
  }
  const inUrl = urls.some((url) => new URL(url).username !== '') ? ['NATS_URL'] : []
  const [one, other] = [...credentials, ...inUrl]
  if (other !== undefined) {
    yield { name: one!, problem: ` is set and ${other} holds credentials too: expected them in one of them` }
  }
  if ((cert === undefined) !== (key === undefined)) {
    const [name, missing] =
      cert === undefined
        ? ['NATS_CLIENT_CERT_FILE', 'NATS_CLIENT_KEY_FILE']
        : ['NATS_CLIENT_KEY_FILE', 'NATS_CLIENT_CERT_FILE']
    yield { name, problem: ` is missing, it is required with ${missing}` }
  } else if (cert && key && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    yield { name: 'NATS_CLIENT_KEY_FILE', problem: ' is not the key of NATS_CLIENT_CERT_FILE' }
  }
}

/** Folders of a bank hold account numbers in plain text, and their carrier must not reach the data directory. */
function* misplacedFolders(settings: Settings): Iterable<Problem> {
  if (settings.BANK_RAIL !== 'nacha') return
  const { NACHA_OUTBOX_DIR: outbox, NACHA_INBOX_DIR: inbox } = settings
  for (const [name, folder] of Object.entries({ NACHA_OUTBOX_DIR: outbox, NACHA_INBOX_DIR: inbox })) {
    if (folder === undefined) continue
    if (isWithin(settings.DATA_DIR, folder) || isWithin(folder, settings.DATA_DIR)) {
      const problem = ` is in DATA_DIR (${settings.DATA_DIR}), or around it: expected a directory apart`
      yield { name, problem }
    }
  }
  if (outbox !== undefined && inbox !== undefined && (isWithin(outbox, inbox) || isWithin(inbox, outbox))) {
    const problem = ' is in the other folder, or the same: expected two directories apart'
    yield { name: 'NACHA_INBOX_DIR', problem }
  }
}

/** Whether a path is a directory or lies in it. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path)
  return way === '' || (!way.startsWith('..') && !isAbsolute(way))
}

/** Settings that work and may surprise, one line each. */
export function* surprising(settings: Settings): Iterable<string> {
  const left = ROLES.filter((role) => !settings.ROLES.includes(role))
  if (settings.DATABASE_URL === undefined && left.length > 0) {
    yield `ROLES leaves out ${left.join(', ')}, and no other process can join the embedded database: set DATABASE_URL`
  }
  if (settings.ACCESS_LOG === 'on' && !['trace', 'debug', 'info'].includes(settings.LOG_LEVEL)) {
    yield `ACCESS_LOG is on, and LOG_LEVEL is ${settings.LOG_LEVEL}: no request is logged below info`
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
