// @module-tag once: it has the log that it needs itself
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../infrastructure/clock/system-clock.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { openDatabase } from '../../../infrastructure/database/database.ts'
import { openEventStoreEventLog } from '../../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { OtherEventLog, rememberLog, UNFINISHED } from '../../../infrastructure/installation/log-pairing.ts'
import { EncryptedPersonalData } from '../../../infrastructure/secrets/personal-data.ts'
import { PostgresSecretVault } from '../../../infrastructure/secrets/vault.ts'
import { PostgresDeliveryRecords } from '../../../infrastructure/webhooks/delivery-records.ts'
import { someEvents } from '../../contract/event-store/event-log.contract.ts'
import { cli, expectRefused } from '../../support/cli.ts'
import { createTestDatabase, sessionsThatWait } from '../../support/database.ts'
import { type EventStoreServer, findEventStore, startEventStore } from '../../support/eventstoredb.ts'
import { withClient } from '../../support/table-copies.ts'
import { withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'

const MASTER_KEY = randomBytes(32)
const LOG_STAYS = ['events', 'copy', '--json', '--from', 'LOG', '--to', 'LOG']
const person = (n: number) => `person/${String(n).repeat(24)}`

describe.skipIf((await findEventStore()) === null)('a log stays in EventStoreDB, its database moves', () => {
  let server: EventStoreServer
  beforeAll(async () => {
    server = await startEventStore()
    const log = await openEventStoreEventLog({ url: server.url })
    await log.append('a-1', -1, someEvents(3))
    await log.close()
  })
  afterAll(() => server?.stop())

  let [from, to] = ['', '']
  beforeEach(async () => {
    const databases = [await createTestDatabase(), await createTestDatabase()]
    ;[from, to] = databases.map(({ url }) => url) as [string, string]
    await serve(from, [person(1)])
    return async () => {
      for (const { drop } of databases) await drop()
    }
  })

  /** What a service leaves behind that seals values of persons, and whatever else is done meanwhile. */
  async function serve(
    url: string,
    persons: readonly string[],
    meanwhile: (personalData: EncryptedPersonalData) => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    const database = await openDatabase({ url, applicationName: 'test' })
    const log = await openEventStoreEventLog({ url: server.url })
    try {
      await rememberLog(database.pool, 'eventstoredb', log)
      const masterKeys = new MasterKeys([MASTER_KEY])
      const vault = new PostgresSecretVault(database.pool, masterKeys, systemClock)
      const parts = { pool: database.pool, vault, masterKeys, clock: systemClock }
      const personalData = await EncryptedPersonalData.open(parts)
      const items = persons.map((subject) => ({ subject, context: 'c', plaintext: 'Ada' }))
      await personalData.seal(items)
      await database.pool.query(
        `INSERT INTO runtime.process_managers (name, position, epoch) VALUES ('pipeline', 0, 1)
         ON CONFLICT (name) DO UPDATE SET epoch = process_managers.epoch + 1`,
      )
      await meanwhile(personalData)
    } finally {
      await log.close()
      await database.close()
    }
  }

  const move = (source: string, target: string) =>
    cli([...LOG_STAYS, '--from-database', source, '--to-database', target], {
      env: { LOG: server.url, MASTER_KEY: MASTER_KEY.toString('base64') },
    })

  const keysOf = (url: string) =>
    withClient(url, async (client) => {
      const { rows } = await client.query('SELECT subject, wrapped IS NULL AS erased FROM runtime.data_keys')
      return Object.fromEntries(rows.map(({ subject, erased }) => [subject, erased ? 'erased' : 'present']))
    })
  const markOf = (url: string) =>
    withClient(url, async (client) => {
      const { rows } = await client.query('SELECT moved_to FROM runtime.log_binding')
      return rows[0].moved_to as string | null
    })
  const mark = (url: string, movedTo: string | null) =>
    withClient(url, (client) => client.query('UPDATE runtime.log_binding SET moved_to = $1', [movedTo]))

  async function expectMoved(source: string, target: string, outcome: 'moved' | 'moved before') {
    const run = await move(source, target)
    expect(run.code, run.stderr).toBe(0)
    expect(run.json()).toMatchObject({ equal: true, copied: 0, database: { outcome } })
    expect(await markOf(source)).toMatch(/^PostgreSQL at /)
    expect(await markOf(target)).toBeNull()
  }

  test('the same command leaves alone what the target made since', async () => {
    await expectMoved(from, to, 'moved')
    await serve(to, [person(2)], (personalData) => personalData.destroyKey(person(1), 1))
    const keys = await keysOf(to)
    expect(keys).toEqual({ [person(1)]: 'erased', [person(2)]: 'present' })
    await expectMoved(from, to, 'moved before')
    expect(await keysOf(to)).toEqual(keys)
  })

  test('deliveries of webhooks move with all that is known of them', async () => {
    const delivery = (id: string) => ({ deliveryId: id, eventId: 'e', subscriptionId: 's', createdAt: 5 })
    const withRecords = async <T>(url: string, ask: (records: PostgresDeliveryRecords) => Promise<T>) => {
      const pool = new pg.Pool({ connectionString: url })
      try {
        return await ask(new PostgresDeliveryRecords(pool))
      } finally {
        await pool.end()
      }
    }
    await withRecords(from, async (records) => {
      const event = {
        eventId: 'e',
        tenantId: 't',
        environment: 'live',
        eventType: 'installment.paid',
      } as const
      await records.add(
        [{ ...event, body: '{"a":"\\u0000 \\\\ \\n"}', createdAt: 5 }],
        [delivery('d1'), delivery('d2')],
      )
      await records.record({
        deliveryId: 'd1',
        subscriptionId: 's',
        attempt: 1,
        at: 6,
        statusCode: 500,
        error: 'The address answered 500',
        status: 'failed',
        rung: 3,
        nextAttemptAt: 7,
        revision: 4,
        counts: 'failure',
      })
      await records.resetFailures('other', 9)
    })
    const shown = (url: string) =>
      withRecords(url, async (records) => [
        ...[await records.list('s', 9), await records.failureCounts(['s', 'other'])],
        await withClient(url, async (client) => {
          const { rows } = await client.query(
            'SELECT delivery_id, state, rung, revision FROM webhooks.deliveries ORDER BY delivery_id',
          )
          return rows
        }),
      ])
    const before = await shown(from)
    expect((before[0] as readonly unknown[]).length).toBe(2)
    const run = await move(from, to)
    expect(run.json()).toMatchObject({ database: { carried: { webhook_deliveries: 2 } } })
    expect(await shown(to)).toEqual(before)
    // what comes later is newer
    await withRecords(to, (records) => records.add([], [delivery('d3')]))
    expect((await withRecords(to, (records) => records.list('s', 9))).map(({ _id }) => _id)).toEqual([
      'd3',
      'd2',
      'd1',
    ])
  })

  test('killed before it could mark the source, only the source starts, and the same command carries what it made since', async () => {
    await expectMoved(from, to, 'moved')
    await mark(from, null)
    await mark(to, UNFINISHED)
    await expect(serve(to, [])).rejects.toThrow(/^a move of an installation to this database has not ended: /)
    await serve(from, [person(2)], (personalData) => personalData.destroyKey(person(1), 1))
    await expectMoved(from, to, 'moved')
    expect(await keysOf(to)).toEqual({ [person(1)]: 'erased', [person(2)]: 'present' })
  })

  test('killed between its two marks, nobody starts, and the same command completes it', async () => {
    await expectMoved(from, to, 'moved')
    await mark(to, UNFINISHED)
    await expect(serve(to, [])).rejects.toThrow(OtherEventLog)
    await expect(serve(from, [])).rejects.toThrow(OtherEventLog)
    await expectMoved(from, to, 'moved')
    await serve(to, [person(2)])
    expect(Object.keys(await keysOf(to))).toHaveLength(2)
  })

  test('a move that has not ended is no place to move from', async () => {
    await expectMoved(from, to, 'moved')
    await mark(from, null)
    await mark(to, UNFINISHED)
    const run = await move(to, from)
    expectRefused(run, /has not ended: repeat it first/)
    expect([await markOf(from), await markOf(to)]).toEqual([null, UNFINISHED])
  })

  test('back and forth, each time with all keys', async () => {
    await expectMoved(from, to, 'moved')
    await serve(to, [person(2)])
    await expectMoved(to, from, 'moved')
    await serve(from, [person(3)])
    await expectMoved(to, from, 'moved before')
    await expectMoved(from, to, 'moved')
    expect(Object.keys(await keysOf(to))).toHaveLength(3)
  })

  test('refused where services may have worked on both', async () => {
    await expectMoved(from, to, 'moved')
    // as a backup from before the move has it
    await mark(from, null)
    await serve(to, [person(3)])
    const keys = [await keysOf(from), await keysOf(to)]
    const run = await move(from, to)
    expectRefused(run, /services may have worked on both/)
    expect([await keysOf(from), await keysOf(to)]).toEqual(keys)
    expect([await markOf(from), await markOf(to)]).toEqual([null, null])
  })

  test('refused from a place that was left, also to an empty database', async () => {
    const third = await createTestDatabase()
    try {
      await expectMoved(from, to, 'moved')
      await serve(to, [person(2)], (personalData) => personalData.destroyKey(person(1), 1))
      const run = await move(from, third.url)
      expectRefused(run, /was moved from here to PostgreSQL at/)
      expect(await keysOf(third.url)).toEqual({})
      await expectMoved(to, third.url, 'moved')
      expect(await keysOf(third.url)).toEqual({ [person(1)]: 'erased', [person(2)]: 'present' })
    } finally {
      await third.drop()
    }
  })

  test('a service that starts on the source meanwhile is noticed before the target may start', async () => {
    const { moving, service } = await withClient(to, async (holder) => {
      await holder.query('BEGIN')
      await holder.query('LOCK TABLE runtime.process_managers IN EXCLUSIVE MODE')
      const running = withDeadlinesOfTheProduct(() => move(from, to))
      await expect.poll(() => sessionsThatWait(holder)).toBe(1)
      const started = new pg.Client({ connectionString: from, application_name: 'compstream' })
      await started.connect()
      await holder.query('COMMIT')
      return { moving: running, service: started }
    })
    const run = await moving
    await service.end()
    expectRefused(run, /is in use by a service/)
    await expect(serve(to, [])).rejects.toThrow(OtherEventLog)
    await expectMoved(from, to, 'moved')
  })
})
