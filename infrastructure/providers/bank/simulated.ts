import type { BankRail, RailBatch } from '../../../application/ports/bank-rail.ts'
import type { Faults } from '../../../application/ports/faults.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'

/** Stands for a bank: it takes every batch, no money moves, and it keeps nothing. */
export class SimulatedBankRail implements BankRail {
  readonly kind = 'simulated'
  readonly #faults: Pick<Faults, 'take'>

  constructor({ faults }: { readonly faults: Pick<Faults, 'take'> }) {
    this.#faults = faults
  }

  async submit({ entries }: RailBatch): Promise<void> {
    const fault = await this.#faults.take('bank-rail', ['unreachable', 'timeout', 'decline'])
    if (fault === 'decline') throw new ProviderRefused('The bank refused the batch')
    if (fault === 'unreachable') {
      throw new ProviderUnavailable('The bank could not be reached', { nothingHappened: true })
    }
    // read to its end, as for a file
    for await (const _page of entries);
    if (fault === 'timeout') throw new ProviderUnavailable('The bank did not answer in time')
  }
}
