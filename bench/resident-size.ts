import type { Figure } from './statistics.ts'

/**
 * Of sizes that were sampled, those of the second and of the last fifth of the time: by then everything has been used. As
 * many of each, so that they can be held against each other moment by moment.
 */
export function secondAndLastFifth(sizes: readonly number[]): {
  readonly early: readonly Figure[]
  readonly late: readonly Figure[]
} {
  const part = (n: number) =>
    sizes.slice(Math.floor((sizes.length * (n - 1)) / 5), Math.floor((sizes.length * n) / 5))
  const [early, late] = [part(2), part(5)]
  const length = Math.min(early.length, late.length)
  const figures = (values: readonly number[]) => values.slice(0, length).map((value) => ({ value }))
  return { early: figures(early), late: figures(late) }
}
