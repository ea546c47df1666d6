import { describe, expect, it } from 'vitest'
import { newKey } from '../../../infrastructure/crypto/aes-gcm.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { DataKeys } from '../../../infrastructure/secrets/data-keys.ts'
import type { NewDataKey, PersonalDataKeys } from '../../../infrastructure/secrets/personal-data-keys.ts'
import { deferred } from '../../support/http-hosts.ts'

/** Keys of subjects over a table that takes note of what is asked of it, and has none. */
async function open(storing: () => Promise<unknown> = async () => undefined) {
  const asked: number[] = []
  let statements = 0
  let mostAtOnce = 0
  const table = {
    async storeMissing(keys: readonly NewDataKey[]) {
      asked.push(keys.length)
      statements += 1
      mostAtOnce = Math.max(mostAtOnce, statements)
      await storing()
      statements -= 1
      return []
    },
    destroy: async () => undefined,
    lastDestruction: async () => 0,
    destroyedSince: async () => [],
  }
  const keys = new DataKeys(
    table as unknown as PersonalDataKeys,
    new MasterKeys([newKey()]),
    { kind: 'system', now: () => 0 },
    { erasureCheckMs: Number.POSITIVE_INFINITY },
  )
  await keys.start()
  return { keys, asked, mostAtOnce: () => mostAtOnce }
}

const people = (count: number, name: string) => Array.from({ length: count }, (_, n) => `person/${name}${n}`)

describe('keys of many subjects', () => {
  it('are looked for ten thousand at a time, and a small report does not wait for all of a large one', async () => {
    const { keys, asked, mostAtOnce } = await open()
    let isLargeFound = false
    const large = keys.forSealing(people(21_000, 'large')).finally(() => {
      isLargeFound = true
    })
    await new Promise(setImmediate)
    await keys.forSealing(people(3, 'small'))
    expect(isLargeFound).toBe(false)
    expect((await large).size).toBe(21_000)
    expect(Math.max(...asked)).toBe(10_000)
    expect(mostAtOnce()).toBeLessThanOrEqual(2)
  })

  it('are made once for all who ask until they are stored, but not for those who ask after an erasure', async () => {
    const storing = deferred()
    const { keys, asked } = await open(() => storing.promise)
    const first = keys.forSealing(['person/1'])
    const second = keys.forSealing(['person/1'])
    await expect.poll(() => asked).toHaveLength(1)
    await keys.destroy('person/1', 1)
    const third = keys.forSealing(['person/1'])
    await expect.poll(() => asked).toHaveLength(2)
    storing.resolve()
    expect(await second).toEqual(await first)
    expect(await third).not.toEqual(await first)
  })

  it('are stored once for who asks again after an erasure while the first request waits', async () => {
    const { keys, asked } = await open()
    const first = keys.forSealing(['person/1'])
    await keys.destroy('person/1', 1)
    await Promise.all([first, keys.forSealing(['person/1'])])
    expect(asked.every((count) => count === 1)).toBe(true)
  })
})
