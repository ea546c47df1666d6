import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Admission } from '../../interfaces/http/admission.ts'
import { writeCoreError } from '../../interfaces/http/errors.ts'
import { RateLimiter } from '../../interfaces/http/rate-limit.ts'
import { createHost, type HostSettings, type Listener, listen } from '../../interfaces/http/server.ts'

/** Listens as the service does, and limits nobody. @param settings routes at the least. */
export function listenWith(
  settings: Partial<HostSettings> & Pick<HostSettings, 'routes'>,
  port = 0,
): Promise<Listener> {
  const host = createHost({
    addresses: new RateLimiter(0),
    admission: new Admission(),
    url: () => 'http://host.test',
    writeError: writeCoreError,
    newRequestId: () => 'id',
    onFailure: () => undefined,
    ...settings,
  })
  return listen(host, '127.0.0.1', port)
}

/** A server of Node alone, on a free port of this machine. */
export async function plainServer(
  listener: RequestListener,
): Promise<{ server: Server; port: number; url: string }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { server, port, url: `http://127.0.0.1:${port}` }
}

/** A promise that ends when the test says so. */
export function deferred<Value = void>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((end) => {
    resolve = end
  })
  return { promise, resolve }
}
