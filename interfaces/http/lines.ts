import type { IncomingMessage } from 'node:http'
import { CallerGone, refuseCompressed, requireUtf8 } from './body.ts'
import { receiveForLong } from './receipt-limit.ts'

/** A line of a body, from 1, without its end; null where it is too long to be read. */
export interface BodyLine {
  readonly line: number
  readonly bytes: Buffer | null
}

/** Bytes of a line at the most. */
export const MAX_LINE_BYTES = 16 * 1024
/** Real milliseconds in which a caller has to send something more. */
const SILENCE_MS = 60_000

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d]
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/**
 * Takes a body line by line, as it comes: no more of it is taken than is asked for. Blank lines count and are left out.
 * @param atOnce lines that are yielded together.
 * @throws HttpError 415; CallerGone, also where the caller is silent for too long.
 */
export async function* linesOf(
  request: IncomingMessage,
  atOnce: number,
): AsyncGenerator<readonly BodyLine[], void, void> {
  refuseCompressed(request)
  requireUtf8(request)
  receiveForLong(request)
  const cutter = new LineCutter()
  let lines: BodyLine[] = []
  for await (const part of partsOf(request)) {
    for (const line of cutter.cut(part)) {
      if (lines.push(line) < atOnce) continue
      yield lines
      lines = []
    }
  }
  const last = cutter.last()
  if (last) lines.push(last)
  if (lines.length > 0) yield lines
}

/** The parts of a body. A reader that stops leaves the connection open for the answer. */
async function* partsOf(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  const waiting = () => setTimeout(() => request.destroy(), SILENCE_MS)
  let silence = waiting()
  try {
    for await (const part of request.iterator({ destroyOnReturn: false })) {
      // what is done with it is not the caller's time
      clearTimeout(silence)
      yield part
      silence = waiting()
    }
  } catch {
    throw new CallerGone()
  } finally {
    clearTimeout(silence)
    request.resume()
  }
  if (!request.complete) throw new CallerGone()
}

/** Cuts bytes into lines. */
class LineCutter {
  #line = 0
  /** What has come of a line that is not over. */
  #begun: Buffer[] = []
  #bytes = 0

  /** The line after the last line feed, if there is one. */
  last(): BodyLine | null {
    return this.#bytes > 0 ? this.#end() : null
  }

  *cut(part: Buffer): Generator<BodyLine, void, void> {
    for (let from = 0; from < part.length; ) {
      const end = part.indexOf(LINE_FEED, from)
      this.#take(part.subarray(from, end < 0 ? part.length : end))
      if (end < 0) return
      const line = this.#end()
      if (line) yield line
      from = end + 1
    }
  }

  #take(bytes: Buffer): void {
    this.#bytes += bytes.length
    // of what is too long, only how long it is counts
    if (this.#bytes <= MAX_LINE_BYTES) this.#begun.push(bytes)
    else this.#begun = []
  }

  #end(): BodyLine | null {
    this.#line += 1
    const { length } = this.#begun
    const whole = length === 1 ? this.#begun[0]! : Buffer.concat(this.#begun)
    const isTooLong = this.#bytes > MAX_LINE_BYTES
    this.#begun = []
    this.#bytes = 0
    if (isTooLong) return { line: this.#line, bytes: null }
    const bytes = this.#line === 1 ? withoutMark(whole) : whole
    return isBlank(bytes) ? null : { line: this.#line, bytes }
  }
}

function withoutMark(bytes: Buffer): Buffer {
  const isMarked = bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
  return isMarked ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === CARRIAGE_RETURN)
}
