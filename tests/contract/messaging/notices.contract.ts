import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Notices } from '../../../application/ports/notices.ts'
import { until } from '../../support/workbench.ts'

/** Notices as two parts of the service hold them: the same object inside one process, one each between processes. */
export interface NoticesUnderTest {
  readonly here: Notices
  readonly there: Notices
  close(): Promise<void>
}

/** What every adapter of {@link Notices} does. */
export function noticesContract(name: string, open: () => Promise<NoticesUnderTest>): void {
  describe(`notices ${name}`, () => {
    let notices: NoticesUnderTest
    const stops: (() => void)[] = []
    beforeAll(async () => {
      notices = await open()
    })
    afterAll(async () => {
      for (const stop of stops) stop()
      await notices?.close()
    })
    const counted = (on: Notices, topic: 'work' | 'position') => {
      const heard: { times: number; stop: () => void } = { times: 0, stop: () => undefined }
      heard.stop = on.onWake(topic, () => {
        heard.times += 1
      })
      stops.push(heard.stop)
      return heard
    }

    test('wake the listeners of the same process before they return', () => {
      const first = counted(notices.here, 'work')
      const second = counted(notices.here, 'work')
      notices.here.wake('work')
      expect([first.times, second.times]).toEqual([1, 1])
    })

    test('wake the listeners of the other side, in both directions', async () => {
      const there = counted(notices.there, 'work')
      notices.here.wake('work')
      await until(() => there.times > 0)
      const here = counted(notices.here, 'position')
      notices.there.wake('position')
      await until(() => here.times > 0)
    })

    test('wake only for their topic', async () => {
      const work = counted(notices.there, 'work')
      const position = counted(notices.there, 'position')
      notices.here.wake('position')
      await until(() => position.times > 0)
      // of two topics told one after the other the later one has arrived
      expect(work.times).toBe(0)
    })

    test('that come in a flood arrive at least once after the last of them', async () => {
      const seen: number[] = []
      let told = 0
      stops.push(notices.there.onWake('work', () => void seen.push(told)))
      for (let burst = 0; burst < 20; burst += 1) {
        for (let n = 0; n < 50; n += 1) {
          told += 1
          notices.here.wake('work')
        }
        await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => seen.at(-1) === 1_000)
      expect(seen.length).toBeGreaterThan(0)
    })

    test('no longer wake who has stopped listening', async () => {
      const stopped = counted(notices.there, 'work')
      stopped.stop()
      const other = counted(notices.there, 'work')
      notices.here.wake('work')
      await until(() => other.times > 0)
      expect(stopped.times).toBe(0)
    })
  })
}
