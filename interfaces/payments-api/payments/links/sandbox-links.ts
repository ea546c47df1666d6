import { z } from 'zod'
import { expireLink, failLink } from '../../../../application/payments/links/completions.ts'
import { linkOf } from '../../../../application/payments/links/links.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { refuseUnlessOpen, statusAt } from '../../../../domain/payments/links/payment-link.ts'
import { accepted, Rejected } from '../../../endpoints/endpoint.ts'
import { id, idOf, text, withDefault } from '../../../endpoints/fields.ts'
import { LINK_STATES } from '../../../endpoints/state-codes.ts'
import { contextOf, endpoint, partnerIn } from '../../host/api.ts'

const access = partnerIn('sandbox', 'The sandbox routes are available for sandbox keys only')
const params = z.object({ payment_link_id: idOf('payment link') })
const errors = {
  404: 'There is no such payment link',
  409: 'The link is paid or cancelled, or has expired',
} as const
const refuses = { 403: ['payment_link_out_of_scope'], 409: LINK_STATES } as const
const answers = {
  200: z
    .object({ _id: id(), status: z.enum(['created', 'sent', 'expired']) })
    .meta({ id: 'SimulatedPaymentLink' }),
}

type Call = Parameters<typeof contextOf>[0] & { readonly params: { readonly payment_link_id: string } }

/** What only a payer or the time does to links, for keys of the sandbox. */
export const sandboxLinkEndpoints = [
  endpoint({
    operation: 'failPaymentLink',
    route: 'POST /sandbox/payment-links/{payment_link_id}/fail',
    summary: 'Have a payment of a link of the sandbox declined; the link stays payable',
    access,
    params,
    body: z.object({ failure_message: withDefault(text(), 'Your card was declined.') }),
    answers,
    errors,
    refuses,
    async handle(call) {
      const { app } = call.host
      const { _id: linkId } = await openLink(call)
      const { failure_message: failureMessage } = call.body
      const failed = await failLink(app, { linkId, failureMessage, at: app.clock.now() }, contextOf(call))
      return isRejection(failed) ? failed : openLink(call)
    },
  }),
  endpoint({
    operation: 'expirePaymentLink',
    route: 'POST /sandbox/payment-links/{payment_link_id}/expire',
    summary: 'Have a link of the sandbox expire; one that has stays as it is',
    access,
    params,
    body: z.object({}),
    answers,
    errors,
    refuses,
    async handle(call) {
      const { app } = call.host
      const { _id: linkId } = await openLink(call, 'expired')
      const expired = await expireLink(app, { linkId, at: app.clock.now() }, contextOf(call))
      return isRejection(expired) ? expired : openLink(call, 'expired')
    },
  }),
]

/**
 * What is shown of a link that can be paid, or has another status that will do.
 * @throws Rejected for any other, be it that another request came first: asked before something is simulated, and
 * after.
 */
async function openLink({ host: { app }, caller, params }: Call, orStatus?: 'expired') {
  const link = accepted(await linkOf(app, caller.client, params.payment_link_id))
  const status = statusAt(link, app.clock.now())
  const refusal = status === orStatus ? null : refuseUnlessOpen(status)
  if (refusal) throw new Rejected(refusal)
  return { _id: link.payment_link_id, status: status as 'created' | 'sent' | 'expired' }
}
