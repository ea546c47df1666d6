import type { Aggregate, Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from './application.ts'
import type { CommandContext } from './command-context.ts'

type Parts = Pick<Application, 'commands' | 'readModels'>

/** Whose an aggregate is; one without an environment spans both. */
export interface Owned {
  readonly tenant_id: string
  readonly environment?: Environment
}

/** The context within the tenant and environment of an aggregate. */
export function within(context: CommandContext, { tenant_id, environment }: Owned): CommandContext {
  return { ...context, tenantId: tenant_id, environment: environment ?? null }
}

/** The state of an aggregate that must be there. @throws when it is not. */
export async function existing<State, Command, Event extends DomainEvent>(
  { commands }: Pick<Application, 'commands'>,
  decider: Decider<State | null, Command, Event>,
  id: string,
): Promise<State> {
  const { state } = await commands.load(decider, id)
  if (state === null) throw new Error(`There is no ${decider.category} ${id}`)
  return state
}

/**
 * Changes an aggregate under its own tenant and environment, and waits until the change can be read.
 * @returns its state, or the rejection; what does not exist is not found.
 */
export async function changed<
  State extends Owned,
  Command extends { readonly type: string },
  Event extends DomainEvent,
>(
  app: Parts,
  decider: Decider<State | null, Command, Event>,
  id: string,
  command: Command,
  context: CommandContext,
): Promise<State | Rejection> {
  const { state } = await app.commands.load(decider, id)
  const scoped = state ? within(context, state) : context
  return readable(app, decider, await app.commands.execute(decider, id, command, scoped))
}

/** The state that a command left behind, once it can be read. */
export async function readable<State>(
  { readModels }: Pick<Application, 'readModels'>,
  aggregate: Pick<Aggregate, 'events'>,
  outcome: { readonly state: State | null; readonly position: bigint | null } | Rejection,
): Promise<State | Rejection> {
  if (isRejection(outcome)) return outcome
  if (outcome.position !== null) await readModels.awaitProjections(aggregate, outcome.position)
  return outcome.state!
}
