import { z } from 'zod'
import { newContext } from '../../../../application/commands/command-context.ts'
import { noticeSenders, takeNotice } from '../../../../application/payments/processor-notices.ts'
import type {
  CardProcessor,
  ProcessorNotice,
  UnreadNotice,
} from '../../../../application/ports/card-processor.ts'
import type { Api } from '../../../endpoints/api.ts'
import { type Access, endpointsOf } from '../../../endpoints/endpoint.ts'
import { refused } from '../../../endpoints/partner-access.ts'
import { HttpError } from '../../../http/errors.ts'
import { type PaymentsHost, paymentsApi } from '../../host/api.ts'

/** What the card processor calls. Partners have nothing to do with it: it stands beside their API. */
const processorApi: Api = { ...paymentsApi, name: 'processor', prefixes: ['/processor'] }

/** A signed request of the card processor, and the notices in it once its signature is verified. */
interface Signed {
  readonly sender: CardProcessor
  notices: readonly (ProcessorNotice | UnreadNotice)[]
}

/** The card processor that is configured, by its signature over the raw body. The simulated one sends none. */
const processor: Access<PaymentsHost, Signed> = {
  security: [],
  errors: {
    400: 'What is signed is no notice',
    401: 'The signature is missing, wrong or too old',
    404: 'No card processor that sends notices is configured',
  },
  async identify(host, received) {
    const [sender] = noticeSenders(host.app)
    if (!sender) {
      const why = 'No card processor that sends notices is configured'
      throw refused(host, received, new HttpError(404, null, why))
    }
    return { sender, notices: [] }
  },
  signsBytes: () => true,
  ownsBody: true,
  verify({ app, limits }, caller, body, received) {
    const { headers } = received.request
    const notices = caller.sender.readNotices({ body, headers, now: app.clock.now() })
    if (notices === null) {
      const why = 'The request carries no valid signature of the card processor'
      throw refused({ limits }, received, new HttpError(401, null, why), body.length)
    }
    if (notices === 'unreadable') throw new HttpError(400, null, 'What is signed is no notice')
    caller.notices = notices
  },
}

const endpoint = endpointsOf(processorApi, processor)

export const processorEndpoints = [
  endpoint({
    operation: 'takeNotices',
    route: 'POST /notices',
    summary: 'Take signed notices of the card processor',
    description:
      'Each notice counts once. One about something that is unknown here is accepted and changes nothing; one about ' +
      'something of ours that is not understood is kept, and operators are alerted.',
    answers: { 200: z.object({ received: z.int() }) },
    async handle({ host, caller, requestId }) {
      const { app } = host
      const context = newContext(app, { type: 'system', id: 'card-processor' }, requestId)
      const source = { environment: 'live', processor: caller.sender.kind } as const
      for (const notice of caller.notices) await takeNotice(app, source, notice, context)
      return { received: caller.notices.length }
    },
  }),
]
