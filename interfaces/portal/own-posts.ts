import type { IncomingMessage } from 'node:http'
import { readBody } from '../http/body.ts'
import { HttpError } from '../http/errors.ts'

/** What forms of a page send at the most, in bytes. */
const MOST_BYTES = 16 * 1024
const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/**
 * Refuses what another page makes a browser post. Pages send no referrer, so that browsers say `Origin: null` of their
 * forms: then `Sec-Fetch-Site` tells, and the proof that stands in the form.
 * @param ownUrl base address under which payers reach the host, where it is not the one that was asked for.
 * @throws HttpError 403.
 */
export function requireOwnPage({ headers }: IncomingMessage, ownUrl: string): void {
  const { origin, host, 'sec-fetch-site': site } = headers
  const isForeign =
    (site !== undefined && site !== 'same-origin') ||
    (origin !== undefined && origin !== 'null' && !isHostOf(origin, host) && origin !== originOf(ownUrl))
  if (isForeign)
    throw new HttpError(
      403,
      null,
      'The form was sent from another page. Open the payment link and try again.',
    )
}

/** The fields of a form; of a repeated one the last counts. @throws HttpError 413, 415. */
export async function readForm(request: IncomingMessage): Promise<Readonly<Record<string, string>>> {
  if (!FORM.test(request.headers['content-type'] ?? '')) {
    throw new HttpError(415, null, 'This page takes what its own forms send.')
  }
  const body = await readBody(request, MOST_BYTES)
  return Object.fromEntries(new URLSearchParams(body.toString('utf8')))
}

function isHostOf(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
}

function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null
}
