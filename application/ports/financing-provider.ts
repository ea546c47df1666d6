import type { FinancingQuote } from '../../domain/payments/financing/financing-session-events.ts'

/**
 * What of a premium-financing provider the service uses. Its quotes, and what becomes of a request, arrive as notices.
 */
export interface FinancingProvider {
  /**
   * Asks for quotes.
   * @throws ProviderUnavailable: with `nothingHappened`, the provider knows nothing of it; else it may have it.
   *   ProviderRefused: it will not have it.
   */
  requestQuotes(request: QuoteRequest): Promise<{ readonly providerRequestId: string }>
  /**
   * The agreement of a quote, a PDF. It is neither signed nor a receipt.
   * @param signal aborts when nobody waits for it any more.
   * @throws ProviderUnavailable, ProviderRefused.
   */
  agreement(asked: AskedAgreement, signal: AbortSignal): Promise<Buffer>
}

export interface Insured {
  readonly business_name: string
  readonly address: string
  readonly city: string
  readonly state: string
  readonly zip_code: string
}

interface Financed {
  /** Our id of the session, which notices name again. */
  readonly sessionId: string
  readonly amountCents: number
  readonly insured: Insured
  readonly policyNumber: string
}

export interface QuoteRequest extends Financed {
  /** Aborts when the service stops, or waits no longer. */
  readonly signal: AbortSignal
}

export interface AskedAgreement extends Financed {
  readonly providerRequestId: string
  readonly quote: FinancingQuote
  /** Epoch milliseconds. */
  readonly at: number
}
