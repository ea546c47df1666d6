import { z } from 'zod'
import { simulatePayment } from '../../../application/payments/simulate-payment.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { ofOne, text, withDefault } from '../../endpoints/fields.ts'
import { contextOf, endpoint } from '../host/api.ts'

const Simulated = z
  .object({
    _id: z.string(),
    kind: z.enum(['payment_link', 'payment_session', 'subscription']),
    outcome: z.enum(['succeeded', 'declined']),
    already_paid: z.boolean().describe('The link or the session had been paid before: nothing happened'),
  })
  .meta({ id: 'PlayedPayment' })

const one = ofOne('id', 'payment link, payment session or subscription')
const errors = {
  ...one.errors,
  409: 'The payment is not at the simulated card processor, or cannot be paid any more',
  502: 'The card processor could not be reached',
} as const
const NOTE =
  'For the simulated card processor only, live or sandbox. Of a subscription it is the payment that comes next.'

/** By the state of a session, a link or a subscription. */
const CLOSED = {
  409: [
    ...(['checkout_closed', 'session_not_payable', 'instalment_not_due'] as const),
    ...(['processor_not_simulated', 'subscription_canceled', 'too_many_played'] as const),
  ],
} as const

type SimulationCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly id: string } }

export const cardProcessorEndpoints = [
  endpoint({
    operation: 'playPayment',
    route: 'POST /card-processor/{id}/succeed',
    summary: 'Simulate a payment that succeeds',
    description: NOTE,
    ...one,
    body: z.object({}),
    answers: { 200: Simulated },
    errors,
    asksOutside: true,
    refuses: CLOSED,
    handle: (call) => simulated(call, null),
  }),
  endpoint({
    operation: 'playDecline',
    route: 'POST /card-processor/{id}/decline',
    summary: 'Simulate a payment that is declined',
    description: `${NOTE} The card declines from then on, until a payment is simulated that succeeds.`,
    ...one,
    body: z.object({ failure_code: withDefault(text(100), 'card_declined') }),
    answers: { 200: Simulated },
    errors,
    asksOutside: true,
    refuses: CLOSED,
    handle: (call) => simulated(call, call.body.failure_code),
  }),
]

async function simulated(call: SimulationCall, failureCode: string | null) {
  const { id } = call.params
  const { kind, alreadyPaid } = accepted(
    await simulatePayment(call.host.app, id, failureCode, contextOf(call)),
  )
  const outcome = failureCode === null ? ('succeeded' as const) : ('declined' as const)
  return { _id: id, kind, outcome, already_paid: alreadyPaid }
}
