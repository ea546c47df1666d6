import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { CallerGone } from '../../../interfaces/http/body.ts'
import { sendStream } from '../../../interfaces/http/byte-stream.ts'

/** Answers one request with pieces. @returns what came of sending, and of receiving. */
async function answerWith(pieces: AsyncIterable<Buffer>, leavesAfter = Number.POSITIVE_INFINITY) {
  let sending: Promise<unknown> | undefined
  const server = createServer((_, response) => {
    sending = sendStream(response, 200, 'application/octet-stream', pieces).catch((error: unknown) => error)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    const asking = request({ port: (server.address() as AddressInfo).port, agent: false }).end()
    const [response] = await once(asking, 'response')
    let received = 0
    let isWhole = true
    try {
      for await (const part of response as AsyncIterable<Buffer>) {
        received += part.length
        if (received >= leavesAfter) break
      }
    } catch {
      isWhole = false
    }
    asking.destroy()
    return { outcome: await sending, received, isWhole }
  } finally {
    server.close()
  }
}

test('a stream of bytes is answered whole', async () => {
  async function* pieces() {
    for (let n = 0; n < 100; n += 1) yield Buffer.alloc(10_000, n)
  }
  expect(await answerWith(pieces())).toEqual({ outcome: undefined, received: 1_000_000, isWhole: true })
})

test('a caller that goes away ends what makes the bytes', async () => {
  let isEnded = false
  async function* pieces() {
    try {
      for (;;) yield Buffer.alloc(64 * 1024)
    } finally {
      isEnded = true
    }
  }
  const { outcome } = await answerWith(pieces(), 1)
  expect([outcome, isEnded]).toEqual([expect.any(CallerGone), true])
})

test('what fails on the way is no whole answer', async () => {
  const failure = new Error('gone')
  async function* pieces() {
    yield Buffer.alloc(64 * 1024)
    throw failure
  }
  expect(await answerWith(pieces())).toMatchObject({ outcome: failure, isWhole: false })
})
