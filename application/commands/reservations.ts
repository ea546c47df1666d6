import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { type ReservationKind, reservation } from '../../domain/uniqueness/reservation.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-handler.ts'
import type { PersonalData } from '../ports/personal-data.ts'

/** A value that one owner at a time may hold. */
export interface ReservedValue {
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

/**
 * Service time after which a reservation whose owner never came into being is given up: the process
 * that made it died between the two appends.
 */
const ABANDONED_AFTER_MS = 10 * 60_000

/**
 * Reserves a value for an owner. A holder that has lost its claim is replaced.
 * @param hasLost `true` when the present holder has lost its claim, `null` when there is no such holder.
 * @returns null when the value is the owner's now, else the rejection.
 */
export async function reserve(
  app: Pick<Application, 'commands' | 'log' | 'registry' | 'clock'>,
  value: ReservedValue,
  ownerId: string,
  hasLost: (holderId: string) => Promise<boolean | null>,
  context: CommandContext,
): Promise<Rejection | null> {
  const { state } = await app.commands.load(reservation, value.id)
  const holder = state.owner_id
  let replaces: string | undefined
  if (holder !== null && holder !== ownerId) {
    const lost = (await hasLost(holder)) ?? (await isAbandoned(app, value.id))
    if (lost) replaces = holder
  }
  const { kind, fingerprint } = value
  const data = { kind, fingerprint, owner_id: ownerId }
  const outcome = await app.commands.execute(
    reservation,
    value.id,
    replaces === undefined ? { type: 'Reserve', data } : { type: 'Reserve', data, replaces },
    { ...context, commandId: `${context.commandId}/reserve/${kind}` },
  )
  return isRejection(outcome) ? outcome : null
}

/** Gives a value back, if the owner holds it. */
export async function release(
  app: Pick<Application, 'commands'>,
  value: ReservedValue,
  ownerId: string,
  context: CommandContext,
): Promise<void> {
  const { kind, fingerprint } = value
  await app.commands.execute(
    reservation,
    value.id,
    { type: 'Release', data: { kind, fingerprint, owner_id: ownerId } },
    { ...context, commandId: `${context.commandId}/release/${kind}` },
  )
}

async function isAbandoned(
  app: Pick<Application, 'log' | 'registry' | 'clock'>,
  reservationId: string,
): Promise<boolean> {
  const [last] = await app.log.readStream(`${reservation.category}-${reservationId}`, {
    direction: 'backwards',
    maxCount: 1,
  })
  if (!last) return false
  const reservedAt = Date.parse(app.registry.decode(last).metadata.recorded_at)
  return app.clock.now() - reservedAt > ABANDONED_AFTER_MS
}
