import { expect } from 'vitest'
import { killTree } from '../support/chaos.ts'
import type { ShownEvent } from '../support/core.ts'
import { askOperator } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

/** A service whose whole tree is killed while it works, and started again on its data. */
export class MortalService {
  /** Those of the types that are kept, in the order of the log, as far as it was read. */
  readonly events: ShownEvent[] = []
  /** Kills while something was under way, and after it had ended. */
  readonly kills = { during: 0, after: 0 }
  readonly #start: () => Promise<RunningService>
  readonly #keeps: (type: string) => boolean
  #service: RunningService
  #count = 0
  #place: string | null = null

  private constructor(
    service: RunningService,
    start: () => Promise<RunningService>,
    keeps: (type: string) => boolean,
  ) {
    this.#service = service
    this.#start = start
    this.#keeps = keeps
  }

  /** @param keeps types of events that are kept. */
  static async start(
    options: { readonly dataDir: string; readonly env: Readonly<Record<string, string>> },
    keeps: (type: string) => boolean,
  ): Promise<MortalService> {
    const start = () => startService(options)
    return new MortalService(await start(), start, keeps)
  }

  /** Where it is now. */
  get service(): RunningService {
    return this.#service
  }

  /** Reads what is new in the log. @returns how many events it has. */
  async read(): Promise<number> {
    for (;;) {
      const query = new URLSearchParams({
        limit: '1000',
        ...(this.#place === null ? {} : { from: this.#place }),
      })
      const { status, body } = await askOperator(this.#service, 'GET', `/events?${query}`)
      expect(status).toBe(200)
      const page: readonly ShownEvent[] = body.data
      this.#count += page.length
      this.#place = page.length === 0 ? this.#place : String(page.at(-1)!.position)
      this.events.push(...page.filter(({ type }) => this.#keeps(type)))
      if (page.length === 0 || body.pagination.next === null) return this.#count
    }
  }

  /**
   * Does what may be repeated; kill -9 of the whole tree when so many more events are stored, or when it has ended, and
   * then it is repeated.
   */
  async killDuring<Result>(events: number, run: () => Promise<Result>): Promise<Result> {
    const goal = (await this.read()) + events
    let ended: 'well' | 'badly' | null = null
    const doing = run().then(
      () => {
        ended = 'well'
      },
      (error: unknown) => {
        ended = 'badly'
        return error
      },
    )
    while (ended === null && (await this.read()) < goal);
    // nobody has killed it yet
    if ((ended as string | null) === 'badly') throw await doing
    this.kills[ended === null ? 'during' : 'after'] += 1
    await killTree(this.#service)
    await doing
    this.#service = await this.#start()
    return run()
  }

  async stop(): Promise<void> {
    await this.#service.stop()
  }
}
