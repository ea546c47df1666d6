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
  /**
   * Forwards nothing any more in either direction and closes nothing, as if the server's machine had vanished from the
   * network. New connections are taken and never answered.
   */
  vanish(): void
  /** Forwards what comes from now on; what was swallowed is lost, and the connections it was lost on are ended. */
  comeBack(): void
  /** The same for new connections; those of before stay silent, and nobody is told. */
  comeBackUnnoticed(): void
  /** Ends all connections, and accepts none until {@link restore}. */
  cut(): Promise<void>
  restore(): Promise<void>
  close(): Promise<void>
}

interface Line {
  readonly client: Socket
  readonly server: Socket
  readonly held: Buffer[]
  /** The end of what was sent, in which a text may begin. */
  tail: Buffer
}

/** Listens on a free port of this machine. @param to port of the server. */
export async function startHoldingProxy(to: number): Promise<HoldingProxy> {
  const lines = new Set<Line>()
  const sockets = new Set<Socket>()
  /** Of a server that has vanished. */
  const swallowed = new Set<Socket>()
  let awaited: { readonly text: Buffer; readonly seen: () => void } | null = null
  let holding = false
  let vanished = false

  const listener = createServer((client) => {
    if (vanished) {
      swallowed.add(client)
      client.on('data', () => undefined)
      client.on('error', () => undefined)
      client.once('close', () => swallowed.delete(client))
      return
    }
    const server = connect(to, '127.0.0.1')
    const line: Line = { client, server, held: [], tail: Buffer.alloc(0) }
    lines.add(line)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        sockets.delete(socket)
        lines.delete(line)
        // a machine that vanished says no good-bye
        if (socket === server && swallowed.has(client)) return
        swallowed.delete(client)
        client.destroy()
        server.destroy()
      })
    }
    server.on('data', (bytes) => {
      if (swallowed.has(client)) return
      if (!client.write(bytes)) server.pause()
    })
    client.on('drain', () => server.resume())
    server.on('end', () => swallowed.has(client) || client.end())
    client.on('data', (bytes) => {
      if (swallowed.has(client)) return
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
  const listen = (on: number) => new Promise<void>((resolve) => listener.listen(on, '127.0.0.1', resolve))
  await listen(0)
  const { port } = listener.address() as AddressInfo
  const cut = async () => {
    const closed = new Promise((resolve) => listener.close(resolve))
    for (const socket of [...swallowed, ...sockets]) socket.resetAndDestroy()
    await closed
  }
  return {
    port,
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
    vanish() {
      vanished = true
      for (const { client } of lines) swallowed.add(client)
    },
    comeBack() {
      vanished = false
      for (const socket of swallowed) socket.destroy()
    },
    comeBackUnnoticed() {
      vanished = false
    },
    cut,
    restore: () => listen(port),
    close: cut,
  }
}
