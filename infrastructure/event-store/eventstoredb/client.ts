import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { EventStoreDBClient } from '@eventstore/db-client'
import { readConnectionString } from './connection-string.ts'
import { EventStoreRefused, oneLine } from './errors.ts'

const LONGEST_BACKOFF_MS = 1_000

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

/** Waits before the next attempt, longer each time, and not as long as others do. */
export async function retryPause(attempt: number, signal?: AbortSignal): Promise<void> {
  const longest = Math.min(50 * 2 ** attempt, LONGEST_BACKOFF_MS)
  const options = signal ? { signal } : {}
  await delay(longest / 2 + randomInt(Math.ceil(longest / 2)), undefined, options).catch(() => undefined)
}
