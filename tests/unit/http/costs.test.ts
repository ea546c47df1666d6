import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { CallerGone, readBody } from '../../../interfaces/http/body.ts'
import { CallSlots } from '../../../interfaces/http/call-slots.ts'
import { Costs } from '../../../interfaces/http/costs.ts'
import { RateLimiter, type RateLimits } from '../../../interfaces/http/rate-limit.ts'
import { deferred, plainServer } from '../../support/http-hosts.ts'

const KIB = 1024

/** Limits whose clock stands until it is moved; ten tokens a second, twenty at the most. */
function limits(): RateLimits & { pass(seconds: number): void; left(key: string): number } {
  let now = 0
  const credentials = new RateLimiter(10, () => now)
  return {
    credentials,
    addresses: new RateLimiter(10, () => now),
    largeCalls: new CallSlots(4, 20, 'too many'),
    pass: (seconds) => {
      now += seconds * 1000
    },
    left: (key) => {
      let taken = 0
      while (credentials.take(key) === 0) taken += 1
      return taken
    },
  }
}

describe('a call', () => {
  it.each([
    [{ bytes: 0 }, 1],
    [{ bytes: 64 * KIB }, 1],
    [{ bytes: 64 * KIB + 1 }, 2],
    [{ rows: 500 }, 1],
    [{ rows: 501 }, 2],
    [{ bytes: 64 * KIB * 3, rows: 5000 }, 10],
    [{ bytes: 64 * KIB * 12, rows: 5 }, 12],
  ])('of %j costs %i tokens', async (size, cost) => {
    const by = limits()
    await Costs.during(by, async (call) => {
      await call.admit('a')
      await call.measure(size)
    })
    expect(by.left('a')).toBe(20 - cost)
    expect(by.left('b')).toBe(20)
  })

  it('pays once for what it tells bit by bit', async () => {
    const by = limits()
    await Costs.during(by, async (call) => {
      await call.admit('a')
      for (const bytes of [1, 100 * KIB, 200 * KIB]) await call.measure({ bytes })
      await call.measure({ rows: 2500 })
      await call.measure({ rows: 3000 })
    })
    expect(by.left('a')).toBe(14)
  })

  it('owes for its answer when that has gone out, without a wait for a slot', async () => {
    const by = limits()
    await Costs.during(by, async (call) => {
      await call.admit('a')
      call.owe({ bytes: 64 * KIB * 30 })
    })
    expect(by.left('a')).toBe(0)
    by.pass(1)
    expect(by.left('a')).toBe(0)
    by.pass(1)
    expect(by.left('a')).toBe(10)
  })

  it('pays nothing before its credential is proven, and then for what came before, too', async () => {
    const by = limits()
    const stranger = Costs.during(by, async (call) => {
      call.identify('a')
      await call.measure({ bytes: 640 * KIB })
      throw new Error('wrong signature')
    })
    await expect(stranger).rejects.toThrow('wrong signature')
    await Costs.during(by, async (call) => {
      call.identify('a')
      await call.measure({ bytes: 320 * KIB })
      await call.admit('a')
    })
    expect(by.left('a')).toBe(15)
  })

  it('owes what its credential lacks: the next one waits for it', async () => {
    const by = limits()
    await Costs.during(by, async (call) => {
      await call.admit('a')
      await call.measure({ rows: 50_000 })
    })
    const refused = Costs.during(by, async (call) => call.admit('a'))
    // 80 tokens are owed, one is wanted
    await expect(refused).rejects.toMatchObject({ status: 429, headers: { 'Retry-After': '9' } })
    by.pass(9)
    await Costs.during(by, async (call) => call.admit('a'))
  })

  it('pays a token for each message of a batch', async () => {
    const by = limits()
    await Costs.during(by, async (call) => {
      await call.admit('a')
      call.takeMessages(6)
    })
    expect(by.left('a')).toBe(14)
    const refused = Costs.during(by, async (call) => {
      await call.admit('b')
      call.takeMessages(21)
    })
    await expect(refused).rejects.toMatchObject({ status: 429 })
  })
})

describe('large calls', () => {
  const large = { bytes: 1024 * KIB + 1 }

  it('are at work four at a time, each credential by itself, small ones beside them', async () => {
    const by = limits()
    const end = deferred()
    const running = Array.from({ length: 4 }, () =>
      Costs.during(by, async (call) => {
        call.identify('a')
        await call.measure({ rows: 5001 })
        await end.promise
      }),
    )
    await expect(
      Costs.during(by, async (call) => {
        call.identify('a')
        await call.measure(large)
      }),
    ).rejects.toMatchObject({ status: 429, headers: { 'Retry-After': '1' } })
    for (const [credential, size] of [
      ['a', { bytes: 1024 * KIB, rows: 5000 }],
      ['b', large],
    ] as const) {
      await Costs.during(by, async (call) => {
        call.identify(credential)
        await call.measure(size)
      })
    }
    const fifth = Costs.during(by, async (call) => {
      call.identify('a')
      await call.measure(large)
      return 'went on'
    })
    end.resolve()
    expect(await fifth).toBe('went on')
    await Promise.all(running)
  })

  it('give their slot back when their work fails', async () => {
    const by = limits()
    for (let count = 0; count < 10; count += 1) {
      const failing = Costs.during(by, async (call) => {
        call.identify('a')
        await call.measure(large)
        throw new Error('failed')
      })
      await expect(failing).rejects.toThrow('failed')
    }
  })

  it('give a slot back that came to a caller who had left', async () => {
    const slots = new CallSlots(1, 60_000, 'too many')
    const by = { ...limits(), largeCalls: slots }
    const release = await slots.acquire('a')
    let measured: Promise<void> | undefined
    const left = Costs.during(by, async (call) => {
      call.identify('a')
      measured = call.measure(large)
      throw new Error('the caller left')
    })
    await expect(left).rejects.toThrow('the caller left')
    release()
    await measured
    // it waits for nobody
    await slots.acquire('a')
  })

  it('are on the account of the credential as soon as it is proven, and no longer on that of who sends it', async () => {
    const slots = new CallSlots(1, 10, 'too many')
    const by = { ...limits(), largeCalls: slots }
    await Costs.during(by, async (call) => {
      call.identify('a from 192.0.2.1')
      await call.measure(large)
      await expect(slots.acquire('a from 192.0.2.1')).rejects.toMatchObject({ status: 429 })
      await call.admit('a')
      const other = await slots.acquire('a from 192.0.2.1')
      await expect(slots.acquire('a')).rejects.toMatchObject({ status: 429 })
      other()
    })
    await slots.acquire('a')
  })

  it('are not bounded where there is no limit', async () => {
    const none = new CallSlots(0, 10, 'too many')
    for (let count = 0; count < 10; count += 1) await none.acquire('a')
  })
})

describe('a caller who leaves', () => {
  it.each([
    ['before its body was asked for', 'Content-Length: 2000000', ''],
    ['in the middle of its body', 'Content-Length: 2000000', 'x'.repeat(70_000)],
    [
      'in the middle of a body of unknown length',
      'Transfer-Encoding: chunked',
      `fffff\r\n${'x'.repeat(70_000)}`,
    ],
  ])('%s leaves no slot behind', async (_when, header, body) => {
    const slots = new CallSlots(1, 60_000, 'too many')
    const by = { ...limits(), largeCalls: slots }
    const requests: IncomingMessage[] = []
    const left: Promise<unknown>[] = []
    const ended: Promise<unknown>[] = []
    const { server, port } = await plainServer((request) => {
      requests.push(request)
      left.push(new Promise((resolve) => request.socket.once('close', resolve)))
      const call = Costs.during(by, async (one) => {
        one.identify('a')
        if (body === '') await left[0]
        await readBody(request, 4_000_000, one)
      })
      ended.push(call.catch((error: unknown) => error))
    })
    try {
      const caller = connect(port, '127.0.0.1')
      caller.on('error', () => undefined)
      caller.write(`POST / HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n${body}`)
      await expect.poll(() => requests.length).toBe(1)
      caller.destroy()
      expect(await ended[0]).toBeInstanceOf(CallerGone)
      await slots.acquire('a')
    } finally {
      server.close()
    }
  })
})
