import { isId } from '../../domain/kernel/ids.ts'
import type { FinancingSession } from '../../domain/payments/financing/financing-session.ts'
import { type PaymentLink, paymentLink } from '../../domain/payments/links/payment-link.ts'
import type { PaymentSession } from '../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../commands/application.ts'
import { financingByToken } from './financing/financing-page.ts'
import { sessionByToken } from './pages/tokens.ts'
import { type Brand, brandOf } from './sessions/payer-page.ts'

/** What has the address of a hosted page; a session with how its seller is shown. */
export type HostedPage =
  | { readonly kind: 'link'; readonly of: PaymentLink }
  | { readonly kind: 'session'; readonly of: PaymentSession; readonly brand: Brand }
  | { readonly kind: 'financing'; readonly of: FinancingSession }

/** What the id of a link, or the token of a session, opens; null: nothing. */
export async function hostedPage(
  app: Pick<Application, 'commands'>,
  idOrToken: string,
): Promise<HostedPage | null> {
  // ids of links are told apart from tokens by their form
  const commands = app.commands.asOfNow()
  if (isId(idOrToken)) {
    const link = (await commands.load(paymentLink, idOrToken)).state
    return link && { kind: 'link', of: link }
  }
  const session = await sessionByToken({ commands }, idOrToken)
  if (session) return { kind: 'session', of: session, brand: await brandOf({ commands }, session.tenant_id) }
  const financing = await financingByToken({ commands }, idOrToken)
  return financing && { kind: 'financing', of: financing }
}
