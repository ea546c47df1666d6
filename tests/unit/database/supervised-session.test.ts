import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SupervisedSession } from '../../../infrastructure/database/supervised-session.ts'
import { deferred } from '../../support/http-hosts.ts'

/** A connection whose statements are answered when the test says so, and which tells whether it was ended. */
function connection() {
  const answer = deferred()
  const client = {
    isEnded: false,
    query: () => answer.promise,
    end: async () => {
      client.isEnded = true
    },
  }
  return { client, answer: answer.resolve }
}

function sessionOn(connect: () => Promise<object>, prepare: () => Promise<void> = async () => undefined) {
  return new SupervisedSession({
    name: 'a database',
    connect: connect as () => Promise<pg.Client>,
    prepare,
    hasHeartbeat: true,
  })
}

describe('a session that is closed', () => {
  it('has ended the connection that was being made', async () => {
    const { client } = connection()
    const connected = deferred<object>()
    const session = sessionOn(() => connected.promise)
    const refused = expect(session.client()).rejects.toThrow('the session is closed')
    const closed = session.close()
    connected.resolve(client)
    await closed
    expect(client.isEnded).toBe(true)
    await refused
  })

  it('does not wait for what a connection is made ready with', async () => {
    const { client } = connection()
    const ended = deferred()
    client.end = async () => {
      client.isEnded = true
      ended.resolve()
    }
    const session = sessionOn(
      async () => client,
      () => ended.promise.then(() => Promise.reject(new Error('Connection terminated'))),
    )
    const refused = expect(session.client()).rejects.toThrow('Connection terminated')
    await new Promise(setImmediate)
    await session.close()
    expect(client.isEnded).toBe(true)
    await refused
  })

  it('connects no more', async () => {
    const connect = vi.fn()
    const session = sessionOn(connect)
    await session.close()
    await expect(session.client()).rejects.toThrow('the session is closed')
    expect(connect).not.toHaveBeenCalled()
  })
})

describe('a sign of life', () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'],
    })
  })
  afterEach(() => vi.useRealTimers())

  async function beating() {
    const { client, answer } = connection()
    const session = sessionOn(async () => client)
    await session.client()
    await vi.advanceTimersByTimeAsync(15_000)
    return { client, answer, session }
  }

  it('that does not come in five seconds is the end of the connection', async () => {
    const { client, session } = await beating()
    await vi.advanceTimersByTimeAsync(4_990)
    expect(client.isEnded).toBe(false)
    await vi.advanceTimersByTimeAsync(20)
    expect(client.isEnded).toBe(true)
    await session.close()
  })

  it('that came while this process stood still is read before', async () => {
    const { client, answer, session } = await beating()
    // the timer is over before what came is read
    vi.advanceTimersToNextTimer()
    answer()
    await vi.advanceTimersByTimeAsync(10)
    expect(client.isEnded).toBe(false)
    await session.close()
  })
})
