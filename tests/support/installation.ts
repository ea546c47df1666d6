import { findEventStore, startEventStore } from './eventstoredb.ts'
import type { ServerSource } from './find-server.ts'
import { natsSource, startNats } from './nats.ts'

const INSTALLATIONS = ['embedded', 'postgres-nats', 'eventstoredb-nats'] as const

/**
 * What the suites run on:
 * `embedded`: one process with a PostgreSQL server of its own and nothing else;
 * `postgres-nats`: one process, PostgreSQL given, NATS;
 * `eventstoredb-nats`: a process for each role, the log in EventStoreDB, read models in PostgreSQL, NATS.
 */
export type InstallationName = (typeof INSTALLATIONS)[number]

/** The switch. */
export const installationName = readSwitch()
/** Whether tests find the log in EventStoreDB, not in PostgreSQL. */
export const isLogInEventStore = installationName === 'eventstoredb-nats'

function readSwitch(): InstallationName {
  const given = process.env.TEST_INSTALLATION || 'embedded'
  const name = INSTALLATIONS.find((one) => one === given)
  if (!name) throw new Error(`TEST_INSTALLATION is "${given}"; it can be ${INSTALLATIONS.join(', ')}`)
  return name
}

/** Why nothing can run on an installation here, in a few words; null when everything that it needs is there. */
export async function whyNot(installation: InstallationName): Promise<string | null> {
  if (installation === 'embedded') return null
  const eventStore =
    installation === 'eventstoredb-nats' ? lacks('EventStoreDB', await findEventStore()) : null
  return eventStore ?? lacks('NATS', natsSource)
}

/** An installation is empty at first, and no other one may hear of it. */
function lacks(what: string, source: ServerSource | null): string | null {
  if (source === null) return `no ${what} server was found`
  return source.kind === 'given' ? `the given ${what} server is shared with others` : null
}

interface Server {
  readonly url: string
  stop(): Promise<void>
}

/** Servers by the database that they belong to. */
const eventStores = new Map<string, Promise<Server>>()
const natsServers = new Map<string, Promise<Server>>()

/** Address of the EventStoreDB server that holds the log of a database; null when the database itself does. */
export async function eventStoreOf(databaseUrl: string): Promise<string | null> {
  if (!isLogInEventStore) return null
  return urlIn(eventStores, databaseUrl, startEventStore)
}

/** Address of the NATS server between the processes on a database; null when there is none. */
export async function natsOf(databaseUrl: string): Promise<string | null> {
  if (installationName === 'embedded') return null
  return urlIn(natsServers, databaseUrl, startNats)
}

/** Ends the servers that belong to a database. */
export async function stopServersOf(databaseUrl: string): Promise<void> {
  const name = databaseOf(databaseUrl)
  await Promise.all(
    [eventStores, natsServers].map(async (servers) => {
      const server = servers.get(name)
      servers.delete(name)
      await (await server)?.stop()
    }),
  )
}

async function urlIn(
  servers: Map<string, Promise<Server>>,
  databaseUrl: string,
  start: () => Promise<Server>,
): Promise<string> {
  const name = databaseOf(databaseUrl)
  const server = servers.get(name) ?? start()
  servers.set(name, server)
  return (await server).url
}

/** A database has one log, whoever connects to it. */
function databaseOf(url: string): string {
  return new URL(url).pathname
}
