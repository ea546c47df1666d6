import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CallerGone } from './body.ts'

/**
 * Answers with bytes that are made meanwhile, no faster than the caller takes them. What fails on the way cuts the
 * connection: an answer that has an end is whole.
 * @throws CallerGone when the caller leaves before the end; `pieces` are asked for no more then.
 */
export async function sendStream(
  response: ServerResponse,
  status: number,
  mediaType: string,
  pieces: AsyncIterable<Buffer>,
): Promise<void> {
  response.statusCode = status
  response.setHeader('Content-Type', mediaType)
  let failure: unknown
  const watched = async function* () {
    try {
      yield* pieces
    } catch (error) {
      failure = error
      throw error
    }
  }
  try {
    await pipeline(Readable.from(watched(), { objectMode: false, highWaterMark: 64 * 1024 }), response)
  } catch {
    throw failure ?? new CallerGone()
  }
}
