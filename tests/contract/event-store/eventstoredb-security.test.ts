import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { EventStoreDBClient } from '@eventstore/db-client'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type EventLog, LOG_START } from '../../../application/ports/event-log.ts'
import { readConnectionString } from '../../../infrastructure/event-store/eventstoredb/connection-string.ts'
import {
  EventStoreRefused,
  EventStoreUnavailable,
} from '../../../infrastructure/event-store/eventstoredb/errors.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { findEventStore } from '../../support/eventstoredb.ts'
import {
  hasOpenssl,
  type SecuredEventStore,
  startSecuredEventStore,
} from '../../support/eventstoredb-secured.ts'
import { withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { anEvent, aStream, follow, someEvents } from './event-log.contract.ts'

const SECRET = 'Pa55word:/@?&'
const source = await findEventStore()
const path = source?.kind === 'program' && (await hasOpenssl()) ? source.path : null

/** Why a log is not opened: one line, without secrets. */
async function refusal(
  url: string,
  kind: typeof EventStoreUnavailable = EventStoreUnavailable,
  openingPatienceMs = 3_000,
): Promise<string> {
  const error = await openEventStoreEventLog({ url, openingPatienceMs }).then(
    async (log) => {
      await log.close()
      return undefined
    },
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(kind)
  const { message } = error as Error
  expect(message).not.toMatch(/\n|Pa55word/)
  expect(message).toMatch(/^EventStoreDB at [^@]+: \S/)
  return message
}

describe.skipIf(path === null)('EventStoreDB with TLS and users (needs the program, and openssl)', () => {
  let server: SecuredEventStore
  const logs: EventLog[] = []

  beforeAll(async () => {
    server = await startSecuredEventStore(path!)
  })
  afterEach(async () => {
    for (const log of logs.splice(0)) await log.close()
  })
  afterAll(() => server?.stop())

  async function openLog(url: string): Promise<EventLog> {
    const log = await openEventStoreEventLog({ url, patienceMs: 240_000 })
    logs.push(log)
    return log
  }
  const asAdmin = () => server.urlFor('admin', server.adminPassword)

  test('is written, read and followed, and was never refusing when it comes back', async () => {
    const log = await openLog(asAdmin())
    const after = await log.head()
    const stream = aStream()
    const followed = follow(log, { after, pageSize: 10 }, (events) => events.length >= 30)
    followed.catch(() => undefined)
    let restarted: Promise<void> | undefined
    for (let n = 0; n < 30; n += 1) {
      await log.append(stream, n - 1, [anEvent()])
      if (n === 10) restarted = server.kill().then(server.restart)
    }
    await restarted
    expect(await log.readStream(stream)).toHaveLength(30)
    const again = await openLog(asAdmin())
    expect((await follow(again, { after }, (events) => events.length >= 30)).events).toHaveLength(30)
  })

  test('a wrong password is refused, and so is an unknown user', async () => {
    for (const user of ['admin', 'nobody']) {
      expect(await refusal(server.urlFor(user, SECRET), EventStoreRefused)).toMatch(
        /the user or the password is wrong/,
      )
    }
  })

  test('nobody is refused as well', async () => {
    const url = `esdb://${server.host}?tls=true&tlsCaFile=${encodeURIComponent(server.caFile)}`
    expect(await refusal(url, EventStoreRefused)).toMatch(/access is denied/)
  })

  test('a certificate of another authority is refused, and a file that is not there', async () => {
    const url = server.urlFor('admin', server.adminPassword)
    const other = url.replace(/tlsCaFile=.*/, `tlsCaFile=${encodeURIComponent(server.otherCaFile)}`)
    expect(await refusal(other)).toMatch(/certificate/)
    expect(await refusal(url.replace(/tlsCaFile=.*/, 'tlsCaFile=/not/there'), EventStoreRefused)).toMatch(
      /file/i,
    )
  })

  test('without TLS there is no connection', async () => {
    await refusal(`esdb://admin:${encodeURIComponent(SECRET)}@${server.host}?tls=false`)
  })

  test('a user needs to read the whole log, and nothing more than every user may', async () => {
    await server.addUser('compstream', SECRET)
    const url = server.urlFor('compstream', SECRET)
    expect(await refusal(url, EventStoreRefused)).toMatch(/access is denied/)
    const admin = EventStoreDBClient.connectionString(asAdmin())
    await admin.setStreamMetadata('$all', { acl: { readRoles: ['$admins', 'compstream'] } })
    const log = await openLog(url)
    const after = await log.head()
    const stream = aStream()
    await log.append(stream, -1, someEvents(3))
    expect(await log.readStream(stream)).toHaveLength(3)
    expect((await follow(log, { after }, (events) => events.length >= 3)).events).toHaveLength(3)
    expect((await log.readAll({ after: LOG_START, maxCount: 10 })).events.length).toBeGreaterThan(0)

    // a stream that is closed to it is refused at once, without harm to others
    const closed = aStream()
    await admin.setStreamMetadata(closed, { acl: { readRoles: ['$admins'], writeRoles: ['$admins'] } })
    const others = Promise.all(Array.from({ length: 10 }, () => log.append(aStream(), -1, [anEvent()])))
    await expect(log.append(closed, -1, [anEvent()])).rejects.toThrow(EventStoreRefused)
    await expect(log.readStream(closed)).rejects.toThrow(EventStoreRefused)
    expect(await others).toHaveLength(10)
    await admin.dispose()
  })
})

describe('an address where no EventStoreDB is', () => {
  const servers: Server[] = []
  const refusalAt = (url: string) => refusal(url, EventStoreUnavailable, 200)
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })

  async function listening(server: Server): Promise<string> {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test.each([
    ['closes', () => createServer((socket) => socket.destroy())],
    ['answers in HTTP 1', () => createHttpServer((_, answer) => answer.end('hello'))],
    [
      'greets like a mail server',
      () => createServer((socket) => void socket.on('error', () => undefined).write('220 hello\r\n')),
    ],
  ])('and that %s is refused', async (_, make) => {
    const host = await listening(make())
    for (const settings of ['tls=false', 'tls=true']) {
      expect(await refusalAt(`esdb://user:${encodeURIComponent(SECRET)}@${host}?${settings}`)).toContain(host)
    }
    expect(await refusalAt(`esdb://${host},${host}?tls=false`)).toContain(host)
  })

  // the addresses above are refused in the same way, sooner
  test('and that says nothing is refused', { tags: 'long' }, async () => {
    const host = await listening(createServer((socket) => void socket.on('error', () => undefined)))
    const url = `esdb://user:${encodeURIComponent(SECRET)}@${host}?tls=false`
    expect(await withDeadlinesOfTheProduct(() => refusalAt(url))).toContain(host)
  })
})

describe('a connection string', () => {
  test.each([
    'esdb://',
    'esdb://user:Pa55word@',
    'http://user:Pa55word@host:2113',
    'esdb://user:Pa55word@host:port',
    'esdb://user:Pa55word@host:2113:1',
    'esdb://user:Pa55word@more@host:2113',
    'esdb://user:Pa55word:more@host:2113',
    'esdb://user:Pa55word%zz@host:2113',
    'esdb://user:Pa55word/more@host:2113',
    'esdb://user:Pa55word?more=1@host:2113',
    'esdb://user@host:2113',
    'esdb://user:Pa55word@host:2113?tls',
    'esdb://user:Pa55word@host:2113?tls=yes',
    'esdb://user:Pa55word@host:2113?unknown=1',
    'esdb://user:Pa55word@host:2113?tlsVerifyCert=false',
    'esdb://user:Pa55word@host:2113?nodePreference=leader',
    'esdb://user:Pa55word@host:2113?keepAliveInterval=-7',
  ])('that cannot be used is refused without being shown: %s', async (url) => {
    const printed = [vi.spyOn(console, 'warn'), vi.spyOn(console, 'error'), vi.spyOn(console, 'log')]
    await refusal(url, EventStoreRefused)
    for (const spy of printed) {
      expect(spy).not.toHaveBeenCalled()
      spy.mockRestore()
    }
  })

  test.each([
    ['host?keepAliveInterval=abc', 'option keepAliveInterval must be a whole number of milliseconds, or -1'],
    ['host?keep-alive-timeout=1.5', 'option keepAliveTimeout must be a whole number of milliseconds, or -1'],
    ['host?gossipTimeout=0', 'option gossipTimeout must be a whole number of 1 or more'],
    ['host?maxDiscoverAttempts=3x', 'option maxDiscoverAttempts must be a whole number of 1 or more'],
    ['host?tls=yes', 'option tls must be true or false'],
    ['host?tlsVerifyCert=no', 'option tlsVerifyCert must be true or false'],
    ['host?nodePreference=leader', 'option nodePreference has no effect here'],
    ['host?defaultDeadline=5000', 'option defaultDeadline has no effect here'],
    ['host?throwOnAppendFailure=true', 'option throwOnAppendFailure has no effect here'],
    ['host:0', 'ports must be from 1 to 65535'],
    ['one:2113,two:65536', 'ports must be from 1 to 65535'],
    ['[::1]:2113', 'not by IPv6 address'],
    ['ho(st:2113', 'must give host:port'],
  ])('is refused by name: %s', (rest, why) => {
    expect(() => readConnectionString(`esdb://${rest}`)).toThrow(why)
  })

  test('is given to the client with every option that has an effect', () => {
    const { target, forClient } = readConnectionString(
      'kurrentdb+discover://user:p%40ss@one_a:1,10.0.0.3:65535/?TLS=true&tls_ca_file=%2Fca.pem&userCertFile=c' +
        '&userKeyFile=k&connectionName=n&keepAliveInterval=-1&keepAliveTimeout=0&maxDiscoverAttempts=4' +
        '&discoveryInterval=5&gossipTimeout=6&tlsVerifyCert=true',
    )
    expect(target).toBe('one_a:1,10.0.0.3:65535')
    const [address, query] = forClient(1).split('?')
    expect(address).toBe('esdb+discover://user:p%40ss@one_a:1,10.0.0.3:65535')
    expect(Object.fromEntries(new URLSearchParams(query))).toEqual({
      tls: 'true',
      tlsCAFile: '/ca.pem',
      tlsVerifyCert: 'true',
      userCertFile: 'c',
      userKeyFile: 'k',
      connectionName: 'n',
      keepAliveInterval: '-1',
      keepAliveTimeout: '0',
      maxDiscoverAttempts: '4',
      discoveryInterval: '5',
      gossipTimeout: '6',
    })
  })
})
