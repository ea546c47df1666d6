import { z } from 'zod'
import { FAULT_POINTS } from '../../../application/ports/faults.ts'
import { REQUIRED } from '../../endpoints/faults.ts'
import { optional, withDefault, word, wrongType } from '../../endpoints/fields.ts'
import { conflict, endpoint, record } from '../host/api.ts'

const MAX_FAULTS = 10_000
const TIMES = 'must be a whole number of 0 or more'

const point = word(...FAULT_POINTS)
const mode = word('unreachable', 'decline', 'timeout', 'hold')

export const faultEndpoints = [
  endpoint({
    operation: 'injectFault',
    route: 'POST /faults',
    summary: 'Make the next uses of a point fail; with the virtual clock only',
    body: z
      .object({
        point,
        mode: optional(mode).describe('Required unless the point is cleared'),
        times: withDefault(
          z.int(wrongType(TIMES)).min(0, TIMES).max(MAX_FAULTS, `must not exceed ${MAX_FAULTS}`),
          1,
        ).describe('How many uses; 0 clears the point'),
      })
      .refine(({ mode, times }) => mode !== null || times === 0, { path: ['mode'], message: REQUIRED }),
    example: { point: 'card-processor', mode: 'unreachable', times: 1 },
    answers: {
      200: z.object({ point, mode: mode.nullable().describe('Null: the point is clear'), times: z.int() }),
    },
    errors: { 409: 'The clock is not virtual' },
    command: { name: 'faults inject', operands: ['point', 'mode'] },
    async handle(call) {
      const { app } = call.host
      const { point, mode, times } = call.body
      if (app.clock.kind !== 'virtual') throw conflict('Faults are injected only with CLOCK=virtual')
      await record(call, times === 0 ? 'clear-fault' : 'inject-fault', point, { mode, times })
      await app.faults.inject(point, mode ?? 'unreachable', times)
      return { point, mode: times === 0 ? null : mode, times }
    },
  }),
]
