/**
 * Long computations, cut into slices so that they hold up nothing else in the process: after about
 * {@link SLICE_MS} each lets the event loop go on. Of all that wait to continue, one continues per
 * turn of the event loop, in the order in which they asked: ten long computations delay a short
 * request by one slice, not by ten.
 */

/** Milliseconds that a computation keeps the event loop, about. */
const SLICE_MS = 5
/** Items between two looks at the time. */
const ITEMS_PER_LOOK = 16

const waiting: (() => void)[] = []

/** Lets others have their turn. Resolves in a later turn of the event loop, when those before have had one each. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resumeOne)
  })
}

function resumeOne(): void {
  const resume = waiting.shift()!
  // what is set up inside a callback of setImmediate runs in the turn after: I/O comes in between
  if (waiting.length > 0) setImmediate(resumeOne)
  resume()
}

/** Measures slices of one computation, or of several that share them. */
export class TimeSlice {
  #end = performance.now() + SLICE_MS
  #pause: Promise<void> | undefined

  /** Returns null while the slice lasts, else what to wait for before going on. */
  over(): Promise<void> | null {
    if (performance.now() < this.#end) return null
    this.#pause ??= this.#next()
    return this.#pause
  }

  async #next(): Promise<void> {
    await nextTurn()
    this.#end = performance.now() + SLICE_MS
    this.#pause = undefined
  }
}

/** Calls `work` for every item in order, in slices. */
export async function inTimeSlices<Item>(
  items: Iterable<Item>,
  work: (item: Item, index: number) => void,
): Promise<void> {
  const slice = new TimeSlice()
  let index = 0
  for (const item of items) {
    work(item, index)
    index += 1
    if (index % ITEMS_PER_LOOK === 0) {
      const pause = slice.over()
      if (pause) await pause
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

/** Runs a computation that yields wherever it may be interrupted, in slices. */
export async function runInTimeSlices<Result>(steps: Generator<void, Result, void>): Promise<Result> {
  const slice = new TimeSlice()
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    const pause = slice.over()
    if (pause) await pause
  }
}
