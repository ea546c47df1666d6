/** The middle value; the mean of the two middle ones of an even number. @throws RangeError when there is none. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('the median of nothing')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The value that a share (0 to 1) of all values does not exceed; 0 of no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}

/** What the rounds of all runs say together. */
export interface Spread {
  readonly median: number
  readonly lowest: number
  readonly highest: number
}

/** @throws RangeError when there is no value. */
export function spread(values: readonly number[]): Spread {
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) }
}

/** What is told beside the value of a round: latencies in milliseconds, answers and lost connections per second. */
export type Beside = Readonly<Partial<Record<'p50' | 'p99' | 'served' | 'refused' | 'lost', number>>>

/** How one round went, in the unit of its row. */
export interface Figure extends Beside {
  readonly value: number
}

/** One way of doing a piece of work: runs it once and tells how it went. */
export type Round = (round: number) => Promise<Figure>

/**
 * Runs every contender once per round, in turns, so that what else the machine does and what it has warmed up falls
 * on all of them alike. The first contender of a round changes from round to round.
 * @returns what was measured, by round.
 */
export async function inTurns<Name extends string>(
  rounds: number,
  contenders: Readonly<Record<Name, Round>>,
): Promise<Record<Name, Figure[]>> {
  const names = Object.keys(contenders) as Name[]
  const measured = new Map<Name, Figure[]>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(round + turn) % names.length]!
      globalThis.gc?.()
      measured.get(name)!.push(await contenders[name](round))
    }
  }
  return Object.fromEntries(measured) as Record<Name, Figure[]>
}

/** Of two ways of doing a peer's work, the faster one of each round. */
export function fasterOf(one: readonly Figure[], other: readonly Figure[]): Figure[] {
  return one.map((figure, round) => (figure.value >= other[round]!.value ? figure : other[round]!))
}

/**
 * Runs `work` for the numbers 0 to `total` - 1, at most `concurrency` at once.
 * @returns how many per second went through, and how long one took in milliseconds.
 */
export async function throughput(
  total: number,
  concurrency: number,
  work: (index: number) => Promise<unknown>,
): Promise<Required<Pick<Figure, 'value' | 'p50' | 'p99'>>> {
  const times: number[] = []
  let next = 0
  const lane = async () => {
    while (next < total) {
      const index = next
      next += 1
      const begun = performance.now()
      await work(index)
      times.push(performance.now() - begun)
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: Math.min(concurrency, total) }, lane))
  const value = (total / (performance.now() - started)) * 1000
  return { value, p50: percentile(times, 0.5), p99: percentile(times, 0.99) }
}

/** Numbers from 0 to 1 that are the same in every run. */
export function sameRandoms(): () => number {
  let state = 1
  return () => {
    state = Math.imul(state, 48_271) >>> 0
    return ((state ^ (state >>> 15)) >>> 0) / 2 ** 32
  }
}

/** What a measurement has to reach. Ratios are ours to the peer's. */
export type Target =
  | { readonly kind: 'at least'; readonly ratio: number; readonly unit: 'times' | 'percent' }
  | { readonly kind: 'at most'; readonly ratio: number }
  | { readonly kind: 'below'; readonly value: number }
  | { readonly kind: 'none' }

/** With fewer rounds a range says nothing. */
const DECIDING_ROUNDS = 3

/**
 * Whether a target is met: undecided where the rounds do not agree on it, or are fewer than three.
 * @param values of all rounds and runs: ratios to the peer, or of absolute targets what was measured.
 */
export function verdict(target: Target, values: readonly number[]): 'met' | 'MISSED' | 'undecided' | '' {
  if (target.kind === 'none') return ''
  if (values.length < DECIDING_ROUNDS) return 'undecided'
  const { lowest, highest } = spread(values)
  const [isLowMet, isHighMet] = [isMet(target, lowest), isMet(target, highest)]
  if (isLowMet !== isHighMet) return 'undecided'
  return isLowMet ? 'met' : 'MISSED'
}

function isMet(target: Exclude<Target, { kind: 'none' }>, value: number): boolean {
  switch (target.kind) {
    case 'at least':
      return value >= target.ratio
    case 'at most':
      return value <= target.ratio
    case 'below':
      return value < target.value
  }
}
