import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * Stands between a process and a server. It can hold back what the process sends from a chosen moment on, as if
 * process and network had stood still just then.
 */
export interface HoldingProxy {
  readonly port: number
  /** Holds back everything as soon as the process sends a text; resolves then. */
  holdAt(text: string): Promise<void>
  /** Sends on what was held; resolves when the server has answered all of it, or ended the connection. */
  release(): Promise<void>
  close(): Promise<void>
}

interface Line {
  readonly server: Socket
  readonly held: Buffer[]
  /** The end of what was sent, in which a text may begin. */
  tail: Buffer
}

/** Listens on a free port of this machine. @param to port of the server. */
export async function startHoldingProxy(to: number): Promise<HoldingProxy> {
  const lines = new Set<Line>()
  const sockets = new Set<Socket>()
  let awaited: { readonly text: Buffer; readonly seen: () => void } | null = null
  let holding = false

  const listener = createServer((client) => {
    const server = connect(to, '127.0.0.1')
    const line: Line = { server, held: [], tail: Buffer.alloc(0) }
    lines.add(line)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        sockets.delete(socket)
        lines.delete(line)
        client.destroy()
        server.destroy()
      })
    }
    server.pipe(client)
    client.on('data', (bytes) => {
      if (awaited) {
        const sent = Buffer.concat([line.tail, bytes])
        line.tail = sent.subarray(Math.max(0, sent.length - awaited.text.length))
        if (sent.includes(awaited.text)) {
          holding = true
          awaited.seen()
          awaited = null
        }
      }
      if (holding) line.held.push(bytes)
      else server.write(bytes)
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    holdAt: (text) =>
      new Promise((seen) => {
        awaited = { text: Buffer.from(text), seen }
      }),
    async release() {
      holding = false
      await Promise.all(
        [...lines]
          .filter(({ held }) => held.length > 0)
          .map(async ({ server, held }) => {
            const answered = new Promise<void>((resolve) => {
              server.once('data', () => resolve())
              server.once('close', () => resolve())
            })
            for (const bytes of held.splice(0)) server.write(bytes)
            await answered
          }),
      )
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}
