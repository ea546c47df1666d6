import type { IncomingMessage } from 'node:http'
import type { Application } from '../../application/commands/application.ts'
import { tenantOfHost, tenantOfPage } from '../../application/payments/web-addresses.ts'
import type { HttpError } from '../http/errors.ts'
import { limitAddress, type RateLimiter } from '../http/rate-limit.ts'
import { noCheckout } from './embedded-pages.ts'
import { nowhere } from './session-pages.ts'

const PAGE = /^\/(pay(?=\/)|embed(?=\/[0-9a-f]{24}(?:[/?]|$)))\/([^/?]+)/

/**
 * Finds pages under the host of a tenant: at the addresses that its links have, and only its own. The service's own
 * hosts, and those that belong to no tenant, show the pages of everybody at `/pay/`.
 * @param ownHosts with their ports.
 * @param addresses limits requests for pages that do not exist.
 */
export function locatePages(
  app: Application,
  ownHosts: () => readonly string[],
  addresses: Pick<RateLimiter, 'take'>,
): (request: IncomingMessage) => Promise<void> {
  const refused = (request: IncomingMessage, refusal: HttpError) => {
    limitAddress(addresses, request)
    return refusal
  }
  return async (request) => {
    const { headers, url = '/' } = request
    if (headers.host === undefined || url === '*') return
    // most ask so, and addresses take their time to read
    if (url.startsWith('/') && ownHosts().includes(headers.host)) return
    const [host, path] = [hostOf(headers.host), pathOf(url)]
    if (host === null || path === null) throw refused(request, nowhere())
    if (ownHosts().includes(host.named)) return
    const tenant = await tenantAt(app, host)
    if (tenant === null) return
    const tokens = tenant.tokensIn(path)
    for (const token of tokens) {
      if ((await tenantOfPage(app, 'pay', token)) !== tenant.tenantId) continue
      request.url = `/pay/${token}`
      return
    }
    // what is routed is what was looked at
    request.url = withoutEscapes(path)
    const [, at, token] = PAGE.exec(request.url) ?? []
    if (at === undefined || token === undefined) {
      if (tokens.length > 0) throw refused(request, nowhere())
      return
    }
    if ((await tenantOfPage(app, at as 'pay' | 'embed', token)) !== tenant.tenantId) {
      throw refused(request, at === 'embed' ? noCheckout() : nowhere())
    }
  }
}

async function tenantAt(app: Application, { secured, portless }: Host) {
  return (
    (await tenantOfHost(app, secured)) ?? (secured === portless ? null : await tenantOfHost(app, portless))
  )
}

type Host = NonNullable<ReturnType<typeof hostOf>>

/**
 * The host that was asked for, as own addresses name it, as web addresses do, without port 443, and without any port:
 * it is the same with a full stop at the end. Null where it is none.
 */
function hostOf(host: string) {
  if (!URL.canParse(`https://${host}`)) return null
  const [plain, secure] = [new URL(`http://${host}`), new URL(`https://${host}`)]
  const bare = ({ host }: { readonly host: string }) => host.replace(/\.(?=(?::\d+)?$)/, '')
  return { named: bare(plain), secured: bare(secure), portless: bare({ host: secure.hostname }) }
}

/** Path and query of a request's target, which may be a whole address; null where it cannot be read. */
function pathOf(target: string): string | null {
  const address = target.startsWith('/') ? `http://page${target}` : target
  if (!URL.canParse(address)) return null
  const { pathname, search } = new URL(address)
  return /%(?![0-9a-f]{2})/i.test(pathname) ? null : `${pathname}${search}`
}

/** The same path and query with letters, digits, `-`, `.`, `_` and `~` as themselves, which mean the same escaped (RFC 3986). */
function withoutEscapes(pathAndQuery: string): string {
  return pathAndQuery.replace(/%([0-9a-f]{2})/gi, (written, hex) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\w.~-]/.test(character) ? character : written
  })
}
