import { describe, expect, test } from 'vitest'
import { work } from '../../../application/followers/process-manager.ts'
import { ReadModelsLate } from '../../../application/ports/read-models.ts'
import { workItem } from '../../support/provider-outages.ts'

const done = (run: Parameters<typeof work>[1]) =>
  work({}, run).run(workItem({ key: 'one', payload: {}, isLastTry: true }))

describe('a piece of work', () => {
  test('is done where nothing is returned, and comes to what is', async () => {
    expect(await done(async () => undefined)).toEqual({ outcome: 'done' })
    expect(await done(async () => ({ outcome: 'stop' }) as never)).toEqual({ outcome: 'stop' })
  })

  test('waits for read models that are late, whichever try it is', async () => {
    const late = done(async () => {
      throw new ReadModelsLate()
    })
    expect(await late).toEqual({ outcome: 'again', afterMs: 1_000 })
  })

  test('fails by what else goes wrong, also where read models are late for a reason', async () => {
    const cause = new Error('column "x" does not exist')
    for (const error of [cause, new ReadModelsLate({ cause })]) {
      const failing = done(async () => {
        throw error
      })
      await expect(failing).rejects.toBe(error)
    }
  })
})
