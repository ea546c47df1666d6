import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { CallerGone } from '../../interfaces/http/body.ts'
import { jsonPieces, sendJsonPieces } from '../../interfaces/http/long-json.ts'

describe('pieces of JSON', () => {
  it('join to what JSON.stringify gives', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const read = JSON.parse(JSON.stringify(value))
        expect([...jsonPieces(read)].join('')).toBe(JSON.stringify(read))
      }),
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
})

describe('an answer in pieces', () => {
  let server: Server | undefined
  afterEach(() => server?.close())

  /** Serves one answer and tells how many pieces were taken when the caller stopped reading. */
  async function serve(
    pieces: number,
  ): Promise<{ answer: IncomingMessage; taken: () => number; end: Promise<unknown> }> {
    let taken = 0
    function* answer() {
      for (; taken < pieces; taken += 1) yield 'x'.repeat(10_000)
    }
    let ended: (value: unknown) => void
    const end = new Promise<unknown>((resolve) => {
      ended = resolve
    })
    server = createServer((_request, response) => {
      sendJsonPieces(response, 200, answer()).then(ended, ended)
    })
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const incoming = await new Promise<IncomingMessage>((resolve) => {
      httpRequest({ port, host: '127.0.0.1' }, resolve).end()
    })
    return { answer: incoming, taken: () => taken, end }
  }

  it('goes out with its length when it is short', async () => {
    const { answer } = await serve(3)
    expect(answer.headers['content-length']).toBe('30000')
    let size = 0
    for await (const part of answer) size += (part as Buffer).length
    expect(size).toBe(30_000)
  })

  it('goes out whole when it is long', async () => {
    const { answer, end } = await serve(500)
    expect(answer.headers['transfer-encoding']).toBe('chunked')
    let size = 0
    for await (const part of answer) size += (part as Buffer).length
    expect(size).toBe(5_000_000)
    expect(await end).toBeUndefined()
  })

  it('is not made before the caller takes it, and ends with the caller', async () => {
    const { answer, taken, end } = await serve(100_000)
    answer.once('data', () => answer.pause())
    await new Promise((resolve) => answer.once('pause', resolve))
    answer.destroy()
    expect(await end).toBeInstanceOf(CallerGone)
    // a gigabyte, of which the connection's buffers hold some megabytes
    expect(taken()).toBeLessThan(50_000)
  })
})
