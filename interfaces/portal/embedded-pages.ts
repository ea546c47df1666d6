import type { ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import type { Application } from '../../application/commands/application.ts'
import { embeddedSession, isSecretOf } from '../../application/payments/pages/embedded.ts'
import { type Brand, brandOf } from '../../application/payments/sessions/payer-page.ts'
import type { PaymentSession } from '../../domain/payments/sessions/payment-session-status.ts'
import { HttpError } from '../http/errors.ts'
import { addressKey, limitAddress, limitCredential, type RateLimits } from '../http/rate-limit.ts'
import type { Route } from '../http/server.ts'
import { COMPSTREAM_SCRIPT, FRAME_SCRIPT } from './compstream-script.ts'
import { html } from './html.ts'
import { readForm, requireOwnPage } from './own-posts.ts'
import { writePage } from './page.ts'
import { proofOf, showSessionPage, takeOption } from './session-pages.ts'

/** How long browsers keep the script, in seconds: a new release reaches all pages within that. */
const SCRIPT_AGE_S = 3_600

/** Sessions whose ancestors are kept. */
const MOST_KEPT = 10_000

/**
 * Origins that may frame the errors of a session's address: browsers show nothing of an error that they must not frame.
 * They are kept for sessions that were shown, since an error may be that nothing can be looked up.
 */
export class EmbedAncestors {
  readonly #known = new Map<string, readonly string[]>()

  /** To be told before anything is refused. */
  found(response: Response, { payment_session_id: id }: PaymentSession, origins: readonly string[]) {
    if (this.#known.size >= MOST_KEPT) this.#known.clear()
    this.#known.set(id, origins)
    response.locals.ancestors = origins
  }

  of(response: ServerResponse, status: number): readonly string[] {
    const { locals, req } = response as Response
    const [, id = ''] = /^\/embed\/([0-9a-f]{24})(?:[/?]|$)/.exec(req.url) ?? []
    // a refusal says nothing of sessions that were not looked for
    return locals.ancestors ?? (status >= 500 ? this.#known.get(id) : null) ?? []
  }
}

interface EmbeddedSettings {
  readonly limits: Pick<RateLimits, 'credentials' | 'addresses'>
  /** Base address under which payers reach the host. */
  readonly url: () => string
  readonly ancestors: EmbedAncestors
}

/**
 * The checkout of an embedded session in a frame of a partner's page. Its address names the session, which decides who may
 * frame it, and gives nothing away: what opens it is posted by the frame, which has it from the page around it.
 */
export function embeddedRoutes(
  app: Application,
  { limits: { credentials, addresses }, url, ancestors }: EmbeddedSettings,
): readonly Route[] {
  const found = async (request: Request, response: Response) => {
    const session = await embeddedSession(app, String(request.params.id))
    if (session === null) {
      limitAddress(addresses, request)
      throw noCheckout()
    }
    const brand = await brandOf(app, session.tenant_id)
    ancestors.found(response, session, brand.embedOrigins)
    return { session, brand }
  }
  return [
    {
      method: 'GET',
      path: '/compstream.js',
      handle(_request, response) {
        response.setHeader('Content-Type', 'text/javascript; charset=utf-8')
        response.setHeader('Content-Length', Buffer.byteLength(COMPSTREAM_SCRIPT))
        response.setHeader('Cache-Control', `public, max-age=${SCRIPT_AGE_S}`)
        response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin')
        response.setHeader('Access-Control-Allow-Origin', '*')
        response.end(COMPSTREAM_SCRIPT)
      },
    },
    {
      method: 'GET',
      path: '/embed/:id',
      async handle(request, response) {
        const { session, brand } = await found(request, response)
        // the address alone opens the frame, and takes no rate from the bearer of the secret
        limitCredential(
          credentials,
          `frame/${session.payment_session_id}/${addressKey(request.socket.remoteAddress)}`,
        )
        showFrame(session, brand, response)
      },
    },
    {
      method: 'POST',
      path: '/embed/:id',
      async handle(request, response) {
        const { session, brand } = await found(request, response)
        requireOwnPage(request, url())
        const { client_secret = '', ...fields } = await readForm(request)
        const isOpened = fields.proof === proofOf(app, session) || isSecretOf(session, client_secret)
        // a guess learns nothing that a wrong address would not tell
        if (!isOpened) {
          limitAddress(addresses, request)
          throw noCheckout()
        }
        limitCredential(credentials, session.payment_session_id)
        response.locals.isEmbedded = true
        if (fields.option !== undefined) await takeOption(app, session, fields, response)
        else await showSessionPage(app, session, brand, response)
      },
    },
  ]
}

export function noCheckout(): HttpError {
  return new HttpError(404, null, 'There is no checkout at this address.')
}

/** What stands in the frame until the page around it has sent the secret. */
function showFrame(session: PaymentSession, { embedOrigins }: Brand, response: Response): void {
  writePage(response, 200, {
    title: 'Payment',
    brand: null,
    body: html`<p role="status" class="soft">Loading the checkout…</p>
<noscript><p>This checkout needs JavaScript.</p></noscript>
<form method="post" hidden><input type="hidden" name="client_secret"><input type="hidden" name="proof"></form>`,
    data: { session: session.payment_session_id, origins: embedOrigins.join(' ') },
    script: FRAME_SCRIPT,
    policy: { takesForms: true, ancestors: embedOrigins },
  })
}
