import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  type FinancingSessionCommand,
  financingSession,
  isUnsent,
} from '../../../domain/payments/financing/financing-session.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { technicalDeadline } from '../../commands/technical-deadlines.ts'
import { changed } from '../../commands/verbs.ts'
import { onceSettled } from './financing-sessions.ts'
import { simulatedQuotes } from './simulated-quotes.ts'

/** How long the provider waits for a request that is to be answered, in real milliseconds. */
const PATIENCE_MS = 10_000

/** What the simulated provider tells of a request. */
export type FinancingSimulation =
  | { readonly answer: 'quotes'; readonly count: number }
  | { readonly answer: 'hold' | 'expire' }
  /** Null: the notice of that amount; the amount that was quoted first. */
  | { readonly answer: 'down_payment'; readonly noticeId: string | null; readonly amountCents: number | null }

/** Simulates the provider. What does not fit how the request stands is refused, and changes nothing. */
export async function simulateFinancing(
  app: Application,
  sessionId: string,
  simulation: FinancingSimulation,
  context: CommandContext,
): Promise<FinancingSession | Rejection> {
  const { state } = await app.commands.load(financingSession, sessionId)
  if (!state) return reject('not_found', 'financing_session_not_found', 'There is no such financing session')
  // a busy worker may not have sent the request yet
  const answers = simulation.answer === 'quotes' || simulation.answer === 'hold'
  if (answers)
    await onceSettled(app, state, (one) => isUnsent(one, app.clock.now()), technicalDeadline(PATIENCE_MS))
  return changed(app, financingSession, sessionId, commandOf(state, simulation, app.clock.now()), context)
}

function commandOf(
  { financing_session_id, amount_cents, request }: FinancingSession,
  simulation: FinancingSimulation,
  at: number,
): FinancingSessionCommand {
  switch (simulation.answer) {
    case 'quotes': {
      const quotes = simulatedQuotes(financing_session_id, amount_cents, simulation.count)
      return { type: 'ReceiveQuotes', quotes, at }
    }
    case 'hold':
      return { type: 'Hold', at }
    case 'expire':
      return { type: 'Expire', by: 'provider', at }
    case 'down_payment': {
      const amountCents = simulation.amountCents ?? request?.quotes[0]?.down_payment_cents ?? 0
      const noticeId = simulation.noticeId ?? `dp_sim_${financing_session_id}_${amountCents}`
      return { type: 'ReportDownPayment', noticeId, amountCents, at }
    }
  }
}
