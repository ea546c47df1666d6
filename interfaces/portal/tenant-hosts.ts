import type { IncomingMessage } from 'node:http'
import type { Application } from '../../application/application.ts'
import { tenantOfHost, tenantOfPage } from '../../application/payments/web-addresses.ts'
import { HttpError } from '../http/errors.ts'

const PAGE = /^\/(pay|embed)\/([^/?]+)/

/**
 * Finds pages under the host of a tenant: at the addresses that its links have, and only its own. The service's own
 * hosts, and those that are nobody's, show the pages of everybody at `/pay/`.
 * @param ownHosts with their ports.
 */
export function locatePages(
  app: Application,
  ownHosts: () => readonly string[],
): (request: IncomingMessage) => Promise<void> {
  return async (request) => {
    const host = hostOf(request)
    if (host === null || ownHosts().includes(host.named)) return
    const tenant = await tenantOfHost(app, host.secured)
    if (tenant === null) return
    const url = request.url ?? '/'
    const [, at = 'pay', token = tenant.tokenIn(url)] = PAGE.exec(url) ?? []
    if (token === null) return
    if ((await tenantOfPage(app, at as 'pay' | 'embed', token)) !== tenant.tenantId) {
      throw new HttpError(404, null, 'There is no such page')
    }
    if (!PAGE.test(url)) request.url = `/pay/${token}`
  }
}

/** The host that was asked for, as own addresses name it, and as web addresses do: without port 443. */
function hostOf({ headers: { host } }: IncomingMessage) {
  if (host === undefined || !URL.canParse(`https://${host}`)) return null
  return { named: new URL(`http://${host}`).host, secured: new URL(`https://${host}`).host }
}
