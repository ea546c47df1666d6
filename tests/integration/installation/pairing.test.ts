import { randomBytes, randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import type { EventLog } from '../../../application/ports/event-log.ts'
import { ERASED } from '../../../application/ports/personal-data.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { systemClock } from '../../../infrastructure/clock/system-clock.ts'
import { ConfigError } from '../../../infrastructure/config-error.ts'
import { MasterKeyError, MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { type Database, openDatabase } from '../../../infrastructure/database/database.ts'
import {
  type LogEngine,
  OtherEventLog,
  readPairing,
} from '../../../infrastructure/installation/log-pairing.ts'
import { KeysMissing, pairWithLog } from '../../../infrastructure/installation/pairing.ts'
import {
  EncryptedPersonalData,
  FINGERPRINT_ROOT,
  SealedValueError,
} from '../../../infrastructure/secrets/personal-data.ts'
import { PostgresSecretVault } from '../../../infrastructure/secrets/vault.ts'
import { createTestDatabase } from '../../support/database.ts'
import { isLogInEventStore } from '../../support/installation.ts'
import { openTestLog } from '../../support/log.ts'
import { copyTables, writeTables } from '../../support/table-copies.ts'

const ENGINE: LogEngine = isLogInEventStore ? 'eventstoredb' : 'postgresql'
const KEY_CHECK_VALUE = 'KeyCheckValueRecorded'

const registry = new EventRegistry(aggregates)
const masterKeys = new MasterKeys([randomBytes(32)])

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Side {
  readonly url: string
  readonly pool: Database['pool']
  readonly database: Database
}

async function emptyDatabase(): Promise<Side> {
  const created = await createTestDatabase()
  closers.push(created.drop)
  const database = await openDatabase({ url: created.url })
  closers.push(database.close)
  return { url: created.url, pool: database.pool, database }
}

/** A database and its log, both empty. */
async function open(): Promise<Side & { log: EventLog }> {
  const { url, pool, database } = await emptyDatabase()
  const log = await openTestLog(database, url)
  closers.push(() => log.close())
  return { url, pool, database, log }
}

const pair = ({ database }: Side, log: EventLog, keys = masterKeys) =>
  pairWithLog({
    database,
    log,
    registry,
    engine: ENGINE,
    masterKeys: keys,
    setting: 'DATABASE_URL',
    report: () => undefined,
  })

async function typesIn(log: EventLog): Promise<string[]> {
  return (await log.readAll({ after: 0n, maxCount: 1_000 })).events.map(({ type }) => type)
}

const personalDataIn = ({ pool }: Side) =>
  EncryptedPersonalData.open({
    pool,
    masterKeys,
    clock: systemClock,
    vault: new PostgresSecretVault(pool, masterKeys, systemClock),
  })

/** An event with a personal value in it, as an earlier release would have written it as the first one. */
async function appendSealed(side: Side, log: EventLog, subject = 'person/0123456789abcdef01234567') {
  const personalData = await personalDataIn(side)
  const [value] = await personalData.seal([{ subject, context: 'c', plaintext: 'Ada' }])
  if (!value) throw new Error('nothing was sealed')
  await log.append(`test-${randomUUID()}`, -1, [
    {
      type: 'SomethingHappened',
      data: JSON.stringify({ name: value }),
      metadata: '{"schema_version":1}',
    },
  ])
  return value
}

const KEYS = ['runtime.data_keys', 'runtime.secrets']

/** A refused start leaves nothing behind: no root, no binding, no event. */
async function expectRefused(side: Side, log: EventLog, message: RegExp | typeof KeysMissing) {
  const before = await typesIn(log)
  const secrets = async () => (await side.pool.query('SELECT ref FROM runtime.secrets')).rows
  const [kept, binding] = [await secrets(), await readPairing(side.pool)]
  for (let start = 0; start < 2; start += 1) {
    const refused = await pair(side, log).then(
      () => null,
      (error: Error) => error,
    )
    expect(refused).toBeInstanceOf(KeysMissing)
    expect(refused!.message).not.toContain('\n')
    if (message instanceof RegExp) expect(refused!.message).toMatch(message)
  }
  expect(await typesIn(log)).toEqual(before)
  expect(await secrets()).toEqual(kept)
  expect(await readPairing(side.pool)).toEqual(binding)
}

test('an empty log and an empty database become a pair; several processes may start at once', {
  tags: 'each-log',
}, async () => {
  const side = await open()
  await Promise.all(Array.from({ length: 5 }, () => pair(side, side.log)))
  await pair(side, side.log)
  expect(await typesIn(side.log)).toEqual([KEY_CHECK_VALUE])
  expect(await readPairing(side.pool)).toMatchObject({ engine: ENGINE, firstEventId: expect.any(String) })
})

test('the check value tells nothing of the root, and no two logs begin with the same event', async () => {
  const [one, other] = [await open(), await open()]
  const first = await Promise.all(
    [one, other].map(async (side) => {
      await pair(side, side.log)
      const [event] = (await side.log.readAll({ after: 0n, maxCount: 1 })).events
      return event!
    }),
  )
  expect(first[0]!.eventId).not.toBe(first[1]!.eventId)
  const root = await new PostgresSecretVault(one.pool, masterKeys, systemClock).get(FINGERPRINT_ROOT)
  const { key_check_value: value } = JSON.parse(first[0]!.data)
  expect(Buffer.from(root!, 'base64').toString('hex')).not.toContain(value)
})

test('what another program wrote behind the check value stops no start, in its place it is named in one line', async () => {
  const side = await open()
  await pair(side, side.log)
  const foreign = () => [{ type: 'SomethingForeign', data: '{}', metadata: '{}' }]
  await side.log.append('installation-service', 0, foreign())
  await pair(side, side.log)
  const other = await open()
  await pair(other, other.log)
  const first = await open()
  await first.log.append('installation-service', -1, foreign())
  await writeTables(first.url, await copyTables(other.url, ['runtime.secrets']))
  await expect(pair(first, first.log)).rejects.toThrow(
    new ConfigError(
      'the event log cannot be used: Event SomethingForeign at installation-service@0 cannot be read: unknown event type',
    ),
  )
})

test('a log on an empty database is refused', async () => {
  const [full, empty] = [await open(), await emptyDatabase()]
  await pair(full, full.log)
  await expectRefused(
    empty,
    full.log,
    /^DATABASE_URL: the event log holds events, and this database holds no/,
  )
  await pair(full, full.log)
})

test('a log of an earlier release on an empty database is refused, on its own it gets its check value', async () => {
  const [full, empty] = [await open(), await emptyDatabase()]
  await appendSealed(full, full.log)
  await expectRefused(empty, full.log, /holds no keys of it/)
  await pair(full, full.log)
  await pair(full, full.log)
  expect(await typesIn(full.log)).toEqual(['SomethingHappened', KEY_CHECK_VALUE])
})

test('a database that lost its keys is refused by its own log', async () => {
  const side = await open()
  await pair(side, side.log)
  await appendSealed(side, side.log)
  const keys = await copyTables(side.url, KEYS)
  await side.pool.query('TRUNCATE runtime.secrets')
  await expectRefused(side, side.log, /holds no keys of it/)
  await writeTables(side.url, keys.slice(1))
  await side.pool.query('TRUNCATE runtime.data_keys')
  await expectRefused(side, side.log, /lacks the data keys of personal values/)
  await writeTables(side.url, keys.slice(0, 1))
  await pair(side, side.log)
})

test('the keys of another installation are refused, whether or not the log has its check value', async () => {
  const [full, old, other] = [await open(), await open(), await open()]
  await pair(full, full.log)
  await appendSealed(full, full.log)
  await appendSealed(old, old.log)
  await pair(other, other.log)
  const keys = await copyTables(other.url, KEYS)
  const restored = await emptyDatabase()
  await writeTables(restored.url, keys)
  await expectRefused(restored, full.log, /holds the keys of another event log/)
  await expectRefused(restored, old.log, /lacks the data keys/)
  await expect(pair(other, full.log)).rejects.toThrow(OtherEventLog)
  await pair(old, old.log)
})

test('two installations that start on one empty log at once: one of them gets it', async () => {
  const [one, other] = [await open(), await emptyDatabase()]
  const outcomes = await Promise.allSettled([pair(one, one.log), pair(other, one.log)])
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(await typesIn(one.log)).toEqual([KEY_CHECK_VALUE])
})

test('its keys alone, in an empty database, are enough', async () => {
  const [full, restored] = [await open(), await emptyDatabase()]
  await pair(full, full.log)
  await appendSealed(full, full.log)
  await writeTables(restored.url, await copyTables(full.url, KEYS))
  await pair(restored, full.log)
})

test('an older backup of the keys is taken: what it lacks reads as unreadable, what it destroyed as erased', async () => {
  const side = await open()
  await pair(side, side.log)
  const subjects = ['person/0123456789abcdef01234567', 'person/eeeeeeeeeeeeeeeeeeeeeeee'] as const
  const [kept, erased] = [
    await appendSealed(side, side.log, subjects[0]),
    await appendSealed(side, side.log, subjects[1]),
  ]
  await (await personalDataIn(side)).destroyKey(subjects[1], 1)
  const backup = await copyTables(side.url, KEYS)
  const newer = await appendSealed(side, side.log, 'person/ffffffffffffffffffffffff')
  const restored = await emptyDatabase()
  await writeTables(restored.url, backup)
  await pair(restored, side.log)
  const personalData = await personalDataIn(restored)
  const values = [kept, erased].map((value) => ({ value, context: 'c' }))
  expect(await personalData.open(values)).toEqual(['Ada', ERASED])
  await expect(personalData.open([{ value: newer, context: 'c' }])).rejects.toThrow(SealedValueError)
})

test('another master key is refused by name of the setting', async () => {
  const side = await open()
  await pair(side, side.log)
  const wrong = pair(side, side.log, new MasterKeys([randomBytes(32)]))
  await expect(wrong).rejects.toThrow(MasterKeyError)
  await expect(wrong).rejects.toThrow(/^MASTER_KEY does not contain the key [0-9a-f]{16} that [^\n]+$/)
})
