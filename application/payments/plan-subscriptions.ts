import type { Environment } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'

/** The monthly charges of a direct-billing plan whose down payment was paid. */
export interface PlanSubscription {
  readonly linkId: string
  readonly tenantId: string
  readonly environment: Environment
  readonly employerId: string
  readonly carrierId: string
  readonly policyId: string
  readonly amountCents: number
  readonly charges: number
  /** Epoch milliseconds: the first charge is one month after it, clamped. */
  readonly paidAt: number
  readonly paymentMethodId: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** Starts the subscription of a plan, once for a link. @returns its id. @throws ProviderUnavailable, ProviderRefused. */
export function startPlanSubscription(
  _app: Application,
  _plan: PlanSubscription,
  _context: CommandContext,
): Promise<string> {
  throw new Error('not built yet')
}
