import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between a process and a server, which it can make silent, or unreachable. */
export interface HoldingProxy {
  readonly port: number
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

/** Listens on a free port of this machine. @param to port of the server. */
export async function startHoldingProxy(to: number): Promise<HoldingProxy> {
  /** Connections of the process that lead to the server. */
  const clients = new Set<Socket>()
  const sockets = new Set<Socket>()
  /** Of a server that has vanished. */
  const swallowed = new Set<Socket>()
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
    clients.add(client)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        sockets.delete(socket)
        clients.delete(client)
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
      server.write(bytes)
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
    vanish() {
      vanished = true
      for (const client of clients) swallowed.add(client)
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
