/** Random choices that a seed repeats. */
export interface SeededRandom {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  pick<T>(choices: readonly T[]): T
  /** A generator of its own, whose choices do not depend on how often others choose. */
  branch(): SeededRandom
}

/** Mulberry32. @param seed a whole number of 32 bits. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    between,
    pick: (choices) => choices[between(0, choices.length - 1)]!,
    branch: () => seededRandom(between(0, 2 ** 32 - 1)),
  }
}
