import type { ApiClient } from '../../../domain/access/api-client.ts'
import { dollars } from '../../../domain/kernel/money.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
  financingStatusAt,
} from '../../../domain/payments/financing/financing-session.ts'
import { FinancingInvitationBegun } from '../../../domain/payments/financing/financing-session-events.ts'
import { financingSettings } from '../../../domain/payments/financing/financing-settings.ts'
import { type Checkout, senderOf } from '../../../domain/payments/pages/checkout-settings.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { within } from '../../commands/verbs.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'
import { type PageHost, pageHost } from '../pages/page-host.ts'
import { tokenOf } from './financing-sessions.ts'
import { recipientFingerprint } from './financing-settings.ts'

interface Wanted {
  /** Null: nobody is to be invited. */
  readonly to: string | null
  readonly portalUrl: string | null
  readonly checkout: Checkout
}

/**
 * Why nobody is invited: the recipient is not on the list, invitations are off, or no host has the page. Once one was
 * begun to be sent, recipient and address of the page must be the same.
 */
export async function refuseInvitation(
  app: Application,
  { tenant_id }: Pick<ApiClient, 'tenant_id'>,
  session: FinancingSession | null,
  { to, portalUrl, checkout }: Wanted,
): Promise<Rejection | null> {
  if (to === null) return null
  const fingerprint = recipientFingerprint(app, to)
  const host = pageHost(checkout, portalUrl)
  const begun = session?.invitation
  if (begun) {
    const isSame =
      begun.to_fingerprint === fingerprint && (isRejection(host) || begun.page_address === addressOf(host))
    if (isSame) return null
    const why = 'An invitation to another recipient, or to a page at another address, was sent already'
    return reject('conflict', 'invitation_changed', why, 'deliver')
  }
  const { recipients, invitations_enabled } = (await app.commands.load(financingSettings, tenant_id)).state
  if (!recipients.some((one) => one.fingerprint === fingerprint)) {
    const why = 'The recipient of the invitation is not on the list of test recipients'
    return reject('invalid', 'recipient_not_listed', why, 'deliver.email_to')
  }
  if (!invitations_enabled) {
    return reject('unavailable', 'invitations_off', 'Invitations are off for the financing test path')
  }
  return isRejection(host) ? host : null
}

/**
 * Invites the recipient, once for a session that is ready. That it is about to be sent is recorded before; one of which
 * nobody knows what came is not sent again.
 * @returns the session after that.
 */
export async function inviteOnce(
  app: Application,
  session: FinancingSession,
  { to, portalUrl, checkout }: Wanted & { readonly to: string },
  context: CommandContext,
): Promise<FinancingSession | Rejection> {
  const host = pageHost(checkout, portalUrl)
  const isReady = financingStatusAt(session, app.clock.now()) === 'quote_ready'
  if (session.invitation || !isReady || isRejection(host)) return session
  const { financing_session_id: id, employer_id, amount_cents } = session
  const scoped = within(context, session)
  const dataSubject = employerSubject(app.personalData, employer_id)
  const draft = {
    financing_session_id: id,
    to,
    to_fingerprint: recipientFingerprint(app, to),
    page_address: addressOf(host),
  }
  const invitation = await sealFields(app.personalData, FinancingInvitationBegun, draft, () => dataSubject)
  const begin = { type: 'BeginInvitation', invitation, at: app.clock.now() } as const
  const begun = await app.commands.execute(financingSession, id, begin, scoped)
  // it was closed meanwhile: then that is what is told
  if (isRejection(begun)) return (await app.commands.load(financingSession, id)).state!
  if (begun.events.length === 0) {
    // of two at once, the one that began it sends it
    const same = await refuseInvitation(app, session, begun.state, { to, portalUrl, checkout })
    return same ?? begun.state!
  }
  const token = await tokenOf(app, session, 'access')
  const { settings } = checkout
  const status = await app.messages
    .send({
      channel: 'email',
      to,
      from: senderOf(settings),
      dataSubject,
      ...letter(settings.display_name!, settings.support_email!, amount_cents, host.urlOf(token)),
      key: `financing-session-${id}`,
    })
    .then(() => 'sent' as const, failed)
  const end = { type: 'EndInvitation', status, at: app.clock.now() } as const
  const ended = await app.commands.execute(financingSession, id, end, scoped)
  return isRejection(ended) ? ended : ended.state!
}

/** The address of the page without its token; the service's own pages are where the service is. */
function addressOf({ isCustom, urlOf }: PageHost): string {
  return isCustom ? urlOf('{token}') : '/pay/{token}'
}

/** What was not taken over for certain counts as failed. */
function failed(error: unknown): 'failed' {
  if (error instanceof ProviderRefused || error instanceof ProviderUnavailable) return 'failed'
  throw error
}

function letter(seller: string, support: string, amountCents: number, url: string) {
  return {
    subject: `${seller}: financing offer (test)`,
    text: `${seller} offers you to finance ${dollars(amountCents)}. This is a test: nothing is financed.

${url}

Whoever has the link can open the page: do not pass it on.
Questions: ${support}
`,
  }
}
