import { type FinancingSession, financingSession } from '../../domain/financing/financing-session.ts'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { changed } from '../command-handling/verbs.ts'

/** Closes a financing session for good. What the provider has already, it has. */
export function cancelFinancingSession(
  app: Application,
  { financing_session_id }: FinancingSession,
  context: CommandContext,
): Promise<FinancingSession | Rejection> {
  const command = { type: 'Cancel', at: app.clock.now() } as const
  return changed(app, financingSession, financing_session_id, command, context)
}
