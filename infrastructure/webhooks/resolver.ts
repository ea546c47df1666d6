import { ADDRCONFIG, promises as dns } from 'node:dns'
import { setTimeout as delay } from 'node:timers/promises'
import { isAddress } from './target-addresses.ts'

/** How long a name server may take, each try, in milliseconds. */
const NAME_SERVER_MS = 2_000
const TRIES = 2
/** Names that the system looks up at the same time: it has four threads for them, which others need, too. */
const SYSTEM_LOOKUPS = 2
/** Names that wait for the system at the most. */
const SYSTEM_WAITING = 100
/** How long finding the addresses of a host may take in all, in milliseconds. */
const DEADLINE_MS = 10_000
/** How long the answer of one family is waited for when the other one is there, in milliseconds (RFC 8305). */
const OTHER_FAMILY_MS = 50

/** What a host could not be resolved for. */
export class HostUnknown extends Error {
  override readonly name = 'HostUnknown'
}

/** The name servers; for tests. */
export interface NameSources {
  readonly resolve4: (host: string) => Promise<readonly string[]>
  readonly resolve6: (host: string) => Promise<readonly string[]>
  /** The system: its hosts file, its search list. */
  readonly lookup: (host: string) => Promise<readonly string[]>
}

/**
 * Finds the addresses of hosts. Name servers are asked without threads, so that any number of hosts whose servers are
 * silent hold up nothing; only names that these do not know are left to the system (its hosts file, its search list).
 */
export class HostResolver {
  readonly #sources: NameSources
  readonly #deadlineMs: number
  #lookups = 0
  readonly #waiting = new Set<() => void>()

  constructor(sources: NameSources = sourcesOf(nameServersOf(null)), deadlineMs = DEADLINE_MS) {
    this.#sources = sources
    this.#deadlineMs = deadlineMs
  }

  static asking(nameServers: dns.Resolver): HostResolver {
    return new HostResolver(sourcesOf(nameServers))
  }

  /** @returns at least one address. @throws HostUnknown */
  async addressesOf(host: string): Promise<readonly string[]> {
    if (isAddress(host)) return [host]
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), this.#deadlineMs)
    try {
      return await new Promise((resolve, reject) => {
        late.signal.addEventListener('abort', () =>
          reject(new HostUnknown('its addresses were not found in time')),
        )
        this.#find(host, late.signal).then(resolve, reject)
      })
    } finally {
      clearTimeout(timer)
    }
  }

  async #find(host: string, late: AbortSignal): Promise<readonly string[]> {
    const { resolve4, resolve6 } = this.#sources
    const asked = [resolve4(host), resolve6(host)].map((one) =>
      one.then(
        (found) => ({ found, code: null }),
        (error) => ({ found: [], code: String(error.code) }),
      ),
    )
    const all = Promise.all(asked)
    // the first answer waits a moment for addresses of the other family
    const first = await Promise.race([all, ...asked])
    const some = !Array.isArray(first) && first.found.length > 0 ? first.found : null
    const answers = some === null ? await all : await Promise.race([all, delay(OTHER_FAMILY_MS, null)])
    if (answers === null) return some!
    const found = answers.flatMap((one) => one.found)
    if (found.length > 0) return found
    if (answers.some(({ code }) => code === dns.TIMEOUT))
      throw new HostUnknown('its name servers do not answer')
    return this.#lookup(host, late)
  }

  async #lookup(host: string, late: AbortSignal): Promise<readonly string[]> {
    if (this.#lookups >= SYSTEM_LOOKUPS) await this.#turn(late)
    else this.#lookups += 1
    try {
      return await this.#sources.lookup(host)
    } catch {
      throw new HostUnknown('no name server knows it')
    } finally {
      // the place goes to the next look-up that waits
      const [next] = this.#waiting
      if (next) next()
      else this.#lookups -= 1
    }
  }

  /** Waits for a place among the look-ups of the system. @throws HostUnknown when there are too many, or it comes too late. */
  #turn(late: AbortSignal): Promise<void> {
    if (this.#waiting.size >= SYSTEM_WAITING) {
      throw new HostUnknown('too many names are being looked up')
    }
    return new Promise((resolve, reject) => {
      const go = () => {
        this.#waiting.delete(go)
        resolve()
      }
      this.#waiting.add(go)
      late.addEventListener('abort', () => {
        // a look-up passes its place on when it ends
        if (this.#waiting.delete(go)) reject(new HostUnknown('its addresses were not found in time'))
      })
    })
  }
}

/** @param servers `address:port` each; null: those of this machine. */
export function nameServersOf(servers: readonly string[] | null): dns.Resolver {
  const nameServers = new dns.Resolver({ timeout: NAME_SERVER_MS, tries: TRIES })
  if (servers !== null) nameServers.setServers([...servers])
  return nameServers
}

function sourcesOf(nameServers: dns.Resolver): NameSources {
  return {
    resolve4: (host) => nameServers.resolve4(host),
    resolve6: (host) => nameServers.resolve6(host),
    lookup: async (host) =>
      (await dns.lookup(host, { all: true, hints: ADDRCONFIG })).map(({ address }) => address),
  }
}
