import type { Agent } from 'node:http'
import { request as overHttps } from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { TargetRefused } from './target-guard.ts'

/** Of all that comes back before an answer begins, as interim answers: each of a few bytes costs a parsed head. */
const INTERIM_BYTES = 16 * 1024

interface Outgoing {
  readonly method: 'GET' | 'POST'
  readonly agent: Agent
  readonly headers: Readonly<Record<string, string | number>>
  readonly body?: Buffer
  /** From the look-up of the host to the end of the answer, in real milliseconds. */
  readonly withinMs: number
  /** The fault of an answer that is not whole by then. */
  readonly tooLate: string
  /** Of the answer's body, at the most. */
  readonly bodyBytes: number
  /** Of all that comes back, with what wraps a body. */
  readonly receivedBytes: number
}

/** What came back. */
interface Exchange {
  readonly statusCode: number | null
  readonly body: Buffer
  /** Why the answer is not whole, in words that name no address; null: it is. */
  readonly fault: string | null
  /** Whether more was not waited for. */
  readonly isCut: boolean
}

/**
 * One request to an address that others name, by an agent that checks where it leads.
 * @param request what sends it, default over HTTPS.
 * @throws the reason of the signal when that aborts.
 */
export function exchange(
  url: string,
  { method, agent, headers, body, withinMs, tooLate, bodyBytes, receivedBytes }: Outgoing,
  signal: AbortSignal,
  request: typeof overHttps = overHttps,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let statusCode: number | null = null
    let received = 0
    let bytes = 0
    const end = (settle: () => void) => {
      clearTimeout(limit)
      outgoing.socket?.off('data', count)
      signal.removeEventListener('abort', abort)
      settle()
    }
    const told = (fault: string | null, isCut = false) =>
      end(() => resolve({ statusCode, body: Buffer.concat(chunks), fault, isCut }))
    const stop = (fault: string, isCut = false) => {
      told(fault, isCut)
      outgoing.destroy()
    }
    const abort = () => {
      end(() => reject(signal.reason))
      outgoing.destroy()
    }
    const count = (chunk: Buffer) => {
      received += chunk.length
      if (received >= (statusCode === null ? INTERIM_BYTES : receivedBytes))
        stop('The answer is too long', true)
    }
    const outgoing = request(url, { method, agent, headers })
    const limit = setTimeout(() => stop(tooLate, true), withinMs)
    signal.addEventListener('abort', abort)
    outgoing.on('error', (error) => stop(reasonOf(error, outgoing.socket)))
    outgoing.on('socket', (socket) => socket.on('data', count))
    // an answer that changes the protocol is none
    outgoing.on('upgrade', (response) => {
      statusCode = response.statusCode!
      stop(`The address answered ${statusCode}`)
    })
    outgoing.on('response', (response) => {
      statusCode = response.statusCode!
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > bodyBytes) stop('The answer is too long', true)
        else chunks.push(chunk)
      })
      response.on('end', () => told(null))
      response.on('error', (error) => stop(reasonOf(error)))
    })
    outgoing.end(body)
  })
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused',
  ECONNRESET: 'The connection was closed before an answer came',
  EPIPE: 'The connection was closed before an answer came',
  ETIMEDOUT: 'The connection was not accepted in time',
  EHOSTUNREACH: 'The host cannot be reached',
  ENETUNREACH: 'The host cannot be reached',
  HPE_HEADER_OVERFLOW: 'The headers of the answer are too long',
}

/** Why no answer came, without addresses. @param socket that it failed on. */
function reasonOf(error: Error, socket: Socket | null = null): string {
  if (error instanceof TargetRefused) return error.message
  const { code } = (error instanceof AggregateError ? error.errors[0] : error) as NodeJS.ErrnoException
  if (code === undefined) return 'The connection failed'
  if (code.startsWith('HPE_')) return REASONS[code] ?? 'The answer is no HTTP'
  // rare faults have words alone, which name no host: that its key is too weak, for example
  if (socket instanceof TLSSocket && socket.authorizationError)
    return `The certificate is not accepted (${code === 'UNSPECIFIED' ? error.message : code})`
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) return 'TLS could not be agreed on'
  return REASONS[code] ?? `The connection failed (${code})`
}
