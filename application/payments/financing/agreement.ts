import type { ApiClient } from '../../../domain/access/api-client.ts'
import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
  isActive,
} from '../../../domain/payments/financing/financing-session.ts'
import { financingSettings } from '../../../domain/payments/financing/financing-settings.ts'
import { isClientActive } from '../../access/client-authentication.ts'
import { type Application, asOfNow } from '../../commands/application.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'
import { financedBy } from './submit.ts'

/**
 * The agreement of a quote that is stored with a session, a PDF: neither signed nor a receipt.
 * @param signal aborts when the caller goes away.
 * @throws ProviderUnavailable, whatever the provider says; also where session, request or key is not active any more when it is there.
 */
export async function agreementOf(
  app: Application,
  client: ApiClient,
  session: FinancingSession,
  quoteKey: string,
  signal: AbortSignal,
): Promise<Buffer | Rejection> {
  const { financing_session_id, tenant_id, request } = session
  const quote = request?.quotes.find(({ quote_key }) => quote_key === quoteKey)
  if (!quote) return reject('not_found', 'quote_not_found', 'The session has no such quote')
  const now = app.clock.now()
  if (!isActive(session, now)) {
    const why = 'The quotes of the session have expired, or the session was cancelled'
    return reject('conflict', 'financing_inactive', why)
  }
  const { enabled, agreements_enabled } = (await app.commands.load(financingSettings, tenant_id)).state
  if (!enabled || !agreements_enabled) {
    return reject('unavailable', 'agreements_off', 'Agreements cannot be downloaded on this account')
  }
  const asked = {
    ...(await financedBy(app, session)),
    quote,
    providerRequestId: request!.provider_request_id!,
    at: now,
  }
  const pdf = await app.financing.agreement(asked, signal).catch((error: unknown) => {
    // whatever the provider says: the document could not be retrieved
    throw error instanceof ProviderRefused ? new ProviderUnavailable(error.message) : error
  })
  // the look at the log of before the call may be younger than a moment
  const later = asOfNow(app)
  const after = (await later.commands.load(financingSession, financing_session_id)).state!
  if (isActive(after, app.clock.now()) && (await isClientActive(later, client.client_id))) return pdf
  throw new ProviderUnavailable('The session was closed while the agreement was retrieved')
}
