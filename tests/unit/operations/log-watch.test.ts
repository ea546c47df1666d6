import { afterEach, expect, test } from 'vitest'
import { type LogWatch, watchLog } from '../../../interfaces/service/log-watch.ts'

let watch: LogWatch | undefined
afterEach(() => watch?.stop())

/** Watches with looks that find one thing after another, the last one for ever. @returns waits for so many looks. */
function watched(finds: readonly (string | null | Error)[]): (looks: number) => Promise<void> {
  let count = 0
  let told: () => void = () => undefined
  watch = watchLog(
    async () => {
      const found = finds[Math.min(count, finds.length - 1)]!
      count += 1
      told()
      if (found instanceof Error) throw found
      return found
    },
    { intervalMs: 1 },
  )
  return async (looks) => {
    while (count < looks) {
      await new Promise<void>((done) => {
        told = done
      })
    }
  }
}

const AWAY = new Error('away')

test.each([
  ['nothing is wrong', [null, null, AWAY, AWAY, null]],
  ['it is wrong for a moment, as with a new leader', ['x', 'x', 'x', 'x', null, 'x', 'x', 'x', 'x', null]],
])('nothing is told when %s', async (_name, finds) => {
  const told: string[] = []
  const looks = watched(finds)
  void watch!.problem.then((problem) => told.push(problem))
  await looks(30)
  expect(told).toEqual([])
})

test('what stays wrong is told, an outage in between notwithstanding', async () => {
  watched([null, AWAY, 'a', 'b', AWAY, 'c', 'd', 'e', 'f'])
  expect(await watch!.problem).toBe('e')
})
