import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  backoff,
  cancel,
  ladder,
  on,
  perform,
  processManager,
  work,
} from '../../application/process-managers/runtime/process-manager.ts'
import { eventType } from '../../domain/kernel/event-type.ts'

const Sent = eventType({ name: 'Sent', schema: z.object({ parcel: z.string(), weight: z.number() }) })
const Recalled = eventType({ name: 'Recalled', schema: z.object({ parcel: z.string() }) })

const deliver = work(
  {
    payload: z.object({ weight: z.number() }),
    slots: 8,
    perKey: { slots: 1, of: ({ weight }) => String(weight) },
    retry: ladder(1_000, 5_000),
    timeLimitMs: 1_000,
  },
  async ({ payload }) => ({ outcome: 'again', at: 1, payload: { weight: payload.weight + 1 } }),
)

test('events, intents and payloads are typed by what was declared', () => {
  const parcels = processManager({
    name: 'parcels',
    startAt: 'registration',
    on: [
      on(Sent, ({ data }) =>
        data.weight > 100
          ? [cancel('deliver', data.parcel)]
          : [perform('deliver', data.parcel, { weight: data.weight }), perform('weigh', data.parcel, {})],
      ),
      on(Recalled, ({ data }) => [cancel('deliver', data.parcel)]),
    ],
    work: {
      deliver,
      weigh: work({ payload: z.object({}), retry: backoff(), timeLimitMs: 1_000 }, async () => ({
        outcome: 'done',
      })),
    },
  })
  expect(Object.keys(parcels.work)).toEqual(['deliver', 'weigh'])

  const declare = (first: Parameters<typeof processManager<{ deliver: typeof deliver }>>[0]['on'][number]) =>
    processManager({ name: 'x', startAt: 'beginning', on: [first], work: { deliver } })
  // @ts-expect-error no such kind of work
  declare(on(Sent, () => [perform('burn', 'a', { weight: 1 })]))
  // @ts-expect-error the payload does not fit
  declare(on(Sent, () => [perform('deliver', 'a', { weight: 'heavy' })]))
  // @ts-expect-error the event has no such field
  declare(on(Recalled, ({ data }) => [perform('deliver', data.parcel, { weight: data.weight })]))
  // @ts-expect-error the changed payload does not fit
  work({ payload: z.object({ n: z.number() }), retry: backoff(), timeLimitMs: 1 }, async () => ({
    outcome: 'again',
    at: 1,
    payload: { n: 'x' },
  }))
  processManager({
    name: 'y',
    startAt: 'beginning',
    // @ts-expect-error no such kind of work
    on: [on(Sent, () => [cancel('burn', 'a')])],
    work: { deliver },
  })
})
