import { request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { CallerGone } from '../../../interfaces/http/body.ts'
import { jsonPieces, sendJsonPieces } from '../../../interfaces/http/json-writer.ts'
import { type Listener, listen } from '../../../interfaces/http/server.ts'
import { runs } from '../../support/generated.ts'
import { deferred } from '../../support/http-hosts.ts'

describe('pieces of JSON', () => {
  it('join to what JSON.stringify gives', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const read = JSON.parse(JSON.stringify(value))
        expect([...jsonPieces(read)].join('')).toBe(JSON.stringify(read))
      }),
      runs(),
    )
    const long = {
      a: Array.from({ length: 250 }, (_, n) => ({ n })),
      b: undefined,
      c: { d: Array(101).fill('x') },
    }
    expect([...jsonPieces(long)].join('')).toBe(JSON.stringify(long))
  })

  it('never hold more than a hundred elements of a long array', () => {
    const pieces = [...jsonPieces({ errors: Array(1000).fill('e') })]
    expect(pieces).toHaveLength(1 + 10 + 2)
    expect(Math.max(...pieces.map((piece) => piece.length))).toBe('["e"'.length + 99 * ',"e"'.length)
  })

  it('never hold more of an array than one large element, or as many as have 32 KiB', () => {
    const longest = (elements: number, characters: number) => {
      const page = { data: Array.from({ length: elements }, () => ({ text: 'x'.repeat(characters) })) }
      return Math.max(...[...jsonPieces(page)].map((piece) => piece.length))
    }
    expect(longest(90, 130_000)).toBeLessThan(131_000)
    expect(longest(90, 5_000)).toBeLessThanOrEqual(32 * 1024 + 1)
    expect(longest(90, 5_000)).toBeGreaterThan(25_000)
  })
})

describe('an answer in pieces', () => {
  let listener: Listener | undefined
  afterEach(() => listener?.close({ idleMs: 0, cutMs: 0 }))

  /** Serves one answer and tells how many pieces were taken by then. */
  async function serve(
    pieces: number,
    options: { unreadAnswerMs?: number; before?: Promise<unknown> } = {},
  ): Promise<{ answer: Promise<IncomingMessage>; taken: () => number; end: Promise<unknown> }> {
    let taken = 0
    function* answer() {
      for (; taken < pieces; taken += 1) yield 'x'.repeat(10_000)
    }
    const end = deferred<unknown>()
    const app: RequestListener = async (_request, response) => {
      await options.before
      sendJsonPieces(response, 200, answer()).then(end.resolve, end.resolve)
    }
    listener = await listen(app, '127.0.0.1', 0, options)
    const incoming = new Promise<IncomingMessage>((resolve, reject) => {
      httpRequest(listener!.url, resolve).on('error', reject).end()
    })
    return { answer: incoming, taken: () => taken, end: end.promise }
  }

  async function sizeOf(answer: Promise<IncomingMessage>): Promise<number> {
    let size = 0
    for await (const part of await answer) size += (part as Buffer).length
    return size
  }

  it('goes out with its length when it is short', async () => {
    const { answer } = await serve(3)
    expect((await answer).headers['content-length']).toBe('30000')
    expect(await sizeOf(answer)).toBe(30_000)
  })

  it('goes out whole when it is long', async () => {
    const { answer, end } = await serve(500)
    expect((await answer).headers['transfer-encoding']).toBe('chunked')
    expect(await sizeOf(answer)).toBe(5_000_000)
    expect(await end).toBe(5_000_000)
  })

  it('goes out with its length where all pieces are there, in bytes', async () => {
    const pieces = Array.from({ length: 20 }, () => 'é'.repeat(10_000))
    listener = await listen((_, response) => void sendJsonPieces(response, 200, pieces), '127.0.0.1', 0)
    const { headers, status } = await fetch(listener.url)
    expect([status, headers.get('content-length')]).toEqual([200, '400000'])
  })

  it('is not made before the caller takes it, and ends with the caller', async () => {
    const { answer, taken, end } = await serve(100_000)
    ;(await answer).pause().destroy()
    expect(await end).toBeInstanceOf(CallerGone)
    // a gigabyte, of which the connection's buffers hold some megabytes
    expect(taken()).toBeLessThan(50_000)
  })

  it('is given up when the caller takes nothing of it for long', async () => {
    const { answer, taken, end } = await serve(100_000, { unreadAnswerMs: 100 })
    ;(await answer).pause()
    expect(await end).toBeInstanceOf(CallerGone)
    expect(taken()).toBeLessThan(50_000)
  })

  it('is waited for as long as it takes to make', async () => {
    const ready = deferred()
    const { answer } = await serve(3, { unreadAnswerMs: 10, before: ready.promise })
    // several times the limit: a connection that is cut meanwhile fails the request
    await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 100))])
    ready.resolve()
    expect(await sizeOf(answer)).toBe(30_000)
  })
})
