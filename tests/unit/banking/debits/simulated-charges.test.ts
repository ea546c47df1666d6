import { expect, it } from 'vitest'
import type { Application } from '../../../../application/commands/application.ts'
import type { CommandContext } from '../../../../application/commands/command-context.ts'
import { simulateSubscriptionPayment } from '../../../../application/payments/simulated-processor.ts'
import { type Subscription, subscription } from '../../../../domain/payments/subscriptions/subscription.ts'
import { SubscriptionChargePaid } from '../../../../domain/payments/subscriptions/subscription-events.ts'
import { startedSubscription } from '../../../support/started-subscriptions.ts'

const ID = 'a'.repeat(24)
const AT = '2026-01-31T17:00:00.000Z'
const started = startedSubscription(ID, AT, {
  environment: 'sandbox',
  processor: 'simulated',
  first_charge_paid: true,
})
const paid = (number: number) =>
  SubscriptionChargePaid.of({
    subscription_id: ID,
    number,
    processor_payment_id: 'ch_1',
    amount_cents: 5000,
    at: AT,
  })

it('no more payments of a subscription are simulated than a plan may have', async () => {
  const state = [
    started,
    ...Array.from({ length: 359 }, (_, index) => paid(index + 2)),
  ].reduce<Subscription | null>((before, event) => subscription.evolve(before, event), null)!
  expect(state.tried).toHaveLength(360)
  const refused = await simulateSubscriptionPayment({} as Application, state, null, {} as CommandContext)
  expect(refused).toMatchObject({ kind: 'conflict', code: 'too_many_played' })
})
