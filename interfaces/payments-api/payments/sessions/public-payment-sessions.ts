import { z } from 'zod'
import type { CommandContext } from '../../../../application/commands/command-context.ts'
import { arrangeDebit } from '../../../../application/payments/sessions/arrange-debit.ts'
import { checkoutOf } from '../../../../application/payments/sessions/checkouts.ts'
import {
  contextOfPayer,
  openPage,
  planOfToken,
  sessionOfToken,
} from '../../../../application/payments/sessions/session-page.ts'
import { SESSION_STATUSES } from '../../../../domain/payments/sessions/payment-session-status.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { id, isoMoment } from '../../../endpoints/fields.ts'
import { inPath } from '../../../endpoints/not-found.ts'
import { payersAccount, payersAccountRequest } from '../../../endpoints/payers-account.ts'
import { type PaymentsHost, publicEndpoint } from '../../host/api.ts'

const token = z.string().describe('The token in the address of the page')
const params = z.object({ token: inPath('payment_session_not_found', token) })
const NONE = { 404: 'There is no such payment session' } as const
const CLOSED = { 409: 'The session cannot be paid in this way: the message says why' } as const
const AWAY = { 502: 'The card processor could not be reached' } as const

const Plan = z
  .object({
    currency: z.literal('usd'),
    total_cents: z.int(),
    down_payment_cents: z.int(),
    total_installments: z.int().describe('After the down payment'),
    per_installment_cents: z.int().describe('Of all but the last'),
    last_installment_cents: z.int(),
    installments: z.array(z.object({ number: z.int(), amount_cents: z.int(), due_at: isoMoment() })),
  })
  .meta({ id: 'PaymentPlan' })

const Page = z
  .object({
    id: id(),
    status: z.enum(SESSION_STATUSES),
    mode: z.enum(['link', 'embedded']),
    seller: z.object({
      display_name: z.string().nullable(),
      logo_url: z.string().nullable().describe('Of the copy that hosted pages show'),
      accent_color: z.string().nullable(),
      support_email: z.string().nullable(),
    }),
    currency: z.literal('usd'),
    amount_cents: z.int().describe('What is charged now'),
    line_items: z.array(z.object({ label: z.string(), amount_cents: z.int() })),
    description: z.string().nullable(),
    plan: Plan.nullable(),
    takes_cards: z.boolean().describe('Whether a card can be charged now'),
    account_last4: z.string().nullable().describe('Of the bank account that is debited'),
    expires_at: isoMoment(),
    paid_at: isoMoment().nullable(),
  })
  .meta({ id: 'PaymentSessionPage' })

/** What the page of a session asks for, on behalf of the token's bearer. */
export const publicPaymentSessionEndpoints = [
  publicEndpoint({
    operation: 'showPaymentSessionPage',
    route: 'GET /payment-sessions/{token}',
    summary: 'What the page of a payment session shows; the first look opens it',
    params,
    answers: { 200: Page },
    errors: NONE,
    async handle(call) {
      const { app, portalUrl } = call.host
      const context = call.isHead ? null : payerContext(call)
      const { seller, ...page } = accepted(await openPage(app, call.params.token, context))
      const [base, { logo_url }] = [portalUrl(), seller]
      const logo = base === null || logo_url === null ? null : `${base}${logo_url}`
      return { ...page, seller: { ...seller, logo_url: logo } }
    },
  }),
  publicEndpoint({
    operation: 'showPaymentPlan',
    route: 'GET /payment-sessions/{token}/plan',
    summary: 'The schedule of a payment plan',
    params,
    answers: { 200: Plan },
    errors: { 404: 'There is no such payment session, it sells no plan, or it was cancelled or has expired' },
    refuses: { 404: ['payment_plan_not_found'] },
    handle: ({ host: { app }, params }) => planOfToken(app, params.token),
  }),
  publicEndpoint({
    operation: 'checkoutPaymentSession',
    route: 'POST /payment-sessions/{token}/checkout',
    summary: 'Begin to pay by card; the checkout that is open already is answered again',
    params,
    body: z.object({}),
    answers: {
      200: z
        .object({
          client_secret: z.string().describe('Mounts the checkout'),
          publishable_key: z.string(),
        })
        .meta({ id: 'Checkout' }),
    },
    errors: { ...NONE, ...CLOSED, ...AWAY },
    asksOutside: true,
    refuses: { 409: ['session_not_payable'] },
    async handle(call) {
      const { app } = call.host
      const session = accepted(await sessionOfToken(app, call.params.token))
      return checkoutOf(app, session, payerContext(call))
    },
  }),
  publicEndpoint({
    operation: 'arrangeBankDebit',
    route: 'POST /payment-sessions/{token}/bank-debit',
    summary: 'Pay from a bank account, now and by the installments of a plan',
    params,
    body: payersAccountRequest,
    answers: {
      200: z
        .object({
          status: z.literal('scheduled'),
          leg_id: id().optional().describe('The debit; absent where nothing is paid now'),
        })
        .meta({ id: 'ArrangedBankDebit' }),
    },
    errors: { ...NONE, ...CLOSED, ...AWAY },
    asksOutside: true,
    refuses: { 409: ['session_not_payable'] },
    async handle(call) {
      const { app } = call.host
      const session = accepted(await sessionOfToken(app, call.params.token))
      const account = payersAccount(call.body)
      const { debit } = accepted(await arrangeDebit(app, session, account, payerContext(call)))
      const debitId = debit?.leg_id
      return { status: 'scheduled' as const, ...(debitId ? { leg_id: debitId } : {}) }
    },
  }),
]

/** The bearer of the token acts as the customer. */
function payerContext({ host, requestId }: { host: PaymentsHost; requestId: string }): CommandContext {
  return contextOfPayer(host.app, requestId)
}
