import type { BankRail, MicroDeposits, RailBatch } from '../../../application/ports/bank-rail.ts'
import type { Faults } from '../../../application/ports/faults.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'

/** Stands for a bank: it takes every batch, no money moves, and it keeps nothing. */
export class SimulatedBankRail implements BankRail {
  readonly kind = 'simulated'
  readonly #faults: Pick<Faults, 'take'>

  constructor({ faults }: { readonly faults: Pick<Faults, 'take'> }) {
    this.#faults = faults
  }

  async submit({ entries, refuse }: RailBatch): Promise<void> {
    const endOf = await this.#fault('the batch')
    // read to its end, as for a file
    for await (const page of entries) {
      for (const entry of page) if (entry.refusal !== null) await refuse(entry, entry.refusal)
    }
    endOf()
  }

  async sendMicroDeposits(_deposits: MicroDeposits): Promise<void> {
    const endOf = await this.#fault('the deposits')
    endOf()
  }

  /** Runs into the fault that operators injected, if any. @returns what throws at the end of a call that timed out. */
  async #fault(what: string): Promise<() => void> {
    const fault = await this.#faults.take('bank-rail', ['unreachable', 'timeout', 'decline'])
    if (fault === 'decline') throw new ProviderRefused(`The bank refused ${what}`)
    if (fault === 'unreachable') {
      throw new ProviderUnavailable('The bank could not be reached', { nothingHappened: true })
    }
    return () => {
      if (fault === 'timeout') throw new ProviderUnavailable('The bank did not answer in time')
    }
  }
}
