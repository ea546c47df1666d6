import { orThrow } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { changed } from '../../commands/verbs.ts'
import { failDebit } from './account-debits.ts'

/** The id of the debit of an installment, derived from the spelling of the first ids. @param number from 1. */
export function installmentDebitId(sessionId: string, number: number): string {
  return derivedId(sessionId, `instalment/${number}`)
}

/** Tells a session that its debit ended before any money moved: there is no plan without its down payment. */
export async function recordDebitFailed(
  app: Application,
  sessionId: string,
  debitId: string,
  context: CommandContext,
): Promise<void> {
  const command = { type: 'RecordDebitFailed', debitId, at: app.clock.now() } as const
  orThrow(await changed(app, paymentSession, sessionId, command, context))
}

/**
 * Tells a session that one of its debits came back. Where that disables its account its plan stops, and those of its
 * debits that no bank can have yet fail.
 */
export async function recordReturned(
  app: Application,
  sessionId: string,
  {
    debitId,
    return_code,
    disables,
  }: { readonly debitId: string; readonly return_code: string; readonly disables: boolean },
  context: CommandContext,
): Promise<void> {
  const command = {
    type: 'RecordDebitReturned',
    debitId,
    return_code,
    disables,
    at: app.clock.now(),
  } as const
  const session = orThrow(await changed(app, paymentSession, sessionId, command, context))
  if (!disables) return
  const installments = session.installments_created.map((number) => installmentDebitId(sessionId, number))
  for (const debitId of [session.debit?.leg_id ?? [], installments].flat()) {
    await failDebit(app, debitId, return_code, context)
  }
}
