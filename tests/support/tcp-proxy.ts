import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between a process and a server that can be out of reach. */
export interface TcpProxy {
  readonly port: number
  /** Ends all connections, and accepts none until {@link restore}. */
  cut(): Promise<void>
  restore(): Promise<void>
  close(): Promise<void>
}

/** Listens on a free port of this machine. @param to where the server listens. */
export async function startTcpProxy(to: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const listener = createServer((client) => {
    const server = connect(to)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one)
      one.setNoDelay(true)
      one.on('error', () => undefined)
      one.once('close', () => {
        sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      listener.once('error', reject)
      listener.listen(port, '127.0.0.1', () => {
        listener.off('error', reject)
        resolve()
      })
    })
  await listen(0)
  const { port } = listener.address() as AddressInfo
  const cut = async () => {
    if (!listener.listening) return
    const closed = new Promise((resolve) => listener.close(resolve))
    for (const socket of sockets) socket.resetAndDestroy()
    await closed
  }
  return { port, cut, restore: () => listen(port), close: cut }
}
