import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { WorkItem, WorkOutcome } from '../../application/followers/process-manager.ts'
import type { FaultPoint } from '../../application/ports/faults.ts'
import { moveClock, type RegistrationProcess } from './registrations.ts'

const HOUR = 3_600_000

/** Payload of work that goes through outages: since when a provider is away, epoch milliseconds. */
export interface Waiting {
  readonly away_since?: number | undefined
}

/** A piece of work that nobody has tried and that is due, at its last try unless `given` says otherwise. */
export function workItem<Payload>(
  given: Pick<WorkItem<Payload>, 'key' | 'payload'> & Partial<WorkItem<Payload>>,
): WorkItem<Payload> {
  return {
    processManager: 'test',
    kind: 'test',
    commandId: randomUUID(),
    attempt: 1,
    isLastTry: true,
    dueAt: 0,
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
  readonly attempt: (payload: Waiting) => Promise<WorkOutcome<Waiting>>
  /** Types of the events of what the work is about. */
  readonly types: () => Promise<readonly string[]>
  /** The event that operators are told by. */
  readonly heldUp: string
}

/**
 * Has a provider be away for hours: what waits for it is tried again every quarter of an hour, is told of once, after four
 * hours, and is done when the provider is back. Moves the clock.
 */
export async function expectToldOfOnce(
  { clock, faults }: Pick<RegistrationProcess['app'], 'clock' | 'faults'>,
  { provider, since, attempt, types, heldUp }: Outage,
): Promise<void> {
  const begun = await types()
  await faults.inject(provider, 'unreachable', 100)
  for (const [hours, told] of [
    [0, 0],
    [3.9, 0],
    [4, 1],
    [5, 1],
  ] as const) {
    moveClock({ clock }, since + hours * HOUR)
    expect(await attempt(hours === 0 ? {} : { away_since: since })).toEqual({
      outcome: 'again',
      at: clock.now() + HOUR / 4,
      payload: { away_since: since },
    })
    expect([hours, await types()]).toEqual([hours, [...begun, ...Array(told).fill(heldUp)]])
  }
  await faults.inject(provider, 'unreachable', 0)
  expect(await attempt({ away_since: since })).toEqual({ outcome: 'done' })
}
