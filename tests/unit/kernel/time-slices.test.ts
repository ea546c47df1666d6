import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { nextTurn, runInTimeSlices } from '../../../application/commands/time-slices.ts'

describe('turns of the event loop', () => {
  it('are given to one waiting computation each, in the order in which they asked', async () => {
    const order: string[] = []
    const computation = async (name: string) => {
      for (let step = 1; step <= 3; step += 1) {
        await nextTurn()
        order.push(`${name}${step}`)
      }
    }
    const others = async () => {
      for (let step = 1; step <= 9; step += 1) {
        await turn()
        order.push('.')
      }
    }
    await Promise.all([computation('a'), computation('b'), computation('c'), others()])
    expect(order.filter((one) => one !== '.')).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3'])
    // nobody else waits for more than one of them
    expect(order.join(' ')).not.toMatch(/\w\d \w\d/)
  })

  it('leave a computation its result, or its error', async () => {
    const steps = function* (fails: boolean) {
      yield
      if (fails) throw new Error('no more')
      return 7
    }
    expect(await runInTimeSlices(steps(false))).toBe(7)
    await expect(runInTimeSlices(steps(true))).rejects.toThrow('no more')
  })
})
