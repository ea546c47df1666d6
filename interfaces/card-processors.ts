import type { Application } from '../application/application.ts'
import type { Config } from '../infrastructure/config/config.ts'
import { SimulatedCardProcessor } from '../infrastructure/providers/card/simulated.ts'
import type { Addresses } from './hosts.ts'

/**
 * The card processors: what sandbox keys do stays with the simulated one, whatever is configured.
 * @param addresses real addresses of the hosts, known as soon as they listen.
 */
export async function cardProcessors(
  config: Pick<Config, 'cardProcessor' | 'urls' | 'hasPortal'>,
  { faults }: Pick<Application, 'faults'>,
  addresses: Addresses,
): Promise<Application['processors']> {
  const { cardProcessor, urls, hasPortal } = config
  const pageOf = (linkId: string) =>
    hasPortal
      ? `${urls.portal ?? addresses.portal ?? ''}/pay/${linkId}`
      : `${urls.payments ?? addresses.payments ?? ''}/public/payment-links/${linkId}`
  const sandbox = new SimulatedCardProcessor({ faults, pageOf, chargesAtOnce: true })
  if (cardProcessor.kind === 'simulated') {
    return { live: new SimulatedCardProcessor({ faults, pageOf, chargesAtOnce: false }), sandbox }
  }
  // its SDK takes a while to load
  const { StripeCardProcessor } = await import('../infrastructure/providers/card/stripe.ts')
  return { live: new StripeCardProcessor(cardProcessor), sandbox }
}
