import type { CommandContext } from '../ports/command-context.ts'
import { derivedId } from './event-registry.ts'

export type { CommandContext } from '../ports/command-context.ts'

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
