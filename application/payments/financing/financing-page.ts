import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
} from '../../../domain/payments/financing/financing-session.ts'
import { financingSettings } from '../../../domain/payments/financing/financing-settings.ts'
import { checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { isClientActive } from '../../access/client-authentication.ts'
import type { Application } from '../../commands/application.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { logoPath } from '../pages/logos.ts'
import { idInToken, isHashOf } from '../pages/tokens.ts'
import { refuseSetup } from './financing-settings.ts'
import { showFinancingStatus } from './show-session.ts'

/** What the page of a financing session shows: nothing of it is about the customer, and nothing opens a checkout. */
export type FinancingPage = ReturnType<typeof financingPage> extends Promise<infer Page> ? Page : never

/** The session that the token of a page opens; null for any other text. */
export async function financingByToken({ commands }: Reads, token: string): Promise<FinancingSession | null> {
  const id = idInToken(token)
  const state = id === null ? null : (await commands.load(financingSession, id)).state
  return state && isHashOf(state.access_token_hash, token) ? state : null
}

/** The page of a session that is open, of an account that is. */
export async function openFinancingPage(app: Application, token: string): Promise<FinancingPage | Rejection> {
  const session = await financingByToken(app, token)
  if (!session)
    return reject('not_found', 'financing_session_not_found', 'There is no such financing checkout')
  const page = await financingPage(app, session)
  return page.refusal ?? page
}

/** The page of a session in whatever state, for the host of pages; `refusal` says why nothing is offered on it. */
export async function financingPage(app: Application, session: FinancingSession) {
  const { tenant_id, client_id, amount_cents, line_items, description, expires_at } = session
  const { settings, logo_id } = (await app.commands.load(checkoutSettings, tenant_id)).state
  const { display_name, accent_color, support_email } = settings
  const logo_url = logo_id === null ? null : logoPath(logo_id)
  const financing = (await app.commands.load(financingSettings, tenant_id)).state
  const isActive = await isClientActive(app, client_id)
  const closed =
    session.cancelled_at === null
      ? null
      : reject('conflict', 'financing_session_closed', 'The session was cancelled')
  const inactive = isActive
    ? null
    : reject('forbidden', 'account_inactive', 'The account that offers the financing is not active')
  return {
    id: session.financing_session_id,
    seller: { display_name, logo_url, accent_color, support_email },
    currency: 'usd' as const,
    amount_cents,
    line_items,
    description,
    finance: { ...showFinancingStatus(app, session), expires_at },
    refusal: inactive ?? closed ?? refuseSetup(financing),
  }
}
