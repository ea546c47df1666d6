import { connect, type Socket } from 'node:net'

export interface Answer {
  readonly status: number
  /** Seconds; NaN without that header. */
  readonly retryAfter: number
}

/** The server cut the connection, or did not take it, before the answer was whole. */
export class ConnectionLost extends Error {
  constructor(error: Error | undefined) {
    super(error?.message ?? 'closed before the answer')
    this.name = 'ConnectionLost'
  }
}

const LENGTH = /\r\ncontent-length: *(\d+)/i
const RETRY_AFTER = /\r\nretry-after: *(\d+)/i
const CLOSES = /\r\nconnection: *close/i

/**
 * A client's connection that is kept, for one request at a time. It knows as much of HTTP/1.1 as the answers measured
 * need (a length, no chunks), so that sending the load costs little of the machine that it is measured on.
 */
export class Connection {
  readonly #host: string
  readonly #port: number
  #socket: Socket | null = null
  #received = ''
  #settle: { resolve(answer: Answer): void; reject(error: Error): void } | null = null

  constructor(host: string, port: number) {
    this.#host = host
    this.#port = port
  }

  /**
   * @param headers lines with their ends.
   * @throws ConnectionLost
   */
  exchange(method: string, path: string, headers: string, body: string | null): Promise<Answer> {
    this.#socket ??= this.#open()
    const length = body === null ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
    const text = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${headers}${length}\r\n${body ?? ''}`
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#socket!.write(text)
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = null
  }

  #open(): Socket {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
    // one character is one byte
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#receive(text))
    const lost = (error?: Error) => {
      if (this.#socket !== socket) return
      this.#socket = null
      this.#received = ''
      this.#settle?.reject(new ConnectionLost(error))
      this.#settle = null
    }
    socket.on('error', lost)
    socket.on('close', () => lost())
    return socket
  }

  #receive(text: string): void {
    this.#received += text
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.slice(0, end)
    const length = LENGTH.exec(head)
    const status = Number(head.slice(9, 12))
    if (!length && status !== 204) {
      this.#settle?.reject(new Error('An answer had no length'))
      this.#settle = null
      return
    }
    if (this.#received.length < end + 4 + Number(length?.[1] ?? 0)) return
    this.#received = ''
    if (CLOSES.test(head)) this.close()
    const settle = this.#settle
    this.#settle = null
    settle?.resolve({ status, retryAfter: Number(RETRY_AFTER.exec(head)?.[1] ?? Number.NaN) })
  }
}
