import { z } from 'zod'
import { setFinancing, showFinancing } from '../../../application/payments/financing/financing-settings.ts'
import {
  type FinancingSimulation,
  simulateFinancing,
} from '../../../application/payments/financing/simulate-financing.ts'
import { MOST_QUOTES } from '../../../application/payments/financing/simulated-quotes.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import {
  FINANCING_STATUSES,
  type FinancingSession,
  financingStatusAt,
} from '../../../domain/payments/financing/financing-session.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { email, id, ofOne, optional, text, wholeNumber, withDefault } from '../../endpoints/fields.ts'
import { changeOf, repeating } from '../../endpoints/repeating.ts'
import { contextOf, endpoint, loaded } from '../host/api.ts'
import { list } from '../host/values.ts'

const Settings = z
  .object({
    tenant_id: id(),
    enabled: z.boolean(),
    invitations_enabled: z.boolean(),
    recipient_allowlist: z.array(z.string()).readonly().describe('`(erased)` after an erasure'),
    agreements_enabled: z.boolean(),
  })
  .meta({ id: 'FinancingSettings' })

const settings = z.object({
  enabled: withDefault(z.boolean(), true),
  invitations_enabled: withDefault(z.boolean(), false),
  recipient_allowlist: withDefault(list(email()), []).describe('Who may be invited'),
  agreements_enabled: withDefault(z.boolean(), true).describe('Whether agreements can be downloaded'),
})

const ofTenant = ofOne('tenant_id', 'tenant')

const Simulated = z
  .object({
    session_id: id(),
    status: z.enum(FINANCING_STATUSES),
    quotes: z.array(z.object({ quote_key: z.string(), down_payment_cents: z.int() })),
    notices: z
      .array(z.object({ notice_id: z.string(), amount_cents: z.int(), quote_key: z.string().nullable() }))
      .describe('Down payments that the provider reported; of no quote where the amount is of none'),
  })
  .meta({ id: 'PlayedFinancing' })

const ofSession = ofOne('session_id', 'financing session')
const errors = {
  ...ofSession.errors,
  409: 'The step does not fit how the request stands; nothing is changed',
} as const
const NOTE = 'Does what the simulated financing provider does.'

/** A verb of the provider that takes nothing. */
const simple = (operation: string, verb: 'hold' | 'expire', summary: string) =>
  endpoint({
    operation,
    route: `POST /financing/{session_id}/${verb}`,
    summary,
    description: NOTE,
    ...ofSession,
    body: z.object({}),
    answers: { 200: Simulated },
    errors,
    refuses: { 404: ['financing_session_not_found'], 409: ['financing_not_pending'] },
    handle: (call) => simulated(call, { answer: verb }),
  })

export const financingEndpoints = [
  endpoint({
    operation: 'setFinancing',
    route: 'PUT /tenants/{tenant_id}/financing',
    summary: 'Set what of the financing test path is open to a tenant',
    description: 'What is left out is back at its default; what is only shown may be repeated.',
    ...ofTenant,
    body: repeating(Settings, settings),
    answers: { 200: Settings },
    async handle(call) {
      const { host } = call
      const { tenant_id } = await loaded(host, tenant, call.params.tenant_id, 'tenant')
      const wanted = changeOf(settings, call, { tenant_id })
      return { tenant_id, ...accepted(await setFinancing(host.app, tenant_id, wanted, contextOf(call))) }
    },
  }),
  endpoint({
    operation: 'showFinancingSettings',
    route: 'GET /tenants/{tenant_id}/financing',
    summary: 'Show what of the financing test path is open to a tenant',
    ...ofTenant,
    answers: { 200: Settings },
    command: { name: 'tenants show-financing' },
    async handle({ host, params }) {
      const { tenant_id } = await loaded(host, tenant, params.tenant_id, 'tenant')
      return { tenant_id, ...(await showFinancing(host.app, tenant_id)) }
    },
  }),
  endpoint({
    operation: 'playFinancingQuotes',
    route: 'POST /financing/{session_id}/quotes',
    summary: 'The provider has quotes; those that are stored already stay',
    description: NOTE,
    ...ofSession,
    body: z.object({
      count: withDefault(z.int().min(1).max(MOST_QUOTES), 3).describe('How many'),
    }),
    answers: { 200: Simulated },
    errors,
    refuses: { 409: ['financing_not_pending'] },
    handle: (call) => simulated(call, { answer: 'quotes', count: call.body.count }),
  }),
  simple('playFinancingHold', 'hold', 'The provider wants to look at the request'),
  simple('playFinancingExpiry', 'expire', 'The request has expired at the provider'),
  endpoint({
    operation: 'playDownPaymentNotice',
    route: 'POST /financing/{session_id}/down-payment-notice',
    summary: 'The provider says that a down payment was received',
    description: `${NOTE} The same notice again changes nothing.`,
    ...ofSession,
    body: z.object({
      notice_id: optional(text(200)),
      amount_cents: optional(wholeNumber()).describe('Default: the down payment of the first quote'),
    }),
    answers: { 200: Simulated },
    errors,
    refuses: { 409: ['financing_without_quotes'] },
    handle: (call) =>
      simulated(call, {
        answer: 'down_payment',
        noticeId: call.body.notice_id,
        amountCents: call.body.amount_cents,
      }),
  }),
]

type SimulationCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly session_id: string } }

async function simulated(call: SimulationCall, what: FinancingSimulation) {
  const { app } = call.host
  const { session_id } = call.params
  return shown(accepted(await simulateFinancing(app, session_id, what, contextOf(call))), app.clock.now())
}

function shown(session: FinancingSession, now: number) {
  const { financing_session_id, request, notices } = session
  return {
    session_id: financing_session_id,
    status: financingStatusAt(session, now),
    quotes: (request?.quotes ?? []).map(({ quote_key, down_payment_cents }) => ({
      quote_key,
      down_payment_cents,
    })),
    notices: [...notices],
  }
}
