import { z } from 'zod'
import { withDefault, wrongType } from '../../endpoints/fields.ts'
import { HttpError } from '../../http/errors.ts'
import { endpoint } from '../host/api.ts'
import { Clock, clockOf } from './clock.ts'

const DEFAULT_SECONDS = 30
const MAX_SECONDS = 600
const SECONDS = 'must be a whole number of 0 or more'

export const drainEndpoints = [
  endpoint({
    operation: 'drain',
    route: 'POST /drain',
    summary: 'Wait until no work is left at the present clock',
    description:
      'Then nothing is in flight, and all process managers and projections are at the head of the log. Work that is held, ' +
      'due later or failed is not waited for.',
    body: z.object({
      timeout_seconds: withDefault(
        z.int(wrongType(SECONDS)).min(0, SECONDS).max(MAX_SECONDS, `must not exceed ${MAX_SECONDS}`),
        DEFAULT_SECONDS,
      ),
    }),
    answers: { 200: Clock.extend({ drained: z.literal(true) }).meta({ id: 'Drained' }) },
    errors: { 504: 'The service did not come to rest in time; the message says what was left' },
    command: { name: 'drain' },
    async handle({ host, body: { timeout_seconds: seconds } }) {
      const outcome = await host.services.drain(seconds * 1000)
      if (outcome.drained) return { drained: true as const, ...clockOf(host.app) }
      const left = outcome.waiting_for === undefined ? '' : `: ${JSON.stringify(outcome.waiting_for)}`
      throw new HttpError(504, null, `The service did not come to rest within ${seconds} s${left}`)
    },
  }),
]
