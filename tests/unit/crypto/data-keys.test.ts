import { describe, expect, it } from 'vitest'
import { newKey } from '../../../infrastructure/crypto/aes-gcm.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { DataKeys } from '../../../infrastructure/secrets/data-keys.ts'
import type { NewDataKey, PersonalDataKeys } from '../../../infrastructure/secrets/personal-data-keys.ts'
import { deferred } from '../../support/http-hosts.ts'

/** Keys of subjects over a table that takes note of what is asked of it. */
async function open(storing: () => Promise<unknown> = async () => undefined) {
  const read: string[][] = []
  let stores = 0
  let storesAtOnce = 0
  const table = {
    async read(subjects: readonly string[]) {
      read.push([...subjects])
      return new Map()
    },
    async store(_keys: readonly NewDataKey[]) {
      stores += 1
      storesAtOnce = Math.max(storesAtOnce, stores)
      await storing()
      stores -= 1
      return true
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
  return { keys, read, mostStores: () => storesAtOnce }
}

const people = (count: number, name: string) => Array.from({ length: count }, (_, n) => `person/${name}${n}`)
const stored = async ({ replaced }: { replaced: Promise<unknown> }) => void (await replaced)

describe('keys of many subjects', () => {
  it('are looked for ten thousand at a time, and a small report does not wait for all of a large one', async () => {
    const { keys, read, mostStores } = await open()
    let isLargeFound = false
    const large = keys.forSealing(people(21_000, 'large')).finally(() => {
      isLargeFound = true
    })
    await new Promise(setImmediate)
    const small = await keys.forSealing(people(3, 'small'))
    await stored(small)
    expect(isLargeFound).toBe(false)
    expect((await large).keys.size).toBe(21_000)
    await stored(await large)
    expect(Math.max(...read.map(({ length }) => length))).toBe(10_000)
    expect(mostStores()).toBeLessThanOrEqual(2)
  })

  it('are made once for all who ask until they are stored, but not for those who ask after an erasure', async () => {
    const storing = deferred()
    const { keys, read } = await open(() => storing.promise)
    const first = await keys.forSealing(['person/1'])
    const second = await keys.forSealing(['person/1'])
    expect(second.keys).toEqual(first.keys)
    expect(read).toHaveLength(1)
    await keys.destroy('person/1', 1)
    const third = await keys.forSealing(['person/1'])
    expect(read).toHaveLength(2)
    expect(third.keys.get('person/1')).not.toEqual(first.keys.get('person/1'))
    storing.resolve()
    for (const sealed of [first, second, third]) await stored(sealed)
  })
})
