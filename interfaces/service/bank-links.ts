import type { Application } from '../../application/commands/application.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import { SimulatedBankLink } from '../../infrastructure/providers/bank-link/simulated.ts'

/**
 * The bank links: what sandbox keys do stays with the simulated one, whatever is configured. Connections stay where they
 * were made: the simulated one always goes on with its own, Plaid while it is set.
 */
export async function bankLinks(
  { bankLink }: Pick<Config, 'bankLink'>,
  { faults }: Pick<Application, 'faults'>,
): Promise<Pick<Application, 'bankLinks'>> {
  const simulated = new SimulatedBankLink(faults)
  if (bankLink.kind === 'simulated') return { bankLinks: { live: simulated, sandbox: simulated } }
  // its SDK takes a while to load
  const { PlaidBankLink } = await import('../../infrastructure/providers/bank-link/plaid.ts')
  return { bankLinks: { live: new PlaidBankLink(bankLink), sandbox: simulated } }
}
