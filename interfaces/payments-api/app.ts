import type { Express } from 'express'
import { type Application, asOfNow } from '../../application/commands/application.ts'
import project from '../../package.json' with { type: 'json' }
import { asyncApi } from '../endpoints/asyncapi.ts'
import { descriptionRoutes } from '../endpoints/description-routes.ts'
import { partyEndpoints } from '../endpoints/parties.ts'
import { routesOf } from '../endpoints/request-pipeline.ts'
import { writeEnvelopeError } from '../http/errors.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { createHost, type SharedSettings } from '../http/server.ts'
import { achAccountEndpoints } from './banking/accounts/ach-accounts.ts'
import { bankAccountEndpoints } from './banking/accounts/bank-accounts.ts'
import { achCollectionEndpoints } from './banking/debits/ach-collections.ts'
import { achDebitEndpoints } from './banking/debits/ach-debits.ts'
import { achTransactionEndpoints } from './banking/debits/ach-transactions.ts'
import { bankLinkingEndpoints } from './banking/linking/bank-linking.ts'
import { endpoint, type PaymentsHost } from './host/api.ts'
import { financingEndpoints, publicFinancingEndpoints } from './payments/financing/financing.ts'
import { paymentLinkEndpoints, publicPaymentLinkEndpoints } from './payments/links/payment-links.ts'
import { paymentSessionEndpoints } from './payments/payment-sessions.ts'
import { processorEndpoints } from './payments/processor/processor-notices.ts'
import { publicPaymentSessionEndpoints } from './payments/sessions/public-payment-sessions.ts'
import { subscriptionEndpoints } from './payments/subscriptions/subscriptions.ts'
import { intakeEndpoints } from './policies/intake.ts'
import { sandboxEndpoints } from './sandbox.ts'
import { eventEndpoints } from './webhooks/events.ts'
import { webhookEndpoints } from './webhooks/webhooks.ts'

export interface PaymentsSettings extends SharedSettings, Pick<PaymentsHost, 'portalUrl'> {
  /** Requests per second and credential; 0 switches rate limits off. */
  readonly rateLimitRps: number
  /** Base address under which partners reach the host; null when it is the listener's own. */
  readonly publicUrl: string | null
}

/** All endpoints of the payments API. */
export const paymentsEndpoints = [
  ...paymentLinkEndpoints,
  ...financingEndpoints,
  ...paymentSessionEndpoints,
  // so does /bank-accounts/ach/from-bankconnect, which names no ACH account either
  ...bankLinkingEndpoints,
  // a path that begins with /bank-accounts/ach names no account of the metadata layer
  ...achAccountEndpoints,
  ...bankAccountEndpoints,
  ...achDebitEndpoints,
  ...achCollectionEndpoints,
  ...achTransactionEndpoints,
  ...subscriptionEndpoints,
  ...intakeEndpoints,
  ...partyEndpoints(endpoint, 'forbidden'),
  ...webhookEndpoints,
  ...eventEndpoints,
  ...sandboxEndpoints,
  ...publicPaymentLinkEndpoints,
  ...publicPaymentSessionEndpoints,
  ...publicFinancingEndpoints,
]

/** The payments API: payment links, subscriptions, policy intake, webhooks. */
export function createPaymentsApp(app: Application, settings: PaymentsSettings): Express {
  const { rateLimitRps, publicUrl, portalUrl, ...shared } = settings
  const limits = rateLimits(rateLimitRps)
  return createHost({
    ...shared,
    routes: [
      ...routesOf(
        [...paymentsEndpoints, ...processorEndpoints],
        () => ({ app: asOfNow(app), limits, portalUrl }),
        limits,
      ),
      ...descriptionRoutes(paymentsEndpoints, limits, publicUrl, {
        '/asyncapi.json': () => asyncApi(project.version),
      }),
    ],
    addresses: limits.addresses,
    credentialHeader: 'x-client-id',
    writeError: writeEnvelopeError,
  })
}
