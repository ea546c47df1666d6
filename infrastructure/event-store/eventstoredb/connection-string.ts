const FORM = /^(?:esdb|kurrentdb)(\+discover)?:\/\/(?:([^@/?#\s]*)@)?([^@/?#\s]+)\/?(?:\?(\S*))?$/i
const CREDENTIALS = /^[^:]+:[^:]+$/
const HOST = /^[\w.-]+(?::(\d{1,5}))?$/
const HIGHEST_PORT = 65_535

/** What the value of an option may be, and how messages say it. */
interface Kind {
  readonly form: RegExp
  readonly words: string
}
const TEXT: Kind = { form: /./, words: 'a text, special characters percent-encoded' }
const YES_OR_NO: Kind = { form: /^(true|false)$/, words: 'true or false' }
const COUNT: Kind = { form: /^[1-9]\d{0,8}$/, words: 'a whole number of 1 or more' }
const KEEP_ALIVE: Kind = { form: /^(-1|\d{1,9})$/, words: 'a whole number of milliseconds, or -1 for none' }

const KINDS = {
  tls: YES_OR_NO,
  tlsCAFile: TEXT,
  tlsVerifyCert: YES_OR_NO,
  userCertFile: TEXT,
  userKeyFile: TEXT,
  connectionName: TEXT,
  keepAliveInterval: KEEP_ALIVE,
  keepAliveTimeout: KEEP_ALIVE,
  maxDiscoverAttempts: COUNT,
  discoveryInterval: COUNT,
  gossipTimeout: COUNT,
}
type Option = keyof typeof KINDS
const OPTIONS = Object.keys(KINDS) as Option[]
/** Without regard to case, `-` and `_`, as the client reads them. */
const KNOWN = new Map(OPTIONS.map((name) => [flat(name), name]))
/** The client knows them, but the log goes to the leader, waits and takes failures in its own ways. */
const WITHOUT_EFFECT = new Map(
  ['nodePreference', 'defaultDeadline', 'throwOnAppendFailure'].map((name) => [flat(name), name]),
)
/** The client warns of less, with the whole string. */
const SHORTEST_KEEP_ALIVE_MS = 10_000
/** Waiting for a leader is left to the callers' patience; one look asks every node, these seconds long. */
const DISCOVERY = { maxDiscoverAttempts: '1', gossipTimeout: '2' }

/** A connection string that was checked. */
interface ConnectionString {
  /** `host:port`, several with a comma; for messages. */
  readonly target: string
  /**
   * What the client is given for its nth connection: connections whose settings differ do not share gRPC's memory of
   * failed attempts.
   */
  forClient(nth: number): string
}

/**
 * Checks a connection string, because the client quotes what it does not understand, password included, and prints it.
 * @throws Error saying what is wrong, without quoting.
 */
export function readConnectionString(text: string): ConnectionString {
  const [, discover = '', credentials, hosts, query] = FORM.exec(text.trim()) ?? []
  if (hosts === undefined) {
    throw new Error(
      'the connection string is not of the form esdb://user:password@host:2113?option=value ' +
        '(special characters in user and password percent-encoded)',
    )
  }
  if (credentials !== undefined && !(CREDENTIALS.test(credentials) && isDecodable(credentials))) {
    throw new Error('the connection string must give user:password, special characters percent-encoded')
  }
  checkHosts(hosts)
  const options = new Map<string, string>(Object.entries(DISCOVERY))
  for (const [name, value] of optionsOf(query)) options.set(name, value)
  const keepAlive = Number(options.get('keepAliveInterval') ?? SHORTEST_KEEP_ALIVE_MS)
  const user = credentials === undefined ? '' : `${credentials}@`
  return {
    target: hosts,
    forClient(nth) {
      if (keepAlive >= 0) {
        const interval = Math.max(keepAlive, SHORTEST_KEEP_ALIVE_MS) + (nth % 1000)
        options.set('keepAliveInterval', String(interval))
      }
      const settings = [...options].map(([name, value]) => `${name}=${value}`).join('&')
      return `esdb${discover.toLowerCase()}://${user}${hosts}?${settings}`
    },
  }
}

function checkHosts(hosts: string): void {
  // the client splits at every colon
  if (hosts.includes('[')) {
    throw new Error('the connection string must give hosts by name or IPv4 address, not by IPv6 address')
  }
  for (const host of hosts.split(',')) {
    const [match, port] = HOST.exec(host) ?? []
    if (match === undefined) {
      throw new Error('the connection string must give host:port, several with a comma')
    }
    if (port !== undefined && !(Number(port) >= 1 && Number(port) <= HIGHEST_PORT)) {
      throw new Error(`the connection string's ports must be from 1 to ${HIGHEST_PORT}`)
    }
  }
}

function optionsOf(query: string | undefined): [Option, string][] {
  if (query === undefined || query === '') return []
  return query.split('&').map((pair) => {
    const [name = '', value = '', ...more] = pair.split('=')
    const known = KNOWN.get(flat(name))
    const idle = WITHOUT_EFFECT.get(flat(name))
    if (idle !== undefined) {
      throw new Error(`the connection string's option ${idle} has no effect here: leave it out`)
    }
    if (known === undefined) {
      throw new Error(`the connection string has an unknown option; known are ${OPTIONS.join(', ')}`)
    }
    if (value === '' || value.includes('?') || more.length > 0 || !isDecodable(value)) {
      throw new Error(`the connection string's option ${known} has no proper value`)
    }
    const { form, words } = KINDS[known]
    if (!form.test(value)) throw new Error(`the connection string's option ${known} must be ${words}`)
    if (known === 'tlsVerifyCert' && value !== 'true') {
      throw new Error('certificates are always verified: give the CA as tlsCAFile instead of tlsVerifyCert')
    }
    return [known, value]
  })
}

function flat(name: string): string {
  return name.trim().toLowerCase().replace(/[_-]/g, '')
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
