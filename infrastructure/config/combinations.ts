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
  ] as const
  if (settings.BANK_RAIL !== 'simulated') {
    yield { name: 'BANK_RAIL', problem: ' is "nacha", which this release does not have: expected simulated' }
  }
  if (new URL(settings.STRIPE_API_BASE).pathname !== '/') {
    yield { name: 'STRIPE_API_BASE', problem: ' has a path: expected an address without one' }
  }
  for (const [choice, value, names] of companions) {
    if (settings[choice] !== value) continue
    for (const name of names) {
      if (settings[name] === undefined)
        yield { name, problem: ` is missing, it is required with ${choice}=${value}` }
    }
  }
}

/** Settings that work and may surprise, one line each. */
export function* surprising(settings: Settings): Iterable<string> {
  const left = ROLES.filter((role) => !settings.ROLES.includes(role))
  if (settings.DATABASE_URL === undefined && left.length > 0) {
    yield `ROLES leaves out ${left.join(', ')}, and no other process can join the embedded database: set DATABASE_URL`
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
