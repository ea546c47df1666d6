import { z } from 'zod'
import { type CommandContext, newContext } from '../../../application/commands/command-context.ts'
import { tenantOfPage } from '../../../application/payments/web-addresses.ts'
import type { ApiClient } from '../../../domain/access/api-client.ts'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import type { Api } from '../../endpoints/api.ts'
import { openApiWebhooks } from '../../endpoints/asyncapi.ts'
import type { KeyedRequest } from '../../endpoints/creations.ts'
import { type Access, type Call, endpointsOf } from '../../endpoints/endpoint.ts'
import { WITH_ENVELOPE } from '../../endpoints/envelope.ts'
import { machineReadable } from '../../endpoints/error-codes.ts'
import { type NamedThing, noSuch } from '../../endpoints/not-found.ts'
import {
  type AuthenticatedClient,
  PARTNER_SCHEMES,
  type PartnerHost,
  partnerAccess,
} from '../../endpoints/partner-access.ts'
import { SMALL_BODY } from '../../http/body.ts'
import { HttpError, refusalOf } from '../../http/errors.ts'
import { limitAddress } from '../../http/rate-limit.ts'

/** What handlers of the payments API work with. */
export interface PaymentsHost extends PartnerHost {
  /** Base address of the hosted pages; null when the service has none of its own. */
  readonly portalUrl: () => string | null
}

/** Words of the documents that stand in `error`; elsewhere it is the reason phrase of the status. */
const ERROR_WORDS: Readonly<Record<string, string>> = {
  fein_conflict: 'fein_conflict',
  session_not_payable: 'Unavailable',
  checkout_not_enabled: 'Checkout Not Enabled',
  no_payment_page_host: 'No Payment Page Host',
}

/** What partners call: payment links, subscriptions, policy intake, webhooks. */
export const paymentsApi: Api = {
  name: 'payments',
  title: 'Payments API',
  description:
    'Sell policies by hosted payment links, take recurring charges, refund, and hear of everything by signed webhooks. ' +
    'All amounts are integer cents.',
  prefixes: ['/api/v1'],
  securitySchemes: PARTNER_SCHEMES,
  bodyLimit: SMALL_BODY,
  ...WITH_ENVELOPE,
  rejected,
  webhooks: openApiWebhooks,
  errorBody: z.object({
    ok: z.literal(false),
    error: z.string(),
    message: z.string(),
    ...machineReadable,
    id: z.string().optional().describe('What stands in the way'),
    data: z.object({ id: z.string() }).optional().describe('The same, in the envelope'),
    replaced_by: z.string().optional().describe('The payment session that stands for it now'),
    intake_id: z.string().optional().describe('The intake to resume with the same key'),
  }),
}

/**
 * The bearer of a page's address. The token in it is the credential: payers share addresses, so an address is limited
 * only for what opens no page, and nothing of it is read.
 * @param what the page is of.
 */
export function payerOf(what: NamedThing): Access<PaymentsHost, null> {
  return {
    security: [],
    errors: { 429: 'Too many requests with one token, or from one address with tokens that are unknown' },
    async identify({ app, limits }, { request, params, costs }) {
      const [token = ''] = Object.values(params).map(String)
      if ((await tenantOfPage(app, 'pay', token)) === null) {
        limitAddress(limits.addresses, request)
        throw noSuch(what)
      }
      await costs.admit(token)
      return null
    },
  }
}

/** A partner's client whose key opens the payments API. */
export const partner = partnerAccess({
  ownWords: false,
  errors: { 403: 'The key does not open this API, or does not reach what is named' },
  refuse: ({ products }) =>
    products.includes('payments') || products.includes('all')
      ? null
      : new HttpError(403, null, 'This key is not for payments'),
})

export const endpoint = endpointsOf<PaymentsHost, AuthenticatedClient>(paymentsApi, partner)
/** What pages ask for in the name of payers. */
export const publicEndpoint = endpointsOf<PaymentsHost, null>(
  { ...paymentsApi, prefixes: ['/public'] },
  payerOf('payment session'),
)

/** The same, and only with a key of one environment. @param message tells the others why. */
export function partnerIn(
  environment: ApiClient['environment'],
  message: string,
  status: 400 | 403 = 403,
): typeof partner {
  return {
    ...partner,
    async identify(host, received) {
      const caller = await partner.identify(host, received)
      if (caller.client.environment !== environment) throw wrongEnvironment(message, status)
      return caller
    },
  }
}

/** The refusal of a key of the other environment. @param message tells why. */
export function wrongEnvironment(message: string, status: 400 | 403 = 403): HttpError {
  return new HttpError(status, null, message, { code: 'wrong_environment' })
}

type PartnerCall = Call<PaymentsHost, AuthenticatedClient, unknown, unknown, unknown>

/** The context of a command of a request, with a new command id. */
export function contextOf({
  host,
  caller,
  requestId,
}: Pick<PartnerCall, 'host' | 'caller' | 'requestId'>): CommandContext {
  const { client } = caller
  return newContext(host.app, { type: 'api_client', id: client.client_id }, requestId, client)
}

/** A request of a partner that may carry a key. */
export function keyed(call: PartnerCall): KeyedRequest {
  const { host, caller, key, sent, unlessRepeated } = call
  const context = { ...contextOf(call), unlessRepeated }
  return { app: host.app, caller: caller.client.client_id, key, sent, context }
}

function rejected(rejection: Rejection): HttpError {
  const refusal = refusalOf(rejection, null)
  const { id, ...ids } = rejection.ids ?? {}
  const details = id === undefined ? ids : { ...ids, id, data: { id } }
  return new HttpError(refusal.status, ERROR_WORDS[rejection.code] ?? null, refusal.message, {
    ...refusal,
    details,
  })
}
