import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../../infrastructure/event-store/eventstoredb/client.ts'

const encodings: unknown[] = []
const server = createServer()
server.on('stream', (stream, headers) => {
  encodings.push(headers['grpc-accept-encoding'])
  // UNIMPLEMENTED
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' },
    { endStream: true },
  )
})
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => void server.close())

test('servers of the log are asked for messages that are not compressed', async () => {
  const { port } = server.address() as AddressInfo
  const { client } = connect(`esdb://127.0.0.1:${port}?tls=false`)
  const reading = async () => {
    for await (const _ of client.readStream('any')) break
  }
  await expect(reading()).rejects.toThrow()
  await client.dispose()
  expect(encodings.length).toBeGreaterThan(0)
  expect(new Set(encodings)).toEqual(new Set(['identity']))
})
