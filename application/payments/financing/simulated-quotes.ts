import { hash } from 'node:crypto'
import type { FinancingQuote } from '../../../domain/payments/financing/financing-session-events.ts'

/** What the simulated provider offers: the same for the same session, whenever it is asked. */

export const MOST_QUOTES = 20
/** Down payment in percent, monthly installments, and yearly rate in hundredths of a percent. */
const TERMS = [
  { downPercent: 25, installments: 9, rateBp: 895 },
  { downPercent: 20, installments: 10, rateBp: 950 },
  { downPercent: 15, installments: 11, rateBp: 1_025 },
] as const

/** @param amountCents what is financed, down payment included. @param count 1 to {@link MOST_QUOTES}. */
export function simulatedQuotes(
  sessionId: string,
  amountCents: number,
  count: number,
): readonly FinancingQuote[] {
  return Array.from({ length: count }, (_, index) => {
    const { downPercent, installments, rateBp } = TERMS[index % TERMS.length]!
    // later rounds of the same terms cost more
    const yearly = rateBp + 50 * Math.floor(index / TERMS.length)
    const down_payment_cents = Math.ceil((amountCents * downPercent) / 100)
    const financed_cents = amountCents - down_payment_cents
    // half of it is owed on the average
    const finance_charge_cents = Math.ceil((financed_cents * yearly * (installments + 1)) / (10_000 * 24))
    const owed = financed_cents + finance_charge_cents
    const installment_cents = Math.floor(owed / installments)
    return {
      quote_key: `q_${hash('sha256', `${sessionId}/quote/${index}`, 'hex').slice(0, 24)}`,
      down_payment_cents,
      financed_cents,
      finance_charge_cents,
      installments,
      installment_cents,
      last_installment_cents: owed - installment_cents * (installments - 1),
    }
  })
}
