import { describe, expect, test } from 'vitest'
import { InMemoryFaults } from '../../infrastructure/faults/in-memory-faults.ts'

describe('injected faults', () => {
  test('strike as often as asked, where and how they were set', async () => {
    const faults = new InMemoryFaults()
    await faults.inject('mail', 'unreachable', 2)
    expect(await faults.take('text', ['unreachable'])).toBeNull()
    expect(await faults.take('mail', ['decline'])).toBeNull()
    expect(await faults.take('mail', ['decline', 'unreachable'])).toBe('unreachable')
    expect(await faults.take('mail', ['unreachable'])).toBe('unreachable')
    expect(await faults.take('mail', ['unreachable'])).toBeNull()
  })

  test('the last one set counts, and zero times clears', async () => {
    const faults = new InMemoryFaults()
    await faults.inject('bank-rail', 'timeout', 5)
    await faults.inject('bank-rail', 'decline', 1)
    expect(await faults.take('bank-rail', ['timeout', 'decline'])).toBe('decline')
    await faults.inject('bank-rail', 'timeout', 5)
    await faults.inject('bank-rail', 'timeout', 0)
    expect(await faults.take('bank-rail', ['timeout'])).toBeNull()
  })

  test('a hold stands until it is cleared and releases all who wait', async () => {
    const faults = new InMemoryFaults()
    await faults.released('pipeline')
    await faults.inject('pipeline', 'hold', 1)
    expect(await faults.take('pipeline', ['hold'])).toBe('hold')
    expect(await faults.holding('pipeline')).toBe(true)
    let released = 0
    const waiting = [1, 2].map(() => faults.released('pipeline').then(() => (released += 1)))
    await faults.inject('pipeline', 'hold', 3)
    await Promise.resolve()
    expect(released).toBe(0)
    await faults.inject('pipeline', 'hold', 0)
    await Promise.all(waiting)
    expect(released).toBe(2)
    expect(await faults.holding('pipeline')).toBe(false)
  })

  test('another mode ends a hold, and an abort ends waiting for it', async () => {
    const faults = new InMemoryFaults()
    await faults.inject('pipeline', 'hold', 1)
    const stop = new AbortController()
    const waiting = faults.released('pipeline', stop.signal)
    stop.abort(new Error('stopping'))
    await expect(waiting).rejects.toThrow('stopping')
    await expect(faults.released('pipeline', stop.signal)).rejects.toThrow('stopping')
    const other = faults.released('pipeline')
    await faults.inject('pipeline', 'decline', 1)
    await other
    expect(await faults.take('pipeline', ['decline'])).toBe('decline')
  })
})
