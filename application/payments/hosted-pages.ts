import type { FinancingSession } from '../../domain/financing/financing-session.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { type PaymentLink, paymentLink } from '../../domain/payments/payment-link.ts'
import type { PaymentSession } from '../../domain/payments/payment-session-status.ts'
import type { Application } from '../application.ts'
import type { Reads } from '../command-handling/command-handler.ts'
import { financingByToken } from '../financing/financing-page.ts'
import { type Brand, brandOf } from '../payment-sessions/payer-page.ts'
import { sessionByToken } from '../payment-sessions/tokens.ts'

/** What a hosted page shows, of whichever kind. */
type Hosted =
  | { readonly kind: 'link'; readonly of: PaymentLink }
  | { readonly kind: 'session'; readonly of: PaymentSession }
  | { readonly kind: 'financing'; readonly of: FinancingSession }

/** What has the address of a hosted page, with how its tenant is shown there. */
export type HostedPage = Hosted & { readonly brand: Brand }

/** What the id of a link, or the token of a session, opens; null: nothing. */
export function hostedPage(
  { commands }: Pick<Application, 'commands'>,
  idOrToken: string,
): Promise<HostedPage | null> {
  return commands.reading(async (reader) => {
    const reads = { commands: reader }
    const hosted = await hostedAt(reads, idOrToken)
    return hosted && { ...hosted, brand: await brandOf(reads, hosted.of.tenant_id) }
  })
}

async function hostedAt(reads: Reads, idOrToken: string): Promise<Hosted | null> {
  // ids of links are told apart from tokens by their form
  if (isId(idOrToken)) {
    const link = (await reads.commands.load(paymentLink, idOrToken)).state
    return link && { kind: 'link', of: link }
  }
  const session = await sessionByToken(reads, idOrToken)
  if (session) return { kind: 'session', of: session }
  const financing = await financingByToken(reads, idOrToken)
  return financing && { kind: 'financing', of: financing }
}
