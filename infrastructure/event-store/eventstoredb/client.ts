import { EventStoreDBClient } from '@eventstore/db-client'
import { oneLine } from './client-errors.ts'
import { readConnectionString } from './connection-string.ts'
import { EventStoreRefused } from './errors.ts'

let opened = 0

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
