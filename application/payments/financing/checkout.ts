import type { ApiClient } from '../../../domain/access/api-client.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { employer } from '../../../domain/parties/employer.ts'
import {
  type FinancingSession,
  financingSession,
  financingStatusAt,
  isUnsent,
  otherRequest,
  sessionClosed,
} from '../../../domain/payments/financing/financing-session.ts'
import { FinancingRequested } from '../../../domain/payments/financing/financing-session-events.ts'
import type { Checkout } from '../../../domain/payments/pages/checkout-settings.ts'
import { policy } from '../../../domain/policies/policy.ts'
import type { NamedPolicy } from '../../access/named-policy.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { requestHash } from '../../commands/request-hash.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { within } from '../../commands/verbs.ts'
import { legalName } from '../../parties/legal-names.ts'
import type { Insured } from '../../ports/financing-provider.ts'
import { draftSession, findSession, type NewFinancingSession, refuseAccount } from './create-session.ts'
import { onceSettled, tokenOf } from './financing-sessions.ts'
import { inviteOnce, refuseInvitation } from './invite.ts'

/** A request for quotes; what is left out is null. */
export interface FinancingCheckoutRequest {
  readonly session: NewFinancingSession
  readonly insured: Insured
  /** What the stored policy must be, where it is said. */
  readonly policy: Readonly<Record<'effective_date' | 'expiration_date' | 'policy_number', string | null>>
  /** The recipient of the invitation; null: none. */
  readonly inviteTo: string | null
}

/** A checkout as its partner sees it. */
export interface FinancingCheckout {
  readonly session: FinancingSession
  readonly status: 'ready' | 'pending' | 'on_hold' | 'expired' | 'payment_reported'
  /** Of a checkout that is ready. */
  readonly checkoutToken: string | null
  readonly accessToken: string
}

/** An invitation of which nothing is known for longer was cut short, in service-clock milliseconds. */
const INVITING_MS = 60_000
/** How long an answer waits for what is on its way, in real milliseconds. */
const PATIENCE_MS = 3_000

/**
 * Asks for quotes, once for a key, and tells how that stands; the session is created where the key has none yet.
 * @param portalUrl base address of the service's pages; null when it has none.
 */
export async function financingCheckout(
  app: Application,
  client: ApiClient,
  request: FinancingCheckoutRequest,
  portalUrl: string | null,
  context: CommandContext,
): Promise<FinancingCheckout | Rejection> {
  const found = await findSession(app, client, request.session)
  if (isRejection(found)) return found
  const { id } = found
  if (found.session?.cancelled_at) return sessionClosed()
  const invitation = { to: request.inviteTo, portalUrl, checkout: found.checkout }
  const notInvited = await refuseInvitation(app, client, found.session, invitation)
  if (notInvited?.kind === 'invalid') return notInvited
  const fingerprint = await fingerprintOf(app, id, request)

  let session = found.session
  if (!session?.request) {
    const create = session
      ? await refuseStored(app, client, session, request, found.checkout)
      : await draftSession(app, client, request.session, found, (named) => refuseDetails(app, named, request))
    if (isRejection(create)) return create
    if (notInvited) return notInvited
    const insured = await sealedInsured(app, id, request)
    const ask = { type: 'Request', fingerprint, insured, at: app.clock.now() } as const
    const commands = create ? [create, ask] : [ask]
    const outcome = await app.commands.execute(financingSession, id, commands, within(context, client))
    if (isRejection(outcome)) return outcome
    session = outcome.state!
  } else {
    if (session.request.request_fingerprint !== fingerprint) return otherRequest(session)
    const refusal = (await refuseAccount(app, client, found.checkout)) ?? notInvited
    if (refusal) return refusal
  }
  // the provider takes the request, will not, or was not reached
  session = await onceSettled(app, session, (one) => isOnItsWay(one, app.clock.now()), PATIENCE_MS)
  if (session.cancelled_at !== null) return sessionClosed()
  if (request.inviteTo !== null) {
    const invited = await inviteOnce(app, session, { ...invitation, to: request.inviteTo }, context)
    if (isRejection(invited)) return invited
    session = invited
  }
  // of two at once, the other one sends the invitation
  session = await onceSettled(app, session, (one) => isBeingInvited(one, app.clock.now()), PATIENCE_MS)
  return shown(app, session)
}

/** Whether it is still to be learned what comes of the first time that a request is sent, or of the present one. */
function isOnItsWay(session: FinancingSession, now: number): boolean {
  const { request } = session
  return isUnsent(session, now) && (request!.attempts === 0 || request!.is_sending)
}

/** Whether it is still to be learned what came of an invitation. */
function isBeingInvited({ invitation }: FinancingSession, now: number): boolean {
  return invitation?.status === null && now < Date.parse(invitation.at) + INVITING_MS
}

async function shown(app: Application, session: FinancingSession): Promise<FinancingCheckout> {
  const currentStatus = financingStatusAt(session, app.clock.now())
  // nothing is asked for in a session whose time was over before
  const status =
    currentStatus === 'quote_ready'
      ? 'ready'
      : currentStatus === 'not_started'
        ? ('pending' as const)
        : currentStatus
  const accessToken = await tokenOf(app, session, 'access')
  const checkoutToken = status === 'ready' ? await tokenOf(app, session, 'checkout') : null
  return { session, status, checkoutToken, accessToken }
}

async function fingerprintOf(
  { personalData }: Pick<Application, 'personalData'>,
  id: string,
  { insured, policy }: FinancingCheckoutRequest,
): Promise<string> {
  return personalData.fingerprint('financing_request', `${id}|${await requestHash({ insured, policy })}`)
}

/** Why nothing is asked for in a session that is there already. */
async function refuseStored(
  app: Application,
  client: ApiClient,
  { employer_id, policy_id }: FinancingSession,
  request: FinancingCheckoutRequest,
  checkout: Checkout,
): Promise<Rejection | null> {
  const named = {
    employer: (await app.commands.load(employer, employer_id)).state!,
    policy: (await app.commands.load(policy, policy_id)).state!,
  }
  return (await refuseDetails(app, named, request)) ?? refuseAccount(app, client, checkout)
}

/** Why what a request says of employer and policy is not as they are stored; null when it is. */
async function refuseDetails(
  app: Application,
  named: Pick<NamedPolicy, 'employer' | 'policy'>,
  { insured, policy: said }: FinancingCheckoutRequest,
): Promise<Rejection | null> {
  if (written(insured.business_name) !== written(await legalName(app, named.employer))) {
    return mismatch('insured.business_name', 'the name of the employer')
  }
  for (const name of ['effective_date', 'expiration_date', 'policy_number'] as const) {
    const wanted = said[name]
    if (wanted !== null && wanted !== named.policy[name]) {
      return mismatch(`policy.${name}`, `the ${name} of the policy`)
    }
  }
  return null
}

function written(name: string): string {
  return name.trim().replaceAll(/\s+/g, ' ').toLowerCase()
}

function mismatch(field: string, what: string): Rejection {
  return reject('invalid', 'financing_details_mismatch', `${field} must be ${what}`, field)
}

async function sealedInsured(
  { personalData }: Pick<Application, 'personalData'>,
  financing_session_id: string,
  { session, insured }: FinancingCheckoutRequest,
) {
  const draft = { financing_session_id, insured: { ...insured } }
  const subject = employerSubject(personalData, session.employer_id)
  return (await sealFields(personalData, FinancingRequested, draft, () => subject)).insured
}
