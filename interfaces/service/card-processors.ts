import type { Application } from '../../application/commands/application.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import { SimulatedCardProcessor } from '../../infrastructure/providers/card/simulated.ts'
import type { Addresses } from './hosts.ts'

/**
 * The card processors: what sandbox keys do stays with the simulated one, whatever is configured. Live links and
 * subscriptions stay where they were made: the simulated one always goes on with its own, Stripe while its keys are set.
 * @param addresses real addresses of the hosts, known as soon as they listen.
 */
export async function cardProcessors(
  config: Pick<Config, 'cardProcessor' | 'stripe' | 'urls' | 'hasPortal'>,
  { faults, personalData }: Pick<Application, 'faults' | 'personalData'>,
  addresses: Addresses,
): Promise<Pick<Application, 'processors' | 'formerProcessors'>> {
  const { cardProcessor, stripe, urls, hasPortal } = config
  const pageOf = (linkId: string) =>
    hasPortal
      ? `${urls.portal ?? addresses.portal ?? ''}/pay/${linkId}`
      : `${urls.payments ?? addresses.payments ?? ''}/public/payment-links/${linkId}`
  const secretFor = (text: string) => personalData.fingerprint('checkout_secret', text)
  const sandbox = new SimulatedCardProcessor({ faults, pageOf, secretFor, chargesAtOnce: true })
  const simulated = new SimulatedCardProcessor({ faults, pageOf, secretFor, chargesAtOnce: false })
  if (stripe === null) return { processors: { live: simulated, sandbox }, formerProcessors: [] }
  // its SDK takes a while to load
  const { StripeCardProcessor } = await import('../../infrastructure/providers/card/stripe.ts')
  const all = [new StripeCardProcessor(stripe), simulated]
  const live = all.find(({ kind }) => kind === cardProcessor)!
  return { processors: { live, sandbox }, formerProcessors: all.filter((one) => one !== live) }
}
