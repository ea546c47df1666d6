import { CommandHandler } from '../../application/commands/command-handler.ts'
import type { EventRegistry } from '../../application/commands/event-registry.ts'
import type { MovableClock } from '../../application/ports/clock.ts'
import { type EventLog, WrongExpectedRevision } from '../../application/ports/event-log.ts'
import type { Notices } from '../../application/ports/notices.ts'
import type { EventOf } from '../../domain/kernel/event-type.ts'
import { VIRTUAL_CLOCK_ID, VirtualClockMoved, virtualClock } from '../../domain/operations/virtual-clock.ts'
import { systemClock } from './system-clock.ts'

const PAGE = 256

/** A clock that shows the last time recorded in the log and nothing else. */
export class VirtualClock implements MovableClock {
  readonly kind = 'virtual'
  readonly #notices: Notices
  #now: number

  private constructor(now: number, notices: Notices) {
    this.#now = now
    this.#notices = notices
  }

  /**
   * Opens the clock at the time that the log holds; at the very first start it is set to the
   * machine's time, which the log then holds.
   */
  static async open(log: EventLog, registry: EventRegistry, notices: Notices): Promise<VirtualClock> {
    const commands = new CommandHandler(log, registry, systemClock)
    const stored = await commands.load(virtualClock, VIRTUAL_CLOCK_ID)
    if (stored.state.now !== null) return new VirtualClock(stored.state.now, notices)
    try {
      const commandId = `${VIRTUAL_CLOCK_ID}/first-start`
      const events = [VirtualClockMoved.of({ to: systemClock.now() })]
      const first = await commands.appendAt(virtualClock, VIRTUAL_CLOCK_ID, stored, events, {
        actor: { type: 'system', id: 'virtual-clock' },
        tenantId: null,
        environment: null,
        correlationId: commandId,
        commandId,
      })
      return new VirtualClock(first.state.now!, notices)
    } catch (error) {
      // another process that started at the same moment has set it
      if (!(error instanceof WrongExpectedRevision)) throw error
      const set = await commands.load(virtualClock, VIRTUAL_CLOCK_ID)
      return new VirtualClock(set.state.now!, notices)
    }
  }

  now(): number {
    return this.#now
  }

  moveTo(epochMs: number): void {
    if (epochMs <= this.#now) return
    this.#now = epochMs
    this.#notices.wake('work')
  }

  /**
   * Follows moves that other processes make, until `signal` aborts.
   * @param onUnreadable hears of an event that cannot be read and is passed over.
   */
  async follow(
    log: EventLog,
    registry: EventRegistry,
    signal: AbortSignal,
    onUnreadable: (error: unknown) => void = () => undefined,
  ): Promise<void> {
    const after = await log.head()
    const commands = new CommandHandler(log, registry, this)
    // moves between opening and following
    const { state } = await commands.load(virtualClock, VIRTUAL_CLOCK_ID)
    if (state.now !== null) this.moveTo(state.now)
    for await (const page of log.subscribe({
      after,
      types: [VirtualClockMoved.name],
      pageSize: PAGE,
      signal,
    })) {
      for (const stored of page.events) {
        try {
          const { data } = registry.decode(stored) as unknown as EventOf<typeof VirtualClockMoved>
          this.moveTo(data.to)
        } catch (error) {
          // another program's: later moves count all the same
          onUnreadable(error)
        }
      }
    }
  }
}
