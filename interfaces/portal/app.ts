import type { Express, Request, Response } from 'express'
import type { Application } from '../../application/commands/application.ts'
import { financingPage } from '../../application/payments/financing/financing-page.ts'
import { type HostedPage, hostedPage } from '../../application/payments/hosted-pages.ts'
import { linkPage } from '../../application/payments/links/link-page.ts'
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
  /** Hosts under which it shows pages of everybody, with their ports. */
  readonly ownHosts: () => readonly string[]
}

/** The host of hosted pages; what goes wrong is a page that says so. */
export function createPortalApp(
  app: Application,
  { ownHosts, limits, ...settings }: PortalSettings,
): Express {
  const { url } = settings
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
          const page = await pageOfPayer(app, limits, request)
          switch (page.kind) {
            case 'link':
              return showLinkPage(app, page.of.payment_link_id, url(), response)
            case 'session':
              return showSessionPage(app, page.of, page.brand, response)
            case 'financing':
              return writePage(response, 200, financingPageHtml(await financingPage(app, page.of)))
          }
        },
      },
      {
        method: 'POST',
        path: '/pay/:id',
        async handle(request: Request, response: Response) {
          const page = await pageOfPayer(app, limits, request)
          if (page.kind !== 'session') throw nowhere()
          await takeSessionPost(app, page.of, response, url())
        },
      },
    ],
    writeError: (response, { status, error, message }) => {
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

/**
 * What a payer's address opens. The token is the credential: payers share addresses, so an address is limited only for what
 * opens no page.
 * @throws HttpError 404, 429.
 */
async function pageOfPayer(
  app: Application,
  { credentials, addresses }: RateLimits,
  request: Request,
): Promise<HostedPage> {
  const idOrToken = String(request.params.id)
  const page = await hostedPage(app, idOrToken)
  if (page === null) {
    limitAddress(addresses, request)
    throw nowhere()
  }
  limitCredential(credentials, idOrToken)
  return page
}

async function showLinkPage(
  app: Application,
  linkId: string,
  portal: string,
  response: Response,
): Promise<void> {
  const page = await linkPage(app, linkId)
  if (isRejection(page)) throw nowhere()
  writePage(response, 200, linkPageHtml(page, `${portal}/pay/${linkId}`))
}
