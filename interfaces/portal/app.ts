import type { Express, Request, Response } from 'express'
import type { Application } from '../../application/application.ts'
import { financingByToken, financingPage } from '../../application/financing/financing-page.ts'
import { linkPage } from '../../application/payments/link-page.ts'
import { tenantOfPage } from '../../application/payments/web-addresses.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { generalWord } from '../http/errors.ts'
import { limitAddress, limitCredential, type RateLimits } from '../http/rate-limit.ts'
import { createHost, type HostSettings } from '../http/server.ts'
import { EmbedAncestors, embeddedRoutes } from './embedded-pages.ts'
import { financingPageHtml } from './financing-page.ts'
import { html } from './html.ts'
import { linkPageHtml } from './link-page.ts'
import { logoRoute } from './logos.ts'
import { writePage } from './page.ts'
import { nowhere, showSessionPage, takeSessionPost } from './session-pages.ts'
import { locatePages } from './tenant-hosts.ts'

interface PortalSettings extends Omit<HostSettings, 'routes' | 'writeError' | 'addresses'> {
  readonly limits: RateLimits
  /** Base address under which payers reach the host. */
  readonly url: () => string
  /** Hosts under which it shows pages of everybody, with their ports. */
  readonly ownHosts: () => readonly string[]
}

/** The host of hosted pages; what goes wrong is a page that says so. */
export function createPortalApp(
  app: Application,
  { url, ownHosts, limits, ...settings }: PortalSettings,
): Express {
  const { addresses } = limits
  const ancestors = new EmbedAncestors()
  return createHost({
    ...settings,
    addresses,
    locate: locatePages(app, ownHosts, addresses),
    routes: [
      logoRoute(app, addresses),
      ...embeddedRoutes(app, { limits, url, ancestors }),
      {
        method: 'GET',
        path: '/pay/:id',
        async handle(request: Request, response: Response) {
          await limitPayer(app, limits, request)
          const id = String(request.params.id)
          // ids of links are told apart from tokens by their form
          if (isId(id)) await showLinkPage(app, id, `${url()}/pay/${id}`, response)
          else if (!(await showFinancing(app, id, response))) await showSessionPage(app, request, response)
        },
      },
      {
        method: 'POST',
        path: '/pay/:id',
        async handle(request: Request, response: Response) {
          await limitPayer(app, limits, request)
          await takeSessionPost(app, request, response, url())
        },
      },
    ],
    writeError: (response, status, error, message) => {
      const title = error ?? generalWord(status)
      const body = html`<div class="card stack"><h1>${title}</h1><p>${message}</p></div>`
      writePage(response, status, {
        title,
        body,
        brand: null,
        policy: { ancestors: ancestors.of(response, status) },
      })
    },
  })
}

/** The token is the credential: payers share addresses, so an address is limited only for what opens no page. */
async function limitPayer(
  app: Application,
  { credentials, addresses }: RateLimits,
  request: Request,
): Promise<void> {
  const token = String(request.params.id)
  if ((await tenantOfPage(app, 'pay', token)) === null) limitAddress(addresses, request)
  else limitCredential(credentials, token)
}

async function showLinkPage(
  app: Application,
  linkId: string,
  ownAddress: string,
  response: Response,
): Promise<void> {
  const page = await linkPage(app, linkId)
  if (isRejection(page)) throw nowhere()
  writePage(response, 200, linkPageHtml(page, ownAddress))
}

/** @returns whether the token was one of financing. */
async function showFinancing(app: Application, token: string, response: Response): Promise<boolean> {
  const session = await financingByToken(app, token)
  if (session) writePage(response, 200, financingPageHtml(await financingPage(app, session)))
  return session !== null
}
