import { expect, test } from 'vitest'
import type { Application } from '../../../../application/commands/application.ts'
import type { CommandContext } from '../../../../application/commands/command-context.ts'
import { decideAll } from '../../../../application/commands/command-handler.ts'
import { refundLink } from '../../../../application/payments/links/refunds.ts'
import { ProviderRefused } from '../../../../application/ports/provider.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import {
  type PaymentLink,
  type PaymentLinkCommand,
  paymentLink,
} from '../../../../domain/payments/links/payment-link.ts'

const ID = 'a'.repeat(24)

test('a refund that the card processor refused is another one there when its request comes again', async () => {
  let state = {
    payment_link_id: ID,
    tenant_id: ID,
    environment: 'live',
    processor: 'stripe',
    payment: { amount_cents: 100, processor_payment_id: 'pi_1' },
    refunds: [],
  } as unknown as PaymentLink
  const keys: string[] = []
  const live = {
    kind: 'stripe',
    async refund(_asked: unknown, key: string) {
      keys.push(key)
      if (keys.length === 1) throw new ProviderRefused('declined')
      return { status: 'succeeded', processorRefundId: 're_1' }
    },
  }
  const commands = {
    load: async () => ({ state }),
    async execute(_decider: unknown, _id: string, command: PaymentLinkCommand) {
      const decided = decideAll(paymentLink, [command], state)
      if (isRejection(decided)) return decided
      state = decided.state!
      return { ...decided, position: null }
    },
  }
  const clock = { now: () => 0 }
  const app = { commands, clock, processors: { live }, formerProcessors: [] } as unknown as Application
  const context = { commandId: 'command', mayRepeat: true } as CommandContext
  const refund = () => refundLink(app, ID, { amountCents: null, reason: null }, context)
  await expect(refund()).rejects.toThrow(ProviderRefused)
  expect(await refund()).toMatchObject({ refunds: [{ status: 'failed' }, { status: 'succeeded' }] })
  expect(new Set(keys).size).toBe(2)
})
