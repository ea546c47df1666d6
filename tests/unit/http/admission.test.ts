import type { IncomingMessage } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { Admission, whileOutside, whileReceiving } from '../../../interfaces/http/admission.ts'
import { deferred } from '../../support/http-hosts.ts'

/** Requests at work at the most before the rate was measured, and when it is too low to matter. */
const ASSUMED = 300
const FEW = 100

/** Monotonic milliseconds; they stand until they are moved. */
let now: number
let refused: number
let admission: Admission
/** Requests at work, the longest first: called, each ends. */
let atWork: (() => Promise<void>)[]

beforeEach(() => {
  now = 0
  refused = 0
  atWork = []
  admission = new Admission({
    now: () => now,
    onRefused: () => {
      refused += 1
    },
  })
})

function newRequest(): IncomingMessage {
  return {} as IncomingMessage
}

/** Sends a request that waits for somebody. @returns what ends its wait; nothing when it was refused. */
async function sendWaiting(
  waits: typeof whileOutside,
  address: string,
): Promise<(() => Promise<unknown>) | null> {
  const end = deferred()
  let isWaiting = false
  const request = newRequest()
  const ended = admission.during(request, { address, credential: '' }, () =>
    waits(request, () => {
      isWaiting = true
      return end.promise
    }),
  )
  const done = ended.catch((error) => error)
  if (!isWaiting) {
    expect(await done).toMatchObject({ status: 503 })
    return null
  }
  return () => {
    end.resolve()
    return done
  }
}

/** Sends a request that is at work until it is told to end. @returns whether it was let in. */
async function send(credential = 'a', address = '192.0.2.1'): Promise<boolean> {
  let isIn = false
  const end = deferred()
  const ended = admission.during(newRequest(), { address, credential }, () => {
    isIn = true
    return end.promise
  })
  if (isIn) {
    atWork.push(async () => {
      end.resolve()
      await ended
    })
    return true
  }
  const { status, headers } = await ended.then(
    () => ({ status: 200, headers: {} }),
    (error) => error,
  )
  // thousands are refused: an assertion for each takes seconds
  if (status !== 503 || headers['Retry-After'] !== '2') expect.unreachable(`refused with ${status}`)
  return false
}

/** Sends until a request is refused. @returns how many were let in. */
async function fill(credential = 'a', address?: string): Promise<number> {
  let count = 0
  while (await send(credential, address)) count += 1
  return count
}

/** Lets the service serve at a rate, with as much to do as it lets in. */
async function serve(perSecond: number, seconds: number): Promise<void> {
  for (let n = 0; n < perSecond * seconds; n += 1) {
    now += 1000 / perSecond
    await atWork.shift()!()
    await fill()
  }
}

describe('admission', () => {
  it('lets in as many as are served within a second', async () => {
    expect(await fill()).toBe(ASSUMED)
    expect(refused).toBe(1)
    await serve(600, 5)
    expect(atWork.length).toBeGreaterThan(550)
    expect(atWork.length).toBeLessThanOrEqual(600)
    await serve(200, 15)
    expect(atWork.length).toBeGreaterThanOrEqual(200)
    expect(atWork.length).toBeLessThan(220)
  })

  it('lets in a few however long each takes', async () => {
    await fill()
    await serve(1, 500)
    expect(atWork).toHaveLength(FEW)
  })

  it('measures requests that are answered many at once, with nothing to do in between', async () => {
    await fill()
    await serve(1200, 5)
    while (atWork.length > 0) await atWork.shift()!()
    for (let n = 0; n < 50; n += 1) {
      for (let sent = 0; sent < 120; sent += 1) await send()
      now += 400
      while (atWork.length > 0) await atWork.shift()!()
    }
    const count = await fill()
    expect(count).toBeGreaterThan(240)
    expect(count).toBeLessThanOrEqual(300)
  })

  it('learns nothing from a service with little to do', async () => {
    for (let n = 0; n < 1000; n += 1) {
      await send()
      now += 10_000
      await atWork.shift()!()
    }
    expect(await fill()).toBe(ASSUMED)
  })

  it('lets others in, up to an equal share, while one fills it', async () => {
    await fill('a')
    expect(await fill('b')).toBe(ASSUMED / 2)
    expect(await fill('c')).toBe(ASSUMED / 3)
    // who has more than a share comes in again only when there is room for all
    await atWork.shift()!()
    expect(await send('a')).toBe(false)
    expect(await send('d')).toBe(true)
  })

  it('refuses new callers where there are as many as it serves', async () => {
    const callers = Array.from({ length: ASSUMED }, (_, n) => `caller ${n}`)
    for (const caller of callers) expect(await send(caller)).toBe(true)
    expect(await send('one more')).toBe(false)
    await atWork.shift()!()
    expect(await send('one more')).toBe(true)
  })

  it('lets another address in while one invents a credential for each request', async () => {
    for (let n = 0; n < ASSUMED; n += 1) expect(await send(`invented ${n}`)).toBe(true)
    expect(await send('one more')).toBe(false)
    expect(await fill('b', '192.0.2.2')).toBe(ASSUMED / 2)
    // and the places that it leaves are others' first
    await atWork.shift()!()
    expect(await send('one more')).toBe(false)
  })

  it('counts nobody who waits for the rest of a body, and finds room again for what has come', async () => {
    const waiting = []
    for (let n = 0; n < 2_000; n += 1) waiting.push(await sendWaiting(whileReceiving, `192.0.${n}`))
    expect(waiting).not.toContain(null)
    expect(await sendWaiting(whileReceiving, 'one more')).toBeNull()
    expect(await fill()).toBe(ASSUMED)
    // the address has more than a share at work
    for (let n = 0; n < ASSUMED; n += 1) await send('a', `198.51.${n}`)
    expect(await waiting[0]!()).toMatchObject({ status: 503 })
    while (atWork.length > 0) await atWork.shift()!()
    expect(await waiting[1]!()).toBeUndefined()
    expect(await sendWaiting(whileReceiving, 'one more')).not.toBeNull()
  })

  it('holds up nobody for those who wait for somebody outside, of whom there are as many at the most', async () => {
    const waiting = []
    for (let n = 0; n < ASSUMED; n += 1) waiting.push(await sendWaiting(whileOutside, `192.0.${n}`))
    expect(waiting).not.toContain(null)
    expect(await sendWaiting(whileOutside, 'one more')).toBeNull()
    expect(await fill()).toBe(ASSUMED)
    // who was answered outside goes on however much there is to do
    expect(await waiting[0]!()).toBeUndefined()
    expect(await sendWaiting(whileOutside, 'one more')).not.toBeNull()
  })

  it('forgets a request that ended before what it asked outside did', async () => {
    const answer = deferred()
    const request = newRequest()
    let asking: Promise<void> | undefined
    await admission.during(request, { address: '192.0.2.1', credential: 'a' }, () => {
      asking = whileOutside(request, () => answer.promise)
    })
    answer.resolve()
    await asking
    expect(await fill()).toBe(ASSUMED)
  })

  it('gives the place of work that fails to the next', async () => {
    await fill()
    await atWork.shift()!()
    await expect(
      admission.during(newRequest(), { address: '192.0.2.1', credential: 'a' }, () => {
        throw new Error('broken')
      }),
    ).rejects.toThrow('broken')
    expect(await send()).toBe(true)
  })
})
