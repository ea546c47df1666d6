import type { Rejection } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
} from '../../../domain/payments/financing/financing-session.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'

/** Closes a financing session for good. What the provider has already, it has. */
export function cancelFinancingSession(
  app: Application,
  { financing_session_id }: FinancingSession,
  context: CommandContext,
): Promise<FinancingSession | Rejection> {
  const command = { type: 'Cancel', at: app.clock.now() } as const
  return changed(app, financingSession, financing_session_id, command, context)
}
