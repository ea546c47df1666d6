import type { IncomingMessage } from 'node:http'
import { whileReceiving } from './admission.ts'
import type { Costs } from './costs.ts'
import { HttpError } from './errors.ts'
import type { JsonFault } from './json/reader.ts'

/** Largest body of the core API and the tool server, in bytes. */
export const LARGE_BODY = 10 * 1024 * 1024
/** Largest body of every other host, in bytes. */
export const SMALL_BODY = 1024 * 1024

/** The caller went away while its body was being read: no answer is needed. */
export class CallerGone extends Error {
  constructor() {
    super('The caller closed the connection before its request was complete')
    this.name = 'CallerGone'
  }
}

/**
 * Reads the whole body as bytes.
 * @param limit bytes at the most.
 * @param costs what the body counts for; a large one waits for its turn before more of it is taken.
 * @throws HttpError 413 when the body is larger, 415 when it is compressed, 429; CallerGone.
 */
export async function readBody(request: IncomingMessage, limit: number, costs?: Costs): Promise<Buffer> {
  refuseCompressed(request)
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limit) throw tooLarge(limit)
  if (announced > MEASURED_BYTES) await costs?.measure({ bytes: announced })
  return received(request, limit, async (size) => {
    if (size > limit) throw tooLarge(limit)
    if (size > announced) await costs?.measure({ bytes: size })
    return false
  })
}

/** @throws HttpError 415 for a body that is compressed. */
export function refuseCompressed({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding']
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return
  throw new HttpError(415, null, 'Compressed bodies are not accepted; send it as it is')
}

/**
 * Reads the beginning of a body, as far as it comes in time.
 * @param limit bytes, about: what came along with the last of them is there, too.
 * @param waitMs real milliseconds.
 */
export function readBeginning(request: IncomingMessage, limit: number, waitMs: number): Promise<Buffer> {
  return received(request, limit, async (size) => size >= limit, waitMs)
}

/** A body that has come already is there at once. */
function received(...of: Parameters<typeof receive>): Promise<Buffer> {
  const [request] = of
  return request.complete ? receive(...of) : whileReceiving(request, () => receive(...of))
}

/** Bytes between two looks at how much of a body there is. */
const MEASURED_BYTES = 64 * 1024

/**
 * Collects a body until it ends or `onGrowth` says that it is enough, or throws. It is asked every
 * {@link MEASURED_BYTES}, about, and beyond the limit. What still comes then is thrown away by the
 * server after the answer.
 */
function receive(
  request: IncomingMessage,
  limit: number,
  onGrowth: (size: number) => Promise<boolean>,
  waitMs?: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // what has happened already raises no further event
    if (request.destroyed) {
      reject(new CallerGone())
      return
    }
    const parts: Buffer[] = []
    let recent: Buffer[] = []
    let size = 0
    let measured = 0
    const settle = (done: () => void) => {
      clearTimeout(timer)
      request.removeListener('data', onData)
      request.removeListener('end', onEnd)
      request.removeListener('error', onGone)
      request.removeListener('close', onGone)
      done()
      request.resume()
    }
    const onGone = () => settle(() => reject(new CallerGone()))
    const onEnd = () => settle(() => resolve(whole([...parts, ...recent])))
    const onData = (part: Buffer) => {
      recent.push(part)
      size += part.length
      if (size - measured < MEASURED_BYTES && size <= limit) return
      measured = size
      // a body may come byte by byte, and each part takes a hundred bytes of its own
      parts.push(whole(recent))
      recent = []
      request.pause()
      onGrowth(size).then(
        (isEnough) => (isEnough ? onEnd() : request.resume()),
        (error) => settle(() => reject(error)),
      )
    }
    const timer = waitMs === undefined ? undefined : setTimeout(onEnd, waitMs)
    request.on('data', onData)
    request.once('end', onEnd)
    request.once('error', onGone)
    request.once('close', onGone)
  })
}

function whole(parts: readonly Buffer[]): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

function tooLarge(limit: number): HttpError {
  const kib = limit / 1024
  const most = kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`
  return new HttpError(413, null, `The body is larger than ${most}`)
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

/** The refusal of a body that {@link parseJson} refused. @param word the host's word for bad JSON. */
export function unreadable(
  { kind, message, path: field }: { kind: JsonFault; message: string; path?: string },
  word: string | null,
): HttpError {
  return kind === 'values'
    ? new HttpError(413, null, message)
    : new HttpError(400, word, message, { code: 'invalid_json', field })
}
