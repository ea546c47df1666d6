import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'

/**
 * Makes a policy active that is in progress, and waits until it can be read as such. One that is active stays so.
 * @returns why it cannot be: it is cancelled, or its number is taken. The operator is alerted of that.
 */
export function activatePolicy(
  _app: Application,
  _policyId: string,
  _context: CommandContext,
): Promise<Policy | Rejection> {
  throw new Error('not built yet')
}
