import { z } from 'zod'
import type { Application } from '../../../application/commands/application.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { optional, time, wrongType } from '../../endpoints/fields.ts'
import { contextOf, endpoint } from '../host/api.ts'
import { shownTime } from '../host/values.ts'

const AMOUNT = 'must be a number of 0 or more'

export const Clock = z.object({ now: shownTime(), kind: z.enum(['system', 'virtual']) }).meta({ id: 'Clock' })

export const clockEndpoints = [
  endpoint({
    operation: 'showClock',
    route: 'GET /clock',
    summary: 'Show what time it is for the service',
    answers: { 200: Clock },
    command: { name: 'clock show' },
    handle: async ({ host }) => clockOf(host.app),
  }),
  endpoint({
    operation: 'advanceClock',
    route: 'POST /clock/advance',
    summary: 'Move a virtual clock on; what falls due on the way is done in order',
    description: 'Takes either `seconds` or `to`.',
    body: z
      .object({
        seconds: optional(z.number(wrongType(AMOUNT)).min(0, AMOUNT)),
        to: optional(time()).describe('Instead: the time to move to'),
      })
      .refine(({ seconds, to }) => seconds === null || to === null, {
        path: ['to'],
        error: 'cannot be given together with seconds',
      })
      .refine(({ seconds, to }) => seconds !== null || to !== null, {
        path: ['seconds'],
        error: 'is required: send seconds or to',
      }),
    example: { seconds: 3600 },
    answers: { 200: Clock },
    errors: {
      400: 'The time does not exist, or is after the year 9949',
      409: 'The clock is not virtual, or would go back',
    },
    refuses: { 400: ['invalid_time'], 409: ['clock_is_moving', 'clock_moves_forward', 'clock_not_virtual'] },
    async handle(call) {
      const { host, body } = call
      const by = body.to === null ? { seconds: body.seconds! } : { to: body.to }
      accepted(await host.services.advanceClock(by, contextOf(call)))
      return clockOf(host.app)
    },
  }),
]

/** The time of the service. */
export function clockOf({ clock }: Pick<Application, 'clock'>): z.input<typeof Clock> {
  return { now: isoTime(clock.now()), kind: clock.kind }
}
