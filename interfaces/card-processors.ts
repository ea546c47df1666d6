import type { Application } from '../application/application.ts'
import type { Config } from '../infrastructure/config/config.ts'
import { SimulatedCardProcessor } from '../infrastructure/providers/card/simulated.ts'
import type { Addresses } from './hosts.ts'

/**
 * The card processors: what sandbox keys do stays with the simulated one, whatever is configured.
 * @param addresses real addresses of the hosts, known as soon as they listen.
 */
export function cardProcessors(
  config: Pick<Config, 'cardProcessor' | 'urls' | 'hasPortal'>,
  { faults }: Pick<Application, 'faults'>,
  addresses: Addresses,
): Application['processors'] {
  const { urls, hasPortal } = config
  const pageOf = (linkId: string) =>
    hasPortal
      ? `${urls.portal ?? addresses.portal ?? ''}/pay/${linkId}`
      : `${urls.payments ?? addresses.payments ?? ''}/public/payment-links/${linkId}`
  return {
    live: new SimulatedCardProcessor({ faults, pageOf, chargesAtOnce: false }),
    sandbox: new SimulatedCardProcessor({ faults, pageOf, chargesAtOnce: true }),
  }
}
