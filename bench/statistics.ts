/** The middle value; the mean of the two middle ones of an even number. @throws RangeError when there is none. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('the median of nothing')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** One way of doing a piece of work: runs it once and tells how it went, as a rate or a duration. */
export type Round = (round: number) => Promise<number>

/**
 * Runs every contender once per round, in turns, so that what else the machine does and what it has warmed up falls
 * on all of them alike. The first contender of a round changes from round to round.
 * @returns the median of each contender's rounds.
 */
export async function inTurns<Name extends string>(
  rounds: number,
  contenders: Readonly<Record<Name, Round>>,
): Promise<Record<Name, number>> {
  const measured = await eachInTurns(rounds, contenders)
  const medians = Object.entries<number[]>(measured).map(([name, values]) => [name, median(values)])
  return Object.fromEntries(medians) as Record<Name, number>
}

/** The median of what two contenders of {@link eachInTurns} were to each other in each round. */
export function medianRatio(values: readonly number[], others: readonly number[]): number {
  return median(values.map((value, round) => value / others[round]!))
}

/** Like {@link inTurns}. @returns what was measured, by round. */
export async function eachInTurns<Name extends string>(
  rounds: number,
  contenders: Readonly<Record<Name, Round>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contenders) as Name[]
  const measured = new Map<Name, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(round + turn) % names.length]!
      globalThis.gc?.()
      measured.get(name)!.push(await contenders[name](round))
    }
  }
  return Object.fromEntries(measured) as Record<Name, number[]>
}

/**
 * Runs `work` for the numbers 0 to `total` - 1, at most `concurrency` at once.
 * @returns how many per second went through.
 */
export async function throughput(
  total: number,
  concurrency: number,
  work: (index: number) => Promise<unknown>,
): Promise<number> {
  let next = 0
  const lane = async () => {
    while (next < total) {
      const index = next
      next += 1
      await work(index)
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: Math.min(concurrency, total) }, lane))
  return (total / (performance.now() - started)) * 1000
}

/** What a measurement has to reach. */
export type Target =
  | { readonly kind: 'at least'; readonly ratio: number; readonly unit: 'times' | 'percent' }
  | { readonly kind: 'below'; readonly value: number; readonly unit: 's' | 'ms' | 'MiB' }
  | { readonly kind: 'none' }

/** Whether a target is met. @param value the ratio to the peer, or of absolute targets the measured value. */
export function verdict(target: Target, value: number): 'met' | 'MISSED' | '' {
  if (target.kind === 'none') return ''
  const met = target.kind === 'at least' ? value >= target.ratio : value < target.value
  return met ? 'met' : 'MISSED'
}
