// @module-tag once: it has the log that it needs itself
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EventStoreDBClient } from '@eventstore/db-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LOG_START } from '../../../application/ports/event-log.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { cli } from '../../support/cli.ts'
import { eventStoreProgram } from '../../support/eventstoredb.ts'
import {
  hasOpenssl,
  type SecuredEventStore,
  startSecuredEventStore,
} from '../../support/eventstoredb-secured.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const path = (await hasOpenssl()) ? await eventStoreProgram() : null
const PASSWORD = 'service-Passw0rd'
const DENIED = { type: 'access-denied' }

const grant = (env: Record<string, string>) => cli(['events', 'grant', 'compstream', '--json'], { env })

/** As docs/operators/deployment.md has it: TLS by a CA of one's own, a user that is no administrator, rights by the command. */
describe.skipIf(path === null)('rights on EventStoreDB with TLS and users', () => {
  const directory = temporaryDirectory()
  let server: SecuredEventStore
  const address = (user: string) => server.urlFor(user, PASSWORD)

  beforeAll(async () => {
    server = await startSecuredEventStore(path!)
    for (const user of ['compstream', 'somebody']) await server.addUser(user, PASSWORD)
    const addressFile = join(directory, 'admin')
    await writeFile(addressFile, `${server.urlFor('admin', server.adminPassword)}\n`)
    const { code, json } = await grant({ EVENTSTORE_ADMIN_URL_FILE: addressFile })
    expect([code, json()]).toEqual([0, { user: 'compstream', rights: 'read, append' }])
  })
  afterAll(() => server?.stop())

  test('the user appends and reads, and finds nothing of the server in the log', async () => {
    const event = { type: 'Happened', data: '{"n":1}', metadata: '{}' }
    const log = await openEventStoreEventLog({ url: address('compstream') })
    try {
      expect(await log.head()).toBe(LOG_START)
      expect((await log.readAll({ after: LOG_START, maxCount: 10 })).events).toEqual([])
      const { position } = await log.append('thing-1', -1, [event, event])
      expect(await log.head()).toBe(position)
      const { events } = await log.readAll({ after: LOG_START, maxCount: 10 })
      expect(events.map(({ stream, revision }) => [stream, revision])).toEqual([
        ['thing-1', 0],
        ['thing-1', 1],
      ])
      expect(await log.readStream('thing-1')).toEqual(events)
    } finally {
      await log.close()
    }
  })

  test('the user neither deletes nor cuts a stream, and nobody else reads or appends', async () => {
    const own = EventStoreDBClient.connectionString(address('compstream'))
    await expect(own.deleteStream('thing-1')).rejects.toMatchObject(DENIED)
    await expect(own.tombstoneStream('thing-1')).rejects.toMatchObject(DENIED)
    await expect(own.setStreamMetadata('thing-1', { maxCount: 1 })).rejects.toMatchObject(DENIED)
    await own.dispose()
    await expect(openEventStoreEventLog({ url: address('somebody') })).rejects.toThrow(
      'access is denied to this user',
    )
  })

  test('rights that cannot be given are refused in one line that quotes no secret', async () => {
    const admin = server.urlFor('admin', server.adminPassword)
    for (const [url, why] of [
      [server.urlFor('admin', 'hunter2hunter2'), 'the user or the password is wrong'],
      [address('compstream'), 'access is denied to this user'],
      [`${admin}&keepAliveInterval=hunter2`, 'option keepAliveInterval must be'],
      [`esdb://admin:hunter2@${PASSWORD}@host`, 'is not of the form'],
    ] as const) {
      const { code, stderr } = await grant({ EVENTSTORE_ADMIN_URL: url })
      expect(code).toBe(1)
      expect(JSON.parse(stderr).message).toMatch(/^EventStoreDB at [^\n]+$/)
      expect(stderr).toContain(why)
      for (const secret of ['hunter2', PASSWORD, 'Pa55word']) expect(stderr).not.toContain(secret)
    }
  })
})
