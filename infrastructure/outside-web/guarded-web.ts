import { promises as dns } from 'node:dns'
import { type OutsideAnswer, type OutsideWeb, OutsideWebFailed } from '../../application/ports/outside-web.ts'
import { traced } from '../../application/ports/tracing.ts'
import type { AddressRange } from '../config/config.ts'
import { CheckedAgent } from '../webhooks/checked-agent.ts'
import { exchange } from '../webhooks/exchange.ts'
import { HostResolver, nameServersOf } from '../webhooks/resolver.ts'
import { formFault } from '../webhooks/target-addresses.ts'
import { TargetGuard } from '../webhooks/target-guard.ts'

/** One request, from the look-up of the host to the end of the answer, in real milliseconds. */
const REQUEST_MS = 10_000
/** Of all that comes back beside the body. */
const BESIDE_BODY_BYTES = 64 * 1024
const USER_AGENT = 'compstream/1'

interface Options {
  /** Ranges that may be asked although they are not public. */
  readonly allowedRanges: readonly AddressRange[]
  /** PEM text of further authorities; null: none. */
  readonly extraCa: string | null
  /** Name servers, `address:port`; null: the machine's. */
  readonly nameServers: readonly string[] | null
}

/** Reads what others publish, under the guard that webhook targets have. */
export class GuardedWeb implements OutsideWeb {
  readonly #agent: CheckedAgent
  readonly #nameServers: dns.Resolver

  constructor({ allowedRanges, extraCa, nameServers }: Options) {
    this.#nameServers = nameServersOf(nameServers)
    const guard = new TargetGuard(allowedRanges, HostResolver.asking(this.#nameServers))
    this.#agent = new CheckedAgent(guard, extraCa)
  }

  get(url: string, maxBytes: number, signal: AbortSignal): Promise<OutsideAnswer> {
    const attributes = { 'http.request.method': 'GET' }
    return traced({ name: 'GET outside', kind: 'client', attributes }, async (tell) => {
      const answer = await this.#get(url, maxBytes, signal)
      tell({ 'http.response.status_code': answer.statusCode })
      return answer
    })
  }

  async #get(url: string, maxBytes: number, signal: AbortSignal): Promise<OutsideAnswer> {
    signal.throwIfAborted()
    const refused = formFault(url)
    if (refused !== null) throw new OutsideWebFailed(`The address ${refused}`)
    const { statusCode, body, fault } = await exchange(
      url,
      {
        method: 'GET',
        agent: this.#agent,
        headers: { 'User-Agent': USER_AGENT },
        withinMs: REQUEST_MS,
        tooLate: `No whole answer came within ${REQUEST_MS / 1000} seconds`,
        bodyBytes: maxBytes,
        receivedBytes: maxBytes + BESIDE_BODY_BYTES,
      },
      signal,
    )
    if (fault !== null) throw new OutsideWebFailed(fault)
    return { statusCode: statusCode!, body }
  }

  async textRecords(name: string): Promise<readonly string[]> {
    try {
      const records = await this.#nameServers.resolveTxt(name)
      return records.map((parts) => parts.join(''))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === dns.NOTFOUND || code === dns.NODATA) return []
      throw new OutsideWebFailed('The name servers do not answer')
    }
  }
}
