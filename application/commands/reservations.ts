import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import {
  type ReservationCommand,
  type ReservationKind,
  reservation,
} from '../../domain/kernel/reservation.ts'
import type { PersonalData } from '../ports/personal-data.ts'
import type { Application } from './application.ts'
import type { CommandContext } from './command-context.ts'
import type { Reads } from './command-handler.ts'
import { derivedId } from './event-registry.ts'

/** A value that one owner at a time may hold. */
interface ReservedValue {
  readonly kind: ReservationKind
  readonly fingerprint: string
  /** Id of the reservation's stream. */
  readonly id: string
}

/** The reservation of a FEIN: one employer per FEIN in an environment, across all tenants. */
export function feinReservation(
  personalData: PersonalData,
  environment: Environment,
  fein: string,
): ReservedValue {
  const fingerprint = personalData.fingerprint('fein', fein)
  return { kind: 'fein', fingerprint, id: `fein_${environment}_${fingerprint}` }
}

/** The reservation of a policy number: one active policy per number, tenant and environment. */
export function policyNumberReservation(
  personalData: PersonalData,
  tenantId: string,
  environment: Environment,
  policyNumber: string,
): ReservedValue {
  const fingerprint = personalData.fingerprint('policy_number', policyNumber)
  return { kind: 'policy_number', fingerprint, id: `policy_number_${tenantId}_${environment}_${fingerprint}` }
}

/** The reservation of an agent's key, by which a presented key leads to its credential. */
export function agentKeyReservation(keyHash: string): ReservedValue {
  const fingerprint = keyHash.slice(0, 24)
  return { kind: 'agent_key', fingerprint, id: `agent_key_${fingerprint}` }
}

/** The reservation of a host on the web, with its port, for the tenant whose pages alone it shows. */
export function webHostReservation(personalData: PersonalData, host: string): ReservedValue {
  const fingerprint = personalData.fingerprint('web_host', host)
  return { kind: 'web_host', fingerprint, id: `web_host_${fingerprint}` }
}

/** The future owner of a value: the aggregate that a command is about to create. */
interface NewHolder<State, Command, Event extends DomainEvent> {
  readonly decider: Decider<State | null, Command, Event>
  /** Type of the command that creates it. */
  readonly creates: string
  /** The id that it has unless the value waits for another. */
  readonly id: string
  /** Whether a holder that exists has lost its claim, as an expired policy has. */
  readonly hasLost: (holder: State) => boolean
}

/** Whether a value is held by another than the aggregate that the context's command creates. Nothing is stored. */
export async function isTaken<State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands'>,
  value: ReservedValue,
  holder: NewHolder<State, Command, Event>,
  context: CommandContext,
): Promise<boolean> {
  return (await holdingOf(app, value, holder, context)) === 'taken'
}

/**
 * Reserves a value for an aggregate that the context's command creates next. A reservation is an id:
 * the command that creates the aggregate of that id holds the value, and of several that try the aggregate's stream
 * lets one win. One that was left without its aggregate, because its command died, is thus open to
 * everybody at once, and cannot be lost to a command that goes on late.
 * @returns the id to create the aggregate under; null when the value is held by another.
 */
export async function reserve<State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands'>,
  value: ReservedValue,
  holder: NewHolder<State, Command, Event>,
  context: CommandContext,
): Promise<string | null> {
  const holding = await holdingOf(app, value, holder, context)
  if (holding === 'taken') return null
  if ('createAs' in holding) return holding.createAs
  const { kind, fingerprint } = value
  const data = { kind, fingerprint, owner_id: holder.id }
  const { replaces } = holding
  const reserving = { type: 'Reserve', data, ...(replaces !== null && { replaces }) } as const
  const outcome = await decideNow(app, value, reserving, context)
  return !isRejection(outcome) && outcome.state.owner_id === holder.id ? holder.id : null
}

/**
 * Reserves a value for an aggregate that is there already. It takes none that was left without its aggregate: the command
 * that reserved it may still go on.
 * @returns the present owner of the value: the aggregate, or another one that is in the way.
 */
export async function reserveFor<State, Command, Event extends DomainEvent>(
  app: Pick<Application, 'commands'>,
  value: ReservedValue,
  { decider, id, hasLost }: Omit<NewHolder<State, Command, Event>, 'creates'>,
  context: CommandContext,
): Promise<string> {
  const holder = await holderOf(app, value)
  if (holder === id) return id
  if (holder !== null) {
    const { state } = await app.commands.load(decider, holder)
    if (state === null || !hasLost(state)) return holder
  }
  const { kind, fingerprint } = value
  const data = { kind, fingerprint, owner_id: id }
  const reserving = { type: 'Reserve', data, ...(holder !== null && { replaces: holder }) } as const
  const outcome = await decideNow(app, value, reserving, context)
  if (!isRejection(outcome) && outcome.state.owner_id === id) return id
  // another command was faster
  const faster = await holderOf(app, value)
  // and has given it back since
  return faster ?? reserveFor(app, value, { decider, id, hasLost }, context)
}

/** The owner that a value is reserved for; null when it is free. */
export async function holderOf({ commands }: Reads, value: ReservedValue): Promise<string | null> {
  return (await commands.load(reservation, value.id)).state.owner_id
}

/** How a value stands for its future owner: another's, reserved under an id, or to be reserved. */
async function holdingOf<State, Command, Event extends DomainEvent>(
  { commands }: Pick<Application, 'commands'>,
  value: ReservedValue,
  { decider, creates, id, hasLost }: NewHolder<State, Command, Event>,
  context: CommandContext,
): Promise<'taken' | { readonly createAs: string } | { readonly replaces: string | null }> {
  const isOurs = (one: string) => commands.isDone(decider, one, creates, context)
  const own = await commands.load(decider, id)
  // created by an earlier attempt under the same command, or by another one in its place
  if (own.state !== null) return (await isOurs(id)) ? { createAs: id } : 'taken'

  const holder = (await commands.load(reservation, value.id)).state.owner_id
  if (holder === null) return { replaces: null }
  const { state } = await commands.load(decider, holder)
  if (state === null || (await isOurs(holder))) return { createAs: holder }
  return hasLost(state) ? { replaces: holder } : 'taken'
}

/** Gives a value back, if the owner holds it. */
export async function release(
  app: Pick<Application, 'commands'>,
  value: ReservedValue,
  ownerId: string,
  context: CommandContext,
): Promise<void> {
  const { kind, fingerprint } = value
  await decideNow(app, value, { type: 'Release', data: { kind, fingerprint, owner_id: ownerId } }, context)
}

/**
 * Reserves or releases a value, by its present owner. A command that once reserved it must not count as done where another
 * has given it back since: at each revision of the reservation it is another one.
 */
async function decideNow(
  { commands }: Pick<Application, 'commands'>,
  value: ReservedValue,
  command: ReservationCommand,
  context: CommandContext,
) {
  const { revision } = await commands.load(reservation, value.id)
  const commandId = derivedId(context.commandId, `${command.type}/${revision}`)
  return commands.execute(reservation, value.id, command, { ...context, commandId })
}
