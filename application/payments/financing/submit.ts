import { orThrow } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
  type SubmissionResult,
} from '../../../domain/payments/financing/financing-session.ts'
import { FinancingRequested } from '../../../domain/payments/financing/financing-session-events.ts'
import { policy } from '../../../domain/policies/policy.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { openedOne } from '../../commands/sealed-fields.ts'
import { within } from '../../commands/verbs.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'

/**
 * Sends a request for quotes to the provider. That it is about to be sent is recorded before: a process that finds a request
 * that was begun to be sent and has no end does not send it again, but has it looked at.
 * @throws ProviderUnavailable when the provider was not reached: it is to be tried again.
 */
export async function submitRequest(
  app: Application,
  sessionId: string,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  const before = (await app.commands.load(financingSession, sessionId)).state
  if (!before?.request) return
  // each attempt is a command of its own; the same one again, in another process, begins nothing
  const ordinal = before.request.attempts
  const scoped = { ...within(context, before), ordinal }
  const command = { type: 'BeginSubmission', at: app.clock.now() } as const
  const begun = orThrow(await app.commands.execute(financingSession, sessionId, command, scoped))
  if (!begun.events.some(({ type }) => type === 'FinancingSubmissionBegun')) {
    const { request } = begun.state!
    if (request?.is_sending) throw new Error('Another process is sending the request')
    return
  }
  const session = begun.state!
  const { outcome, error } = await sent(app, session, signal)
  orThrow(
    await app.commands.execute(
      financingSession,
      sessionId,
      { type: 'EndSubmission', attempt: session.request!.attempts, outcome, at: app.clock.now() },
      scoped,
    ),
  )
  if (error) throw error
}

async function sent(
  app: Application,
  session: FinancingSession,
  signal: AbortSignal,
): Promise<{ readonly outcome: SubmissionResult; readonly error?: unknown }> {
  const financed = await financedBy(app, session)
  try {
    const { providerRequestId } = await app.financing.requestQuotes({ ...financed, signal })
    return { outcome: { result: 'submitted', providerRequestId } }
  } catch (error) {
    if (error instanceof ProviderUnavailable && error.nothingHappened) {
      return { outcome: { result: 'unsent' }, error }
    }
    const reason = error instanceof ProviderRefused ? 'refused' : 'no_answer'
    return { outcome: { result: 'held', reason } }
  }
}

/** What a provider is sent of a session, with the insured opened. */
export async function financedBy(
  { personalData, commands }: Pick<Application, 'personalData' | 'commands'>,
  { financing_session_id, request, amount_cents, policy_id }: FinancingSession,
) {
  const sealed = { financing_session_id, insured: request!.insured }
  const { insured } = await openedOne(personalData, FinancingRequested, sealed)
  const { policy_number } = (await commands.load(policy, policy_id)).state!
  return {
    sessionId: financing_session_id,
    amountCents: amount_cents,
    insured,
    policyNumber: policy_number,
  }
}
