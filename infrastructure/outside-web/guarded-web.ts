import { promises as dns } from 'node:dns'
import { request as overHttps } from 'node:https'
import { type OutsideAnswer, type OutsideWeb, OutsideWebFailed } from '../../application/ports/outside-web.ts'
import type { AddressRange } from '../config/config.ts'
import { CheckedAgent } from '../webhooks/checked-agent.ts'
import { HostResolver, nameServersOf } from '../webhooks/resolver.ts'
import { reasonOf } from '../webhooks/sender.ts'
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
    signal.throwIfAborted()
    const fault = formFault(url)
    if (fault !== null) return Promise.reject(new OutsideWebFailed(`The address ${fault}`))
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let received = 0
      const limit = setTimeout(() => fail('No whole answer came within 10 seconds'), REQUEST_MS)
      const outgoing = overHttps(url, { agent: this.#agent, headers: { 'User-Agent': USER_AGENT } })
      const end = () => {
        clearTimeout(limit)
        outgoing.socket?.off('data', count)
        signal.removeEventListener('abort', abort)
      }
      const fail = (why: string) => {
        end()
        reject(new OutsideWebFailed(why))
        outgoing.destroy()
      }
      const abort = () => {
        end()
        reject(signal.reason)
        outgoing.destroy()
      }
      const count = (chunk: Buffer) => {
        received += chunk.length
        if (received > maxBytes + BESIDE_BODY_BYTES) fail('The answer is too long')
      }
      signal.addEventListener('abort', abort)
      outgoing.on('socket', (socket) => socket.on('data', count))
      outgoing.on('error', (error) => fail(reasonOf(error, outgoing.socket)))
      outgoing.on('upgrade', ({ statusCode }) => fail(`It answered ${statusCode}`))
      outgoing.on('response', (response) => {
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > maxBytes) fail('The answer is too long')
          else chunks.push(chunk)
        })
        response.on('error', (error) => fail(reasonOf(error)))
        response.on('end', () => {
          end()
          resolve({ statusCode: response.statusCode!, body: Buffer.concat(chunks) })
        })
      })
      outgoing.end()
    })
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
