/**
 * How often a generator is asked, and from which seed: in the gate a few times, always for the same values; with
 * `TEST_LONG` many times, for others in every run. A failure names its seed, and `TEST_SEED` gives it again.
 */

const FIXED = 20_261_128
const { TEST_LONG, TEST_SEED } = process.env
const seed = TEST_SEED ? Number(TEST_SEED) : TEST_LONG ? Math.floor(Math.random() * 2 ** 31) : FIXED

/** The settings of a property. @param gate runs in the gate. @param night runs with `TEST_LONG`. */
export function runs(gate = 100, night = 20 * gate): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: TEST_LONG ? night : gate, seed }
}
