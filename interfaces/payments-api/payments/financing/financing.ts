import { z } from 'zod'
import { agreementOf } from '../../../../application/payments/financing/agreement.ts'
import { financingCheckout } from '../../../../application/payments/financing/checkout.ts'
import { createFinancingSession } from '../../../../application/payments/financing/create-session.ts'
import { openFinancingPage } from '../../../../application/payments/financing/financing-page.ts'
import { financingSessionOf } from '../../../../application/payments/financing/financing-sessions.ts'
import {
  openFinancingStatus,
  showFinancingSession,
} from '../../../../application/payments/financing/show-session.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import type { FinancingSession } from '../../../../domain/payments/financing/financing-session.ts'
import { createOrFind } from '../../../endpoints/creations.ts'
import { accepted, Rejected } from '../../../endpoints/endpoint.ts'
import { bytes, idOf } from '../../../endpoints/fields.ts'
import { inPath } from '../../../endpoints/not-found.ts'
import {
  contextOf,
  endpoint,
  keyed,
  partnerIn,
  payerOf,
  publicEndpoint,
  wrongEnvironment,
} from '../../host/api.ts'
import { POLICY_REFUSALS } from '../../host/policy-refusals.ts'
import { newPaymentSession } from '../sessions/payment-session-schemas.ts'
import {
  checkoutRequestOf,
  FINANCED,
  FinancingCheckoutAnswer,
  FinancingPageAnswer,
  FinancingStatusAnswer,
  financingCheckoutRequest,
  newFinancingSession,
  showCreatedFinancing,
  showFinancingCheckout,
} from './financing-schemas.ts'

export const NO_SANDBOX = 'Payment sessions have no sandbox: use payment links for sandbox testing'
const SANDBOX_ONLY = 'Premium financing is a test path: it is open to sandbox keys only'
const sandbox = partnerIn('sandbox', SANDBOX_ONLY)
const params = z.object({ payment_session_id: idOf('financing session') })
const NONE = { 404: 'There is no such financing session' } as const
const OFF = { 503: 'The financing test path, or what it needs of the service, is not set up' } as const

type PartnerCall = Parameters<typeof keyed>[0]

/**
 * Which request for a session is meant: with a sandbox key the only one there is, with a live key any other one.
 * @throws HttpError 400 for other requests of sandbox keys, 403 for financing with a live key.
 */
export function sessionRequestFor(
  { client: { environment } }: PartnerCall['caller'],
  sent: Readonly<Record<string, unknown>>,
) {
  const isFinanced = sent.billing_method === FINANCED
  if (isFinanced && environment === 'live') throw wrongEnvironment(SANDBOX_ONLY)
  if (!isFinanced && environment === 'sandbox') throw wrongEnvironment(NO_SANDBOX, 400)
  return isFinanced ? newFinancingSession : newPaymentSession
}

/**
 * The financing session that a sandbox key names by the id of a payment session; null for live keys.
 * @throws HttpError 400 for every other id, Rejected for one that lies outside its scope.
 */
export async function financedSession(
  { host, caller: { client } }: Pick<PartnerCall, 'host' | 'caller'>,
  sessionId: string,
): Promise<FinancingSession | null> {
  if (client.environment === 'live') return null
  const session = await financingSessionOf(host.app, client, sessionId)
  if (!isRejection(session)) return session
  if (session.kind === 'not_found') throw wrongEnvironment(NO_SANDBOX, 400)
  throw new Rejected(session)
}

/** Creates a financing session; the same again is answered with the session as it stands. */
export function createFinanced(call: PartnerCall, body: z.output<typeof newFinancingSession>) {
  const { app } = call.host
  return createOrFind(keyed(call), 'POST /payment-sessions', {
    async create(context) {
      const made = await createFinancingSession(app, call.caller.client, body, context)
      if (isRejection(made)) return made
      const { session, isNew } = made
      return {
        isNew,
        id: session.financing_session_id,
        shown: showCreatedFinancing(session, app.clock.now()),
      }
    },
  })
}

/** The financing test path. Before the other sessions: its paths are among theirs. */
export const financingEndpoints = [
  endpoint({
    operation: 'checkoutFinancing',
    route: 'POST /payment-sessions/financing-checkout',
    summary: 'Ask for financing quotes, and tell how that stands',
    description:
      'The session is created, or found by its `idempotency_key`. Send the same request again to learn whether quotes ' +
      'are there: they are asked for once. A request of which nobody knows whether it got to the provider is `on_hold`.',
    access: sandbox,
    body: financingCheckoutRequest,
    example: {
      billing_method: 'PREMIUM_FINANCE',
      idempotency_key: 'financing-2026-0001',
      employer_id: '66838f2a5b1c4d7e9f012345',
      policy_id: '66838f2a5b1c4d7e9f012345',
      premium_cents: 125_000,
      customer: { name: 'Acme Roofing LLC', email: 'office@acme-roofing.example' },
      insured: {
        business_name: 'Acme Roofing LLC',
        address: '100 Main Street',
        city: 'Austin',
        state: 'TX',
        zip_code: '78701',
      },
    },
    answers: { 200: FinancingCheckoutAnswer },
    errors: {
      ...OFF,
      404: 'Employer, policy or carrier is not there; the message names which',
      409: 'The key was used for another request, the invitation was sent to somebody else, or session or checkout is closed',
    },
    asksOutside: true,
    refuses: {
      400: [
        ...POLICY_REFUSALS[400],
        'amount_missing',
        'amounts_disagree',
        'fee_breakdown_disagrees',
        'fee_exceeds_amount',
        'financing_details_mismatch',
        'recipient_not_listed',
        'total_out_of_bounds',
      ],
      403: POLICY_REFUSALS[403],
      404: POLICY_REFUSALS[404],
      409: ['checkout_unavailable', 'financing_session_closed', 'invitation_changed'],
      503: ['financing_off', 'invitations_off', 'no_payment_page_host'],
    },
    async handle(call) {
      const { app, portalUrl } = call.host
      const request = checkoutRequestOf(call.body)
      const { client } = call.caller
      const checkout = accepted(await financingCheckout(app, client, request, portalUrl(), contextOf(call)))
      const { invitation } = await showFinancingSession(app, checkout.session)
      return showFinancingCheckout(checkout, invitation)
    },
  }),
  endpoint({
    operation: 'showFinancing',
    route: 'GET /payment-sessions/{payment_session_id}/financing',
    summary: 'Show how the financing of a session stands',
    description: 'Nobody is asked for anything, and nothing changes.',
    access: sandbox,
    params,
    answers: { 200: FinancingStatusAnswer },
    errors: { ...NONE, 409: 'The session was cancelled' },
    refuses: {
      403: ['financing_session_out_of_scope'],
      409: ['financing_session_closed'],
    },
    async handle({ host: { app }, caller, params }) {
      const session = accepted(await financingSessionOf(app, caller.client, params.payment_session_id))
      const status = accepted(openFinancingStatus(app, session))
      return { session_id: session.financing_session_id, ...status }
    },
  }),
  endpoint({
    operation: 'downloadFinancingAgreement',
    route: 'GET /payment-sessions/{payment_session_id}/financing/agreements/{quote_key}',
    summary: 'Download the agreement of a quote',
    description: 'A PDF. It is neither signed nor a receipt.',
    access: sandbox,
    params: params.extend({
      quote_key: inPath('quote_not_found', z.string().describe('Of a quote that is stored with the session')),
    }),
    answers: { 200: bytes() },
    produces: 'application/pdf',
    errors: {
      ...OFF,
      404: 'There is no such financing session, or it has no such quote',
      409: 'The quotes have expired, or the session was cancelled',
      502: 'The provider did not hand it over, or the session was closed meanwhile',
    },
    asksOutside: true,
    refuses: {
      403: ['financing_session_out_of_scope'],
      409: ['financing_inactive'],
      503: ['agreements_off'],
    },
    async handle(call) {
      const { app } = call.host
      const { payment_session_id, quote_key } = call.params
      const session = accepted(await financingSessionOf(app, call.caller.client, payment_session_id))
      return accepted(await agreementOf(app, call.caller.client, session, quote_key, call.signal))
    },
  }),
]

export const publicFinancingEndpoints = [
  publicEndpoint({
    operation: 'showFinancingPage',
    route: 'GET /financing-checkouts/{finance_access_token}',
    summary: 'What the page of a financing session shows; nothing can be paid by it',
    access: payerOf('financing checkout'),
    params: z.object({
      finance_access_token: inPath(
        'financing_session_not_found',
        z.string().describe('The token in the address of the page'),
      ),
    }),
    answers: { 200: FinancingPageAnswer },
    errors: {
      403: 'The account that offers it is not active',
      404: 'There is no such financing checkout',
      409: 'The session was cancelled',
      ...OFF,
    },
    refuses: {
      403: ['account_inactive'],
      409: ['financing_session_closed'],
    },
    async handle({ host: { app, portalUrl }, params }) {
      const { seller, ...page } = accepted(await openFinancingPage(app, params.finance_access_token))
      const [base, { logo_url }] = [portalUrl(), seller]
      const logo = base === null || logo_url === null ? null : `${base}${logo_url}`
      return { ...page, seller: { ...seller, logo_url: logo } }
    },
  }),
]
