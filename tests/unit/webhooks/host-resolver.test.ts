import { expect, test } from 'vitest'
import { HostResolver, HostUnknown, type NameSources } from '../../../infrastructure/webhooks/resolver.ts'

const silent = () => new Promise<never>(() => undefined)
const unknown = () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' }))

/** Sources that do not know any name, unless a test says otherwise. */
function sources(given: Partial<NameSources>): NameSources {
  return { resolve4: unknown, resolve6: unknown, lookup: unknown, ...given }
}

test('addresses of one family do not wait for a name server that is silent about the other', async () => {
  const resolver = new HostResolver(sources({ resolve4: async () => ['8.8.8.8'], resolve6: silent }))
  expect(await resolver.addressesOf('half.example')).toEqual(['8.8.8.8'])
  const other = new HostResolver(sources({ resolve6: async () => ['2606:4700::1'] }))
  expect(await other.addressesOf('six.example')).toEqual(['2606:4700::1'])
  const both = sources({ resolve4: async () => ['8.8.8.8'], resolve6: async () => ['2606:4700::1'] })
  expect(await new HostResolver(both).addressesOf('both.example')).toEqual(['8.8.8.8', '2606:4700::1'])
})

test('look-ups of the system are few at a time, wait in bounded number, and not beyond the deadline', async () => {
  const under: ((found: readonly string[]) => void)[] = []
  const lookup = () => new Promise<readonly string[]>((resolve) => under.push(resolve))
  const resolver = new HostResolver(sources({ lookup }), 300)
  const asked = Array.from({ length: 103 }, (_, n) =>
    resolver.addressesOf(`host-${n}.example`).catch((error: HostUnknown) => error.message),
  )
  // two are under way, a hundred wait
  expect(await Promise.race(asked)).toBe('too many names are being looked up')
  expect(under).toHaveLength(2)
  const late = 'its addresses were not found in time'
  expect((await Promise.all(asked)).filter((one) => one === late)).toHaveLength(102)
  // nobody waits any more: the places go to who asks next
  for (const resolve of under.splice(0)) resolve(['8.8.8.8'])
  const next = resolver.addressesOf('next.example')
  await expect.poll(() => under.length).toBe(1)
  under[0]!(['8.8.4.4'])
  expect(await next).toEqual(['8.8.4.4'])
})

test('a name that nothing knows is unknown', async () => {
  const asking = new HostResolver(sources({})).addressesOf('none.example')
  await expect(asking).rejects.toThrow(new HostUnknown('no name server knows it'))
})
