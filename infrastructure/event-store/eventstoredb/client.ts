import { createRequire } from 'node:module'
import { EventStoreDBClient } from '@eventstore/db-client'
import { oneLine } from './client-errors.ts'
import { readConnectionString } from './connection-string.ts'
import { EventStoreRefused } from './errors.ts'

let opened = 0

/**
 * Has servers send messages as they are. Since KurrentDB 25.1 each is compressed by itself for clients that take gzip, which
 * costs more time than all the rest. gRPC offers gzip with every call behind all interceptors, and has no option
 * against it, so its own filter is changed, in the copy that the client loads; where a later gRPC has no such filter, reads are slow.
 */
function refuseCompression(): void {
  const ofClient = createRequire(createRequire(import.meta.url).resolve('@eventstore/db-client'))
  try {
    const { prototype } = ofClient('@grpc/grpc-js/build/src/compression-filter').CompressionFilter
    const { sendMetadata } = prototype
    prototype.sendMetadata = async function (...given: unknown[]) {
      const headers = await sendMetadata.apply(this, given)
      headers.set('grpc-accept-encoding', 'identity')
      return headers
    }
  } catch {
    // everything works, as fast as the server compresses
  }
}
refuseCompression()

/** A client and where it goes: `host:port`, several with a comma; for messages. */
export interface Connection {
  readonly target: string
  readonly client: EventStoreDBClient
}

/** Makes a client, which connects when it is used. @throws EventStoreRefused when the address cannot be used. */
export function connect(url: string): Connection {
  let target = 'the given address'
  try {
    const address = readConnectionString(url)
    target = address.target
    opened += 1
    return { target, client: EventStoreDBClient.connectionString(address.forClient(opened)) }
  } catch (error) {
    throw new EventStoreRefused(target, oneLine(error))
  }
}
