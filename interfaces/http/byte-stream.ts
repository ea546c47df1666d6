import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorCode } from '../../infrastructure/error-code.ts'
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
  try {
    await pipeline(Readable.from(pieces, { objectMode: false, highWaterMark: 64 * 1024 }), response)
  } catch (error) {
    throw errorCode(error) === 'ERR_STREAM_PREMATURE_CLOSE' ? new CallerGone() : error
  }
}
