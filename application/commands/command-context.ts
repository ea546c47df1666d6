import type { Environment } from '../../domain/kernel/ids.ts'
import type { Actor, CommandContext } from '../ports/command-context.ts'
import type { Randomness } from '../ports/randomness.ts'
import { derivedId } from './event-registry.ts'

export type { CommandContext } from '../ports/command-context.ts'

/**
 * The context of a command with a new command id.
 * @param correlationId of the request that it goes back to.
 * @param whose tenant and environment, where they are known beforehand.
 */
export function newContext(
  { randomness }: { readonly randomness: Pick<Randomness, 'commandId'> },
  actor: Actor,
  correlationId: string,
  whose: { readonly tenant_id?: string; readonly environment?: Environment } = {},
): CommandContext {
  const { tenant_id: tenantId = null, environment = null } = whose
  return { actor, tenantId, environment, correlationId, commandId: randomness.commandId() }
}

/** The id of one step of a request: the same in every attempt, and no other step's. */
export function commandIdOf(
  { commandId, ordinal = 0 }: CommandContext,
  stream: string,
  type: string,
): string {
  return derivedId(commandId, `${stream}/${type}/${ordinal}`)
}

/** The id of what a request creates: every attempt has the same one. */
export function createdId(
  { commandId }: Pick<CommandContext, 'commandId'>,
  { category }: { readonly category: string },
): string {
  return derivedId(commandId, category)
}
