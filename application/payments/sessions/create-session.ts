import type { ApiClient } from '../../../domain/access/api-client.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import { type Checkout, checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import { PaymentSessionCreated } from '../../../domain/payments/sessions/payment-session-events.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import {
  type AskedAmounts,
  type SessionAmounts,
  sessionAmounts,
} from '../../../domain/payments/sessions/session-amounts.ts'
import { namedPolicy } from '../../access/named-policy.ts'
import type { Application } from '../../commands/application.ts'
import { type CommandContext, createdId } from '../../commands/command-context.ts'
import { findable } from '../../commands/found-by.ts'
import { employerSubject, sealFields } from '../../commands/sealing.ts'
import { secretGone } from '../../commands/secret-gone.ts'
import { readable, within } from '../../commands/verbs.ts'
import { pageHost, refuseCheckout } from '../pages/page-host.ts'
import { hashOf, newToken } from '../pages/tokens.ts'
import { beginCheckout, type HandedOutCheckout } from './checkouts.ts'
import { type Invitation, invite } from './invite.ts'

const MINUTE_MS = 60_000

export interface Customer {
  readonly name: string
  readonly email: string
  readonly phone: string | null
}

export interface NewPaymentSession
  extends AskedAmounts,
    Pick<PaymentSession, 'employer_id' | 'policy_id' | 'description' | 'mode' | 'created_by'> {
  /** Null: the only one of the key. */
  readonly carrier_id: string | null
  readonly customer: Customer
  /** Null: as configured. */
  readonly ttl_minutes: number | null
  readonly single_use: boolean | null
}

/** A session with what is handed out once. */
export interface HandedOutSession {
  readonly session: PaymentSession
  /** Of link mode. */
  readonly url: string | null
  /** Of embedded mode. */
  readonly checkout: HandedOutCheckout | null
}

/** What of a session stays the same when another one replaces it. */
export type SessionDetails = Pick<
  PaymentSession,
  | 'tenant_id'
  | 'environment'
  | 'employer_id'
  | 'carrier_id'
  | 'policy_id'
  | 'mode'
  | 'description'
  | 'single_use'
  | 'created_by'
> &
  SessionAmounts & { readonly customer: Customer; readonly replaces: string | null }

/**
 * Creates a payment session, and sends its invitations. Of an embedded one the checkout comes first.
 * @param portalUrl base address of the service's pages; null when it has none.
 * @throws ProviderUnavailable, ProviderRefused: then there is no session.
 */
export async function createSession(
  app: Application,
  client: ApiClient,
  input: NewPaymentSession,
  invitations: readonly Invitation[],
  portalUrl: string | null,
  context: CommandContext,
): Promise<HandedOutSession | Rejection> {
  const amounts = sessionAmounts(input)
  if (isRejection(amounts)) return amounts
  const named = await namedPolicy(app, client, input)
  if (isRejection(named)) return named
  const checkout = (await app.commands.load(checkoutSettings, client.tenant_id)).state
  const refusal = refuseCheckout(checkout)
  if (refusal) return refusal
  const { employer, carrier, policy } = named
  const details = {
    tenant_id: client.tenant_id,
    environment: client.environment,
    employer_id: employer.employer_id,
    carrier_id: carrier.carrier_id,
    policy_id: policy.policy_id,
    ...amounts,
    mode: input.mode,
    description: input.description,
    customer: input.customer,
    single_use: input.single_use ?? checkout.settings.single_use,
    created_by: input.created_by,
    replaces: null,
  }
  const id = createdId(context, paymentSession)
  const wanted = { ttlMinutes: input.ttl_minutes, invitations, portalUrl }
  return issueSession(app, { id, details, checkout, ...wanted }, context)
}

/** A session to be stored under an id. */
interface Issue {
  readonly id: string
  readonly details: SessionDetails
  readonly checkout: Checkout
  /** Null: as configured. */
  readonly ttlMinutes: number | null
  readonly invitations: readonly Invitation[]
  readonly portalUrl: string | null
}

/** Stores a session with a fresh token, or checkout, and sends its invitations. */
export async function issueSession(
  app: Application,
  { id, details, checkout: { settings, ...checkout }, ttlMinutes, invitations, portalUrl }: Issue,
  context: CommandContext,
): Promise<HandedOutSession | Rejection> {
  const isLink = details.mode === 'link'
  const host = isLink ? pageHost({ settings, ...checkout }, portalUrl) : null
  if (isRejection(host)) return host
  const token = isLink ? newToken(id, app) : null
  const begun = isLink ? null : await beginCheckout(app, { ...details, payment_session_id: id }, 0)
  const now = app.clock.now()
  const data = await sealFields(
    app.personalData,
    PaymentSessionCreated,
    {
      ...details,
      payment_session_id: id,
      customer: { ...details.customer },
      line_items: [...details.line_items],
      config_version: checkout.config_version,
      token_hash: token?.hash ?? (begun && hashOf(begun.handedOut.client_secret)),
      token_prefix: token?.prefix ?? null,
      host_is_custom: host?.isCustom ?? false,
      created_at: isoTime(now),
      expires_at: isoTime(now + (ttlMinutes ?? settings.link_ttl_minutes!) * MINUTE_MS),
    },
    () => employerSubject(app.personalData, details.employer_id),
  )
  const scoped = within(context, details)
  const command = { type: 'Create', data, checkout: begun?.checkout ?? null } as const
  const found = findable(app, scoped, { email: details.customer.email })
  const outcome = await app.commands.execute(paymentSession, id, command, found)
  // one that an earlier attempt stored has another token, which nobody knows any more
  const isStored = isRejection(outcome)
    ? outcome.code === 'payment_session_exists'
    : outcome.events.length === 0
  if (isStored) return { ...secretGone('payment session', id), ids: { id } }
  const created = await readable(app, paymentSession, outcome)
  if (isRejection(created)) return created
  const url = host && token && host.urlOf(token.token)
  const session = url === null ? created : await invite(app, created, { url, settings, invitations }, scoped)
  return { session, url, checkout: begun?.handedOut ?? null }
}
