import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Faults } from '../../../application/ports/faults.ts'
import type {
  AskedAgreement,
  FinancingProvider,
  QuoteRequest,
} from '../../../application/ports/financing-provider.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'
import { dollars } from '../../../domain/kernel/money.ts'
import { pdfOf } from './pdf.ts'

/** How long it lets a caller wait at a hold, and how often it looks, in real milliseconds. */
const HOLD = { mostMs: 30_000, everyMs: 20 } as const

/**
 * Stands for a financing provider: nothing is financed. It keeps nothing; quotes and notices are simulated by operators
 * (`application/payments/financing/simulate-financing.ts`).
 */
export class SimulatedFinancingProvider implements FinancingProvider {
  readonly #faults: Pick<Faults, 'take' | 'holding'>

  constructor(faults: Pick<Faults, 'take' | 'holding'>) {
    this.#faults = faults
  }

  async requestQuotes({ sessionId, signal }: QuoteRequest) {
    await this.#meetFaults(signal)
    const providerRequestId = `fr_sim_${hash('sha256', `request/${sessionId}`, 'hex').slice(0, 24)}`
    return { providerRequestId }
  }

  async agreement(asked: AskedAgreement, signal: AbortSignal) {
    await this.#meetFaults(signal)
    return agreementOf(asked)
  }

  async #meetFaults(signal: AbortSignal): Promise<void> {
    const deadline = performance.now() + HOLD.mostMs
    while (await this.#faults.holding('financing')) {
      if (performance.now() > deadline) throw noAnswer()
      await delay(HOLD.everyMs, null, { signal })
    }
    const fault = await this.#faults.take('financing', ['unreachable', 'timeout', 'decline'])
    if (fault === 'unreachable') {
      throw new ProviderUnavailable('The financing provider could not be reached', { nothingHappened: true })
    }
    if (fault === 'timeout') throw noAnswer()
    if (fault === 'decline') throw new ProviderRefused('The financing provider declined')
  }
}

function noAnswer(): ProviderUnavailable {
  return new ProviderUnavailable('The financing provider did not answer in time')
}

function agreementOf({ insured, policyNumber, amountCents, quote, providerRequestId, at }: AskedAgreement) {
  const text = (line: string) => ({ as: 'text', text: line }) as const
  const heading = (line: string) => ({ as: 'heading', text: line }) as const
  const title = 'Premium finance agreement'
  return pdfOf(title, at, [
    { as: 'title', text: title },
    text('TEST - made by a simulated provider. Nothing is financed by it.'),
    text('An agreement to be signed: neither a signed agreement nor a receipt.'),
    heading('Insured'),
    text(insured.business_name),
    text(`${insured.address}, ${insured.city}, ${insured.state} ${insured.zip_code}`),
    text(`Policy ${policyNumber}`),
    heading('Terms'),
    text(`Total premium and fees: ${dollars(amountCents)}`),
    text(`Down payment: ${dollars(quote.down_payment_cents)}`),
    text(`Amount financed: ${dollars(quote.financed_cents)}`),
    text(`Finance charge: ${dollars(quote.finance_charge_cents)}`),
    text(
      `${quote.installments} monthly installments of ${dollars(quote.installment_cents)}, ` +
        `the last one of ${dollars(quote.last_installment_cents)}`,
    ),
    heading('Reference'),
    text(`Request ${providerRequestId}, quote ${quote.quote_key}`),
    heading('Signature of the insured'),
    text('Date and signature: ____________________________________________'),
  ])
}
