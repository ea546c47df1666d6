import type { Express, Request, Response } from 'express'
import type { Application } from '../../application/application.ts'
import { financingByToken, financingPage } from '../../application/financing/financing-page.ts'
import { linkPage } from '../../application/payments/link-page.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { generalWord, HttpError } from '../http/errors.ts'
import { limitAddress } from '../http/rate-limit.ts'
import { createHost, type HostSettings } from '../http/server.ts'
import { financingPageHtml } from './financing-page.ts'
import { linkPageHtml } from './link-page.ts'
import { html, writePage } from './page.ts'

interface PortalSettings extends Omit<HostSettings, 'routes' | 'writeError'> {
  /** Base address under which payers reach the host. */
  readonly url: () => string
}

/** The host of hosted pages; what goes wrong is a page that says so. */
export function createPortalApp(app: Application, { url, ...settings }: PortalSettings): Express {
  return createHost({
    ...settings,
    routes: [
      {
        method: 'GET',
        path: '/pay/:id',
        async handle(request: Request, response: Response) {
          limitAddress(settings.addresses, request)
          const id = String(request.params.id)
          const financing = await financingByToken(app, id)
          if (financing) {
            const { title, body } = financingPageHtml(await financingPage(app, financing))
            return writePage(response, 200, title, body)
          }
          const page = await linkPage(app, id)
          if (isRejection(page)) throw new HttpError(404, null, page.message)
          const { title, body } = linkPageHtml(page, `${url()}/pay/${id}`)
          writePage(response, 200, title, body)
        },
      },
    ],
    writeError: (response, status, error, message) =>
      writePage(response, status, error ?? generalWord(status), html`<p>${message}</p>`),
  })
}
