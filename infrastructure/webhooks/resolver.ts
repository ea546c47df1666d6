import { ADDRCONFIG, promises as dns } from 'node:dns'
import { isAddress } from './target-addresses.ts'

/** How long a name server may take, each try, in milliseconds. */
const NAME_SERVER_MS = 2_000
const TRIES = 2
/** Names that the system looks up at the same time: it has four threads for them, which others need, too. */
const SYSTEM_LOOKUPS = 2
/** What a host could not be resolved for. */
export class HostUnknown extends Error {
  override readonly name = 'HostUnknown'
}

/**
 * Finds the addresses of hosts. Name servers are asked without threads, so that any number of hosts whose servers are
 * silent hold up nobody; only names that these do not know are left to the system (its hosts file, its search list).
 */
export class HostResolver {
  readonly #nameServers = new dns.Resolver({ timeout: NAME_SERVER_MS, tries: TRIES })
  #lookups = 0
  readonly #waiting: (() => void)[] = []

  /** @returns at least one address. @throws HostUnknown */
  async addressesOf(host: string): Promise<readonly string[]> {
    if (isAddress(host)) return [host]
    const asked = await Promise.allSettled([
      this.#nameServers.resolve4(host),
      this.#nameServers.resolve6(host),
    ])
    const found = asked.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    if (found.length > 0) return found
    const isSilent = asked.some((one) => one.status === 'rejected' && one.reason.code === dns.TIMEOUT)
    if (isSilent) throw new HostUnknown('its name servers do not answer')
    return this.#lookup(host)
  }

  async #lookup(host: string): Promise<readonly string[]> {
    if (this.#lookups >= SYSTEM_LOOKUPS) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#lookups += 1
    try {
      const found = await dns.lookup(host, { all: true, hints: ADDRCONFIG })
      return found.map(({ address }) => address)
    } catch {
      throw new HostUnknown('no name server knows it')
    } finally {
      // the place goes to whoever waits
      const next = this.#waiting.shift()
      if (next) next()
      else this.#lookups -= 1
    }
  }
}
