import type { ApiClient } from '../../../domain/access/api-client.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
  otherRequest,
} from '../../../domain/payments/financing/financing-session.ts'
import { FinancingSessionCreated } from '../../../domain/payments/financing/financing-session-events.ts'
import { financingSettings } from '../../../domain/payments/financing/financing-settings.ts'
import { type Checkout, checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { sessionAmounts } from '../../../domain/payments/sessions/session-amounts.ts'
import { carrierIdOf, type NamedPolicy, namedPolicy } from '../../access/named-policy.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { findable } from '../../commands/found-by.ts'
import { requestHash } from '../../commands/request-hash.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { within } from '../../commands/verbs.ts'
import { refuseCheckout } from '../pages/page-host.ts'
import type { NewPaymentSession } from '../sessions/create-session.ts'
import { financingSessionOf, newTokenOf, sessionIdOf } from './financing-sessions.ts'
import { refuseSetup } from './financing-settings.ts'

const MINUTE_MS = 60_000

/** A request for a financing session; what is left out is null. */
export interface NewFinancingSession
  extends Pick<NewPaymentSession, 'employer_id' | 'carrier_id' | 'policy_id' | 'description' | 'customer'>,
    Pick<NewPaymentSession, 'amount_cents' | 'premium_cents' | 'fee_cents' | 'fee_breakdown'>,
    Pick<NewPaymentSession, 'ttl_minutes' | 'single_use' | 'created_by'> {
  readonly idempotency_key: string
}

/** What a request stands for, once it was checked. */
export interface FoundSession {
  readonly id: string
  readonly fingerprint: string
  /** Null: there is none yet. */
  readonly session: FinancingSession | null
  readonly checkout: Checkout
}

/**
 * The session that a request's key stands for.
 * @returns a rejection when the key stands for another request, or for a session outside the scope of the client.
 */
export async function findSession(
  app: Application,
  client: ApiClient,
  input: NewFinancingSession,
): Promise<FoundSession | Rejection> {
  const carrierId = carrierIdOf(client, input.carrier_id)
  if (typeof carrierId !== 'string') return carrierId
  const id = sessionIdOf(app, client, input.idempotency_key)
  const hash = await requestHash(fingerprinted(input, carrierId))
  const fingerprint = app.personalData.fingerprint('financing_request', `${id}|${hash}`)
  const found = await financingSessionOf(app, client, id)
  if (isRejection(found) && found.kind !== 'not_found') return found
  const session = isRejection(found) ? null : found
  if (session && session.request_fingerprint !== fingerprint) return otherRequest(session)
  const checkout = (await app.commands.load(checkoutSettings, client.tenant_id)).state
  return { id, fingerprint, session, checkout }
}

/** What of a request its fingerprint is of; the names are those of the first release. */
function fingerprinted(asked: NewFinancingSession, carrierId: string) {
  return {
    employerId: asked.employer_id,
    carrierId,
    policyId: asked.policy_id,
    amounts: {
      amountCents: asked.amount_cents,
      premiumCents: asked.premium_cents,
      feeCents: asked.fee_cents,
      feeBreakdown: asked.fee_breakdown,
    },
    description: asked.description,
    customer: asked.customer,
    ttlMinutes: asked.ttl_minutes,
    singleUse: asked.single_use,
    createdBy: asked.created_by,
  }
}

/** Why nothing is begun with the account as it is set up. */
export async function refuseAccount(
  { commands }: Pick<Application, 'commands'>,
  { tenant_id }: Pick<ApiClient, 'tenant_id'>,
  checkout: Checkout,
): Promise<Rejection | null> {
  const off = refuseCheckout(checkout)
  if (off) return reject('conflict', 'checkout_unavailable', off.message)
  return refuseSetup((await commands.load(financingSettings, tenant_id)).state)
}

/**
 * The command that creates a session, once the request was checked; what it holds is sealed. Nothing but the tokens is
 * stored by that.
 * @param refuse what else is wrong with the request, given what it names.
 */
export async function draftSession(
  app: Application,
  client: ApiClient,
  input: NewFinancingSession,
  { id, fingerprint, checkout }: FoundSession,
  refuse: (named: NamedPolicy) => Promise<Rejection | null> = async () => null,
) {
  const noPlan = { total_installments: null, down_payment_percent: null, down_payment_cents: null }
  const amounts = sessionAmounts({ ...input, ...noPlan })
  if (isRejection(amounts)) return amounts
  const named = await namedPolicy(app, client, input)
  if (isRejection(named)) return named
  const refusal = (await refuse(named)) ?? (await refuseAccount(app, client, checkout))
  if (refusal) return refusal
  const { settings, config_version } = checkout
  const { amount_cents, premium_cents, fee_cents, line_items } = amounts
  const now = app.clock.now()
  const access = await newTokenOf(app, id, 'access')
  const forComponent = await newTokenOf(app, id, 'checkout')
  const data = await sealFields(
    app.personalData,
    FinancingSessionCreated,
    {
      financing_session_id: id,
      tenant_id: client.tenant_id,
      environment: client.environment,
      client_id: client.client_id,
      employer_id: named.employer.employer_id,
      carrier_id: named.carrier.carrier_id,
      policy_id: named.policy.policy_id,
      amount_cents,
      premium_cents,
      fee_cents,
      line_items: [...line_items],
      description: input.description,
      customer: { ...input.customer },
      single_use: input.single_use ?? settings.single_use,
      config_version,
      created_by: input.created_by,
      request_fingerprint: fingerprint,
      access_token_hash: access.hash,
      checkout_token_hash: forComponent.hash,
      created_at: isoTime(now),
      expires_at: isoTime(now + (input.ttl_minutes ?? settings.link_ttl_minutes!) * MINUTE_MS),
    },
    () => employerSubject(app.personalData, input.employer_id),
  )
  return { type: 'Create', data } as const
}

/**
 * Creates a financing session, once for a key. Nobody is asked for quotes by that.
 * @returns the session as it stands, and whether it is new.
 */
export async function createFinancingSession(
  app: Application,
  client: ApiClient,
  input: NewFinancingSession,
  context: CommandContext,
): Promise<{ readonly session: FinancingSession; readonly isNew: boolean } | Rejection> {
  const found = await findSession(app, client, input)
  if (isRejection(found)) return found
  if (found.session) {
    const off = refuseSetup((await app.commands.load(financingSettings, client.tenant_id)).state)
    return off ?? { session: found.session, isNew: false }
  }
  const draft = await draftSession(app, client, input, found)
  if (isRejection(draft)) return draft
  const scoped = findable(app, within(context, client), { email: input.customer.email })
  const outcome = await app.commands.execute(financingSession, found.id, draft, scoped)
  if (isRejection(outcome)) return outcome
  return { session: outcome.state!, isNew: outcome.events.length > 0 }
}
