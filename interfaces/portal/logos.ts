import type { Application } from '../../application/commands/application.ts'
import { logoCopy, logoPath } from '../../application/payments/pages/logos.ts'
import { HttpError } from '../http/errors.ts'
import { limitAddress, type RateLimiter } from '../http/rate-limit.ts'
import type { Route } from '../http/server.ts'

/** Copies of logos. Their names are hashes of what they hold: they never change. */
export function logoRoute(app: Application, addresses: Pick<RateLimiter, 'take'>): Route {
  return {
    method: 'GET',
    path: logoPath(':logo_id'),
    async handle(request, response) {
      const copy = await logoCopy(app, String(request.params.logo_id))
      if (copy === null) {
        limitAddress(addresses, request)
        throw new HttpError(404, null, 'There is no such logo')
      }
      const { mediaType, content } = copy
      response.setHeader('Content-Type', mediaType)
      response.setHeader('Content-Length', content.length)
      response.setHeader('Cache-Control', 'public, max-age=31536000, immutable')
      response.setHeader('Content-Security-Policy', "default-src 'none'; sandbox")
      response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin')
      response.end(content)
    },
  }
}
