import type { Environment } from '../../domain/kernel/ids.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'

/** The employer's customer at the card processor, null when it has none. */
export function customerOf(_app: Pick<Application, 'commands'>, _employerId: string): Promise<string | null> {
  throw new Error('not built yet')
}

/**
 * The employer's customer at the card processor, which the first one who asks creates.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export function ensureCustomer(
  _app: Application,
  _employer: {
    readonly employerId: string
    readonly tenantId: string
    readonly environment: Environment
    readonly name: string
    readonly email: string
  },
  _context: CommandContext,
): Promise<string> {
  throw new Error('not built yet')
}
