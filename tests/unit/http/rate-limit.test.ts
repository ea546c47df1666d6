import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { addressKey, limitAddress, RateLimiter, rateLimits } from '../../../interfaces/http/rate-limit.ts'

function limiter(perSecond: number) {
  let now = 0
  return {
    limits: new RateLimiter(perSecond, () => now),
    pass: (milliseconds: number) => {
      now += milliseconds
    },
  }
}

/** Requests that pass until the first refusal. */
function passing(limits: RateLimiter, key: string): number {
  let count = 0
  while (limits.take(key) === 0) count += 1
  return count
}

describe('RateLimiter', () => {
  it('lets a burst of twice the rate pass, then the rate', () => {
    const { limits, pass } = limiter(10)
    expect(passing(limits, 'a')).toBe(20)
    pass(1000)
    expect(passing(limits, 'a')).toBe(10)
    pass(100)
    expect(passing(limits, 'a')).toBe(1)
    pass(60_000)
    expect(passing(limits, 'a')).toBe(20)
  })

  it('keeps keys apart', () => {
    const { limits } = limiter(5)
    expect(passing(limits, 'a')).toBe(10)
    expect(passing(limits, 'b')).toBe(10)
  })

  it('names whole seconds to wait, at least one, after which a request does pass', () => {
    const { limits, pass } = limiter(1)
    passing(limits, 'a')
    expect(limits.take('a')).toBe(1)
    expect(limits.take('a', 2)).toBe(2)
    pass(2000)
    expect(limits.take('a', 2)).toBe(0)
  })

  it('counts a cost above the burst as a full bucket', () => {
    const { limits, pass } = limiter(10)
    expect(limits.take('a', 1000)).toBe(0)
    expect(limits.take('a')).toBe(1)
    pass(1000)
    expect(limits.take('a', 1000)).toBe(1)
    pass(1000)
    expect(limits.take('a', 1000)).toBe(0)
  })

  it('lets an hour hold as many as it names, told before and counted after they are done', () => {
    let now = 0
    const limits = RateLimiter.perHour(100, () => now)
    for (let count = 0; count < 100; count += 1) {
      expect(limits.waitOf('a')).toBe(0)
      limits.charge('a', 1)
    }
    // a refusal counts for nothing
    for (let count = 0; count < 3; count += 1) expect(limits.waitOf('a')).toBe(36)
    expect(limits.waitOf('b')).toBe(0)
    now += 36_000
    expect(limits.waitOf('a')).toBe(0)
    limits.charge('a', 1)
    expect(limits.waitOf('a')).toBe(36)
    now += 3_600_000
    expect(passing(limits, 'a')).toBe(100)
  })

  it('says what is left of how much, and when all is there again', () => {
    const clock = { now: 0 }
    const limiter = new RateLimiter(2, () => clock.now)
    expect(limiter.headersOf('a')).toEqual({
      'RateLimit-Policy': '"credential";q=4;w=2',
      RateLimit: '"credential";r=4;t=0',
    })
    limiter.take('a', 3)
    clock.now += 250
    expect(limiter.headersOf('a').RateLimit).toBe('"credential";r=1;t=2')
    limiter.charge('a', 10)
    expect(limiter.headersOf('a').RateLimit).toBe('"credential";r=0;t=7')
    expect(new RateLimiter(0).headersOf('a')).toEqual({})
  })

  it('is off at rate 0', () => {
    const { credentials, addresses } = rateLimits(0)
    for (let count = 0; count < 1000; count += 1) {
      expect(credentials.take('a')).toBe(0)
      expect(addresses.take('a')).toBe(0)
    }
  })

  it('limits an address to 20 a second whatever the rate of credentials is', () => {
    for (const rate of [1, 1000]) {
      const { addresses } = rateLimits(rate)
      const began = performance.now()
      const passed = passing(addresses, '192.0.2.1')
      expect(passed).toBeGreaterThanOrEqual(40)
      // what it gained while this went on counts as well
      expect(passed).toBeLessThanOrEqual(40 + Math.ceil(((performance.now() - began) / 1000) * 20))
    }
  })

  it('keeps a bounded number of buckets, and those in use before those at rest', () => {
    const { limits, pass } = limiter(10)
    for (let index = 0; index < 9_999; index += 1) limits.take(`rest ${index}`)
    pass(3000)
    passing(limits, 'busy')
    for (let index = 0; index < 25_000; index += 1) {
      limits.take(`new ${index}`)
      if (index === 0) expect(limits.take('busy')).toBe(1)
    }
    expect(limits.size).toBeLessThanOrEqual(10_000)
  })
})

describe('addressKey', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    [undefined, 'unknown'],
  ])('%s counts as %s', (address, key) => {
    expect(addressKey(address)).toBe(key)
  })
})

describe('limitAddress', () => {
  it('takes more for a large body', () => {
    const taken: [string, number][] = []
    const addresses = {
      take(key: string, cost = 1) {
        taken.push([key, cost])
        return taken.length > 3 ? 2 : 0
      },
    }
    const request = { socket: { remoteAddress: '192.0.2.7' } } as IncomingMessage
    for (const bytes of [0, 200, 10 * 1024 * 1024]) limitAddress(addresses, request, bytes)
    expect(taken).toEqual([
      ['192.0.2.7', 1],
      ['192.0.2.7', 1],
      ['192.0.2.7', 41],
    ])
    expect(() => limitAddress(addresses, request)).toThrow(
      expect.objectContaining({ status: 429, headers: { 'Retry-After': '2' } }),
    )
  })
})
