import type { IncomingMessage } from 'node:http'
import { HttpError } from './errors.ts'
import { parseJson } from './strict-json.ts'

/** Largest body of the core API and the tool server, in bytes. */
export const LARGE_BODY = 10 * 1024 * 1024
/** Largest body of every other host, in bytes. */
export const SMALL_BODY = 1024 * 1024

/** The caller went away while its body was being read: there is nobody to answer. */
export class CallerGone extends Error {
  constructor() {
    super('The caller closed the connection before its request was complete')
    this.name = 'CallerGone'
  }
}

/**
 * Reads the whole body as bytes.
 * @param limit bytes at the most.
 * @throws HttpError 413 when the body is larger, 415 when it is compressed; CallerGone.
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new HttpError(415, null, 'Compressed bodies are not accepted; send plain JSON')
  }
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let size = 0
    const onGone = () => reject(new CallerGone())
    request.on('data', (part: Buffer) => {
      size += part.length
      if (size > limit) {
        // what still comes is thrown away by the server after the answer
        request.removeAllListeners('data')
        reject(tooLarge(limit))
      } else {
        parts.push(part)
      }
    })
    request.once('end', () => {
      request.off('close', onGone)
      resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts, size))
    })
    request.once('error', onGone)
    request.once('close', onGone)
  })
}

function tooLarge(limit: number): HttpError {
  const message = `The body is larger than ${limit / (1024 * 1024)} MiB`
  return new HttpError(413, null, message)
}

const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)"?/i

/**
 * Refuses a body that is announced in another charset than UTF-8. Whatever media type a client sends
 * is taken for JSON: plain-text defaults of HTTP clients are common, and the parser decides anyway.
 * @throws HttpError 415.
 */
export function requireUtf8(request: IncomingMessage): void {
  const charset = CHARSET.exec(request.headers['content-type'] ?? '')?.[1]?.toLowerCase()
  if (charset === undefined || charset === 'utf-8' || charset === 'utf8') return
  throw new HttpError(415, null, 'Send the body as JSON in UTF-8')
}

/**
 * Reads and parses a JSON body with {@link parseJson}.
 * @throws HttpError 400 with the reason, 413, 415; CallerGone.
 */
export async function readJson(
  request: IncomingMessage,
  limit: number,
): Promise<{ readonly value: unknown; readonly bytes: Buffer }> {
  requireUtf8(request)
  const bytes = await readBody(request, limit)
  const parsed = parseJson(bytes)
  if (!parsed.ok) throw new HttpError(400, 'Invalid JSON', parsed.message)
  return { value: parsed.value, bytes }
}
