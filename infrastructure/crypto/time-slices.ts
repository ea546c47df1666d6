import { setImmediate as nextTurn } from 'node:timers/promises'

const SLICE_MS = 5

/**
 * Calls `work` for every item in order and lets other work of the process have its turn about
 * every 5 milliseconds, so that a large batch does not hold up small requests.
 */
export async function inTimeSlices<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => void,
): Promise<void> {
  let sliceEnd = performance.now() + SLICE_MS
  for (let index = 0; index < items.length; index += 1) {
    work(items[index]!, index)
    if (index % 16 === 15 && performance.now() >= sliceEnd) {
      await nextTurn()
      sliceEnd = performance.now() + SLICE_MS
    }
  }
}

/** {@link inTimeSlices} with results. */
export async function mapInTimeSlices<Item, Result>(
  items: readonly Item[],
  work: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results = new Array<Result>(items.length)
  await inTimeSlices(items, (item, index) => {
    results[index] = work(item, index)
  })
  return results
}
