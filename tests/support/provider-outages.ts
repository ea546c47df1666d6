import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { WorkItem, WorkOutcome } from '../../application/followers/process-manager.ts'
import type { HeldUp } from '../../application/followers/through-outages.ts'
import type { FaultPoint } from '../../application/ports/faults.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { moveClock, type RegistrationProcess } from './registrations.ts'

const HOUR = 3_600_000

/** A piece of work that nobody has tried and that is due, at its last try unless `given` says otherwise. */
export function workItem<Payload>(
  given: Pick<WorkItem<Payload>, 'key' | 'payload'> & Partial<Omit<WorkItem<Payload>, 'key' | 'payload'>>,
): WorkItem<Payload> {
  return {
    processManager: 'test',
    kind: 'test',
    commandId: randomUUID(),
    attempt: 1,
    isLastTry: true,
    dueAt: 0,
    awaySince: null,
    correlationId: 'test',
    causationId: 'test',
    tenantId: null,
    environment: null,
    signal: new AbortController().signal,
    freeKey: () => undefined,
    ...given,
  }
}

interface Outage {
  /** The provider that is away. */
  readonly provider: FaultPoint
  /** When it is first asked, epoch milliseconds; not before now. */
  readonly since: number
  /** Tries the work. */
  readonly attempt: (awaySince: number | null) => Promise<WorkOutcome<unknown>>
  /** Types of the events of what the work is about. */
  readonly types: () => Promise<readonly string[]>
  /** The alert that operators are told by. */
  readonly alert: HeldUp
}

/**
 * Has a provider be away for hours: what waits for it is tried again every quarter of an hour, raises one alert, after four
 * hours, and is done when the provider is back. Moves the clock.
 */
export async function expectAlertedOnce(
  { clock, faults, log }: Pick<RegistrationProcess['app'], 'clock' | 'faults' | 'log'>,
  { provider, since, attempt, types, alert }: Outage,
): Promise<void> {
  const begun = await types()
  const raised = async () =>
    (await log.readAll({ after: 0n, maxCount: 10_000, types: ['AlertRaised'] })).events
      .map(({ data }) => JSON.parse(data))
      .filter(({ about }) => isDeepStrictEqual(about, alert.about))
  await faults.inject(provider, 'unreachable', 100)
  for (const [hours, told] of [
    [0, 0],
    [3.9, 0],
    [4, 1],
    [5, 1],
  ] as const) {
    moveClock({ clock }, since + hours * HOUR)
    expect(await attempt(hours === 0 ? null : since)).toEqual({
      outcome: 'again',
      at: clock.now() + HOUR / 4,
      awaySince: since,
    })
    expect([hours, await raised()]).toEqual([hours, Array(told).fill({ ...alert, since: isoTime(since) })])
  }
  expect(await types()).toEqual(begun)
  await faults.inject(provider, 'unreachable', 0)
  expect(await attempt(since)).toEqual({ outcome: 'done' })
}
