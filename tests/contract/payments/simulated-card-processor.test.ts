import { describe, expect, test } from 'vitest'
import { NO_FAULTS } from '../../../application/ports/faults.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { SimulatedCardProcessor } from '../../../infrastructure/providers/card/simulated.ts'
import { describeCardProcessor } from './card-processor.contract.ts'

const settings = {
  faults: NO_FAULTS,
  pageOf: (id: string) => `https://pay.example/pay/${id}`,
  chargesAtOnce: false,
  secretFor: (text: string) => text,
}

describeCardProcessor('the simulated one', () => ({
  processor: new SimulatedCardProcessor(settings),
  method: () => 'pm_card_visa',
}))

describe('the simulated card processor', () => {
  const asked = {
    subscriptionId: '2'.repeat(24),
    customerId: 'cus',
    isPayersMethod: false,
    amountCents: 5_000,
    firstChargeAt: null,
    charges: null,
  }
  const start = async (
    chargesAtOnce: boolean,
    paymentMethodId: string,
    fault: 'decline' | 'unreachable' | 'timeout' | null = null,
  ) => {
    const taken: string[] = []
    const faults = {
      take: async (_point: string, modes: readonly string[]) => {
        if (fault === null || !modes.includes(fault)) return null
        taken.push(fault)
        return fault
      },
    }
    const processor = new SimulatedCardProcessor({ ...settings, chargesAtOnce, faults })
    return processor.createSubscription({ ...asked, paymentMethodId }, 's-1')
  }

  test('takes the first payment as it is set', async () => {
    expect(await start(true, 'pm_card_visa')).toMatchObject({ status: 'active' })
    expect(await start(false, 'pm_card_visa')).toMatchObject({ status: 'incomplete' })
    expect(await start(true, 'pm_card_declined')).toMatchObject({ status: 'incomplete' })
    expect(await start(true, 'pm_card_visa', 'decline')).toMatchObject({ status: 'incomplete' })
  })

  test('is away when it is told to be', async () => {
    for (const fault of ['unreachable', 'timeout'] as const) {
      await expect(start(true, 'pm_card_visa', fault)).rejects.toThrow(ProviderUnavailable)
    }
    const faults = { take: async () => 'decline' as const }
    const processor = new SimulatedCardProcessor({ ...settings, faults })
    await expect(processor.refund({ isRepeated: false }, 'r-1')).rejects.toThrow(ProviderRefused)
  })

  test('does not decline what it may have carried out', async () => {
    const take = async (_point: string, modes: readonly string[]) =>
      modes.includes('decline') ? ('decline' as const) : null
    const processor = new SimulatedCardProcessor({ ...settings, faults: { take } })
    expect(await processor.refund({ isRepeated: true }, 'r-1')).toMatchObject({ status: 'succeeded' })
  })
})
