import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { orThrow } from '../../domain/kernel/rejection.ts'
import { type ProcessClockEvent, processClock } from '../../domain/operations/process-clock.ts'
import { type HeldBackRebuild, readModelRebuild } from '../../domain/operations/read-model-rebuild.ts'
import type { Application } from '../commands/application.ts'
import { newContext } from '../commands/command-context.ts'

/** Alerts about the machinery itself: what is recorded here raises them. */
interface Parts {
  readonly commands: Application['commands']
  readonly randomness: Application['randomness']
}

/** Calls a person to a rebuilt read model that does not switch by itself, once for each. */
export async function recordHeldBack(parts: Parts, data: HeldBackRebuild): Promise<void> {
  await record(parts, readModelRebuild, data.projection, { type: 'HoldBack', data })
}

/** Calls a person when the clock of a process differs too much. @returns whether it does, as is recorded. */
export async function recordClock(parts: Parts, data: ProcessClockEvent['data']): Promise<boolean> {
  return (await record(parts, processClock, data.process_id, { type: 'Compare', data })).differs
}

async function record<State, Command extends { readonly type: string }, Event extends DomainEvent>(
  { commands, randomness }: Parts,
  decider: Decider<State, Command, Event>,
  id: string,
  command: Command,
): Promise<State> {
  const context = newContext({ randomness }, { type: 'system', id: 'machinery' }, randomness.id())
  return orThrow(await commands.execute(decider, id, command, context)).state
}
