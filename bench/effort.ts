/** How much a run does: all of it, or so little that it only shows that everything works. */
export interface Effort {
  /** @param usual rounds of a whole run. */
  rounds(usual: number): number
  /** @param usual seconds of a load in a whole run. */
  seconds(usual: number): number
  /**
   * @param usual number of things (appends, streams, files) in a whole run, a multiple of `of`.
   * @returns a multiple of `of`.
   */
  amount(usual: number, of?: number): number
  /** How long the mixed load of `mixed-load` lasts, in seconds. */
  readonly mixedLoadSeconds: number
  /** How long a load of webhooks, or of the payroll calendar, counts, in seconds. */
  readonly loadSeconds: number
  /** Events of the log that is rebuilt from, or verified. */
  readonly logEvents: number
  /** Debits that are searched among, a multiple of 10. */
  readonly searchedDebits: number
}

/**
 * @param options.minutes of the mixed load; default 5, of a quick run a quarter.
 * @param options.seconds of a load of webhooks or of the payroll calendar; default 60, of a quick run 5.
 * @param options.events of a log that is rebuilt from or verified; default 200,000, of a quick run 20,000.
 */
export function effort(options: {
  quick: boolean
  minutes?: number
  seconds?: number
  events?: number
}): Effort {
  const { quick, minutes = quick ? 0.25 : 5, seconds = quick ? 5 : 60 } = options
  const { events = quick ? 20_000 : 200_000 } = options
  return {
    rounds: (usual) => (quick ? 1 : usual),
    seconds: (usual) => (quick ? Math.min(usual, 1) : usual),
    amount: (usual, of = 1) => (quick ? Math.ceil(usual / 10 / of) * of : usual),
    mixedLoadSeconds: minutes * 60,
    loadSeconds: seconds,
    logEvents: events,
    searchedDebits: quick ? 20_000 : 1_000_000,
  }
}
