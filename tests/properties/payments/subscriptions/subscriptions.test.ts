import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nextStep } from '../../../../application/payments/simulated-processor.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import {
  dueAt,
  nextNumber,
  openCharge,
  type Subscription,
  type SubscriptionCommand,
  subscription,
} from '../../../../domain/payments/subscriptions/subscription.ts'
import { runs } from '../../../support/generated.ts'
import { startedSubscription } from '../../../support/started-subscriptions.ts'

const ID = 'a'.repeat(24)
const DAY = 86_400_000
const HOUR = 3_600_000
const START = Date.UTC(2027, 0, 31, 17)

function begun(charges: number | null): Subscription {
  const source = charges === null ? 'api' : 'plan'
  const started = startedSubscription(ID, new Date(START).toISOString(), {
    source,
    charges,
    amount_cents: 100,
  })
  return subscription.evolve(null, started)!
}

function following(state: Subscription, command: SubscriptionCommand): Subscription {
  const events = subscription.decide(command, state)
  if (isRejection(events)) throw new Error(events.message)
  return events.reduce<Subscription>((before, event) => subscription.evolve(before, event)!, state)
}

const charge = (state: Subscription, number: number, at: number) => ({
  processorPaymentId: 'ch_1',
  amountCents: 100,
  dueAt: dueAt(state, number),
  at,
})
const paid = (state: Subscription, number: number, at: number): SubscriptionCommand => ({
  type: 'Paid',
  ...charge(state, number, at),
})
const failed = (state: Subscription, number: number, at: number): SubscriptionCommand => ({
  type: 'Failed',
  ...charge(state, number, at),
  failureCode: null,
})

describe('notices of a processor', () => {
  /** Months of a subscription: how often a charge fails before it is paid, and how many hours lie between the tries. */
  const months = fc.array(
    fc.record({ failures: fc.nat({ max: 3 }), hours: fc.integer({ min: 1, max: 40 }) }),
    { minLength: 1, maxLength: 4 },
  )

  test('in any order lead to the same status and the same payments', () => {
    const histories = months.chain((history) => {
      const state = begun(null)
      const notices = history.flatMap(({ failures, hours }, month) => {
        const number = month + 1
        const at = (attempt: number) => dueAt(state, number) + attempt * hours * HOUR
        const fails = Array.from({ length: failures }, (_, attempt) => [
          failed(state, number, at(attempt)),
          ...(number === 1 ? [] : [{ type: 'Report', status: 'past_due', at: at(attempt) + 1_000 } as const]),
        ])
        const pays = [
          paid(state, number, at(failures)),
          { type: 'Report', status: 'active', at: at(failures) + 1_000 } as const,
        ]
        return [...fails.flat(), ...pays]
      })
      // as they happened, up to some moment; then mixed
      return fc.integer({ min: 1, max: notices.length }).chain((length) => {
        const told: SubscriptionCommand[] = notices.slice(0, length)
        return fc.tuple(
          fc.constant(told),
          fc.shuffledSubarray(told, { minLength: length, maxLength: length }),
        )
      })
    })
    fc.assert(
      fc.property(histories, ([inOrder, mixed]) => {
        const [expected, found] = [inOrder, mixed].map((all) => all.reduce(following, begun(null)))
        const paidOf = ({ tried }: Subscription) =>
          tried.flatMap(({ number, paid }) => (paid ? [number] : []))
        expect(found!.status).toBe(expected!.status)
        expect(paidOf(found!)).toEqual(paidOf(expected!))
        // told once more, nothing of it is news
        const again = mixed.filter(({ type }) => type !== 'Failed').reduce(following, found!)
        expect([again.status, paidOf(again)]).toEqual([found!.status, paidOf(found!)])
      }),
      runs(50),
    )
  })
})

describe('the simulated processor', () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ days: fc.integer({ min: 0, max: 40 }), declines: fc.boolean() }),
      fc.constantFrom('succeed' as const, 'decline' as const),
    ),
    { maxLength: 40 },
  )

  test('charges each month once, never early, never after the end, and ends a plan with its last payment', () => {
    fc.assert(
      fc.property(fc.option(fc.integer({ min: 1, max: 6 })), steps, (charges, all) => {
        let now = START
        let state = charges === null ? following(begun(null), paid(begun(null), 1, now)) : begun(charges)
        const settle = (number: number, declines: boolean) => {
          expect(state.tried.find((one) => one.number === number)?.paid ?? null).toBeNull()
          state = following(state, (declines ? failed : paid)(state, number, now))
        }
        const catchUp = (until: number, declines: boolean) => {
          for (let step = nextStep(state); step && step.at <= until; step = nextStep(state)) {
            now = Math.max(now, step.at)
            if (step.does === 'give_up') {
              state = following(state, { type: 'Report', status: 'canceled', at: now })
              continue
            }
            expect(now).toBeGreaterThanOrEqual(
              dueAt(state, step.number) - (step.failures > 0 ? 400 * DAY : 0),
            )
            settle(step.number, declines)
          }
          now = until
        }
        for (const step of all) {
          if (typeof step === 'object') catchUp(now + step.days * DAY, step.declines)
          else {
            const number = openCharge(state)?.number ?? nextNumber(state)
            if (number !== null) settle(number, step === 'decline')
          }
          const numbers = state.tried.map(({ number }) => number)
          expect(numbers).toEqual(numbers.map((_, index) => index + 1))
          if (charges !== null) expect(numbers.length).toBeLessThanOrEqual(charges)
          const isComplete = charges !== null && state.tried.filter((one) => one.paid).length === charges
          expect(state.ended?.reason === 'completed').toBe(isComplete)
          expect(state.status === 'canceled').toBe(state.ended !== null)
        }
      }),
      runs(50),
    )
  })
})
