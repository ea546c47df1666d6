import { setTimeout as delay } from 'node:timers/promises'
import type { EventStoreServer } from '../support/eventstoredb.ts'
import type { Installation } from '../support/many-processes.ts'
import type { RunningService } from '../support/service.ts'

/** Between two attempts to start a process, in milliseconds. */
const START_AGAIN_MS = 500
const LAST_LINES = 15
/** Starts of a server that may fail before it is given up. */
const SERVER_STARTS = 5

interface Place {
  readonly roles: string
  service: RunningService | null
  frozen: boolean
}

/** Processes of an installation, kept running as a supervisor would: whoever ends is started again. */
export class SupervisedProcesses {
  /** Processes that ended although nobody killed them, with the last lines that they wrote. */
  readonly endedByThemselves: string[] = []
  /** Every line that processes wrote about an error, without time and process, and how often. */
  readonly complaints = new Map<string, number>()
  /** Starts that were refused, because a server was away. */
  refusedStarts = 0
  readonly #installation: Pick<Installation, 'start'>
  readonly #places: Place[]
  readonly #restarts = new Set<Promise<void>>()
  #ending = false

  constructor(installation: Pick<Installation, 'start'>, roles: readonly string[]) {
    this.#installation = installation
    this.#places = roles.map((each) => ({ roles: each, service: null, frozen: false }))
  }

  /** Starts them one after the other. */
  async start(): Promise<void> {
    for (const place of this.#places) this.#watch(place, await this.#installation.start(place.roles))
  }

  get size(): number {
    return this.#places.length
  }

  /** Processes with a role that are there, be they frozen. */
  running(role: string): RunningService[] {
    return this.#places
      .filter(({ roles, service }) => roles.split(',').includes(role) && service !== null)
      .map(({ service }) => service!)
  }

  /** kill -9, and a new start after some milliseconds. @returns the roles; null when it is not running just then. */
  async kill(place: number, startAfterMs: number): Promise<string | null> {
    const victim = this.#places[place]!
    const { service } = victim
    if (!service) return null
    victim.service = null
    await service.kill()
    this.#startAgain(victim, startAfterMs)
    return victim.roles
  }

  /** SIGSTOP, and SIGCONT after some milliseconds. @returns the roles; null when it cannot be frozen just then. */
  freeze(place: number, forMs: number): string | null {
    const victim = this.#places[place]!
    const { service } = victim
    if (!service || victim.frozen) return null
    victim.frozen = true
    service.process.kill('SIGSTOP')
    this.#remember(
      delay(forMs).then(() => {
        service.process.kill('SIGCONT')
        victim.frozen = false
      }),
    )
    return victim.roles
  }

  /** Waits until all are there and none is frozen. */
  async settle(): Promise<void> {
    while (this.#restarts.size > 0) await Promise.all(this.#restarts)
  }

  /** From here on processes may end. */
  async end(): Promise<void> {
    this.#ending = true
    await this.settle()
  }

  #startAgain(place: Place, afterMs: number): void {
    this.#remember(
      (async () => {
        await delay(afterMs)
        while (!this.#ending) {
          try {
            this.#watch(place, await this.#installation.start(place.roles))
            return
          } catch {
            this.refusedStarts += 1
            await delay(START_AGAIN_MS)
          }
        }
      })(),
    )
  }

  #watch(place: Place, service: RunningService): void {
    place.service = service
    service.process.once('exit', (code, signal) => {
      for (const line of service.output) this.#note(line)
      if (place.service !== service || this.#ending) return
      place.service = null
      this.endedByThemselves.push(
        `${place.roles}: exit code ${code}, signal ${signal}\n${service.output.slice(-LAST_LINES).join('\n')}`,
      )
      this.#startAgain(place, 0)
    })
  }

  #note(line: string): void {
    if (!line.includes('"level":"error"') && !line.includes('"level":"fatal"')) return
    const { time, pid, request_id, ...what } = JSON.parse(line)
    const text = JSON.stringify(what).slice(0, 600)
    this.complaints.set(text, (this.complaints.get(text) ?? 0) + 1)
  }

  #remember(work: Promise<void>): void {
    const kept: Promise<void> = work.finally(() => this.#restarts.delete(kept))
    this.#restarts.add(kept)
  }
}

/** Restarts a server that was killed: one that does not come up is killed and started again. */
export async function insistOnRestart(server: Pick<EventStoreServer, 'restart' | 'kill'>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await server.restart()
    } catch (error) {
      if (attempt === SERVER_STARTS) throw error
      await server.kill()
    }
  }
}
