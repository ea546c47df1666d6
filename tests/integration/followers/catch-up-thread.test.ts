import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { inThreads } from '../../../infrastructure/read-models/catch-up-thread.ts'
import { PostgresProjectionStore } from '../../../infrastructure/read-models/projection-store.ts'
import { schemaName } from '../../../infrastructure/read-models/tables.ts'
import { employers } from '../../../projections/parties/employers.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { eventStoreOf } from '../../support/installation.ts'
import {
  openRegistrationProcess,
  type RegistrationProcess,
  registerInsured,
} from '../../support/registrations.ts'

/** What the built thread catches up on: employers, under the first epoch. */
const ARREARS = { projection: employers.name, generation: 1, epoch: 1 }

let database: TestDatabase
let process: RegistrationProcess
let store: PostgresProjectionStore

beforeEach(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  store = new PostgresProjectionStore(process.bench.database)
  const { version, tables } = employers
  await store.generations.create({ ...ARREARS, version, tables, role: 'shadow', autoSwitch: true }, 1)
})
afterEach(async () => {
  await process.bench.close()
  await database.drop()
})

async function catchUpOf(databaseUrl = database.url) {
  const eventStoreUrl = await eventStoreOf(database.url)
  return inThreads({ databaseUrl, eventStoreUrl, technicalDeadlineScale: 1 }, (reason) => {
    throw new Error(reason)
  })
}

/** Where the generation stands, and how many rows it has. */
async function stored(): Promise<{ position: bigint; rows: number }> {
  const [record] = await store.generations.all()
  const { rows } = await process.bench.database.pool.query(`SELECT FROM ${schemaName(ARREARS)}.employers`)
  return { position: record!.position, rows: rows.length }
}

describe('a thread that catches up', () => {
  it('applies the log up to a position, tells how it gets on, and ends', async () => {
    const { app } = process
    await registerInsured(app)
    await registerInsured(app)
    const upTo = await app.log.head()
    await registerInsured(app)
    const heard = { reached: 0n, events: 0 }
    const progress = {
      reached: (position: bigint) => {
        heard.reached = position
      },
      stored: (events: number) => {
        heard.events += events
      },
    }
    await (await catchUpOf())({ ...ARREARS, upTo }, progress, new AbortController().signal)
    expect(heard).toEqual({ reached: upTo, events: 2 })
    expect(await stored()).toEqual({ position: upTo, rows: 2 })
  })

  it('stands still when it is told to, and leaves a generation alone that has another owner', async () => {
    const { app } = process
    await registerInsured(app)
    const upTo = await app.log.head()
    const silent = { reached: () => undefined, stored: () => undefined }
    const catchUp = await catchUpOf()
    const standing = new AbortController()
    const first = catchUp({ ...ARREARS, upTo }, silent, standing.signal)
    const waiting = catchUp({ ...ARREARS, upTo }, silent, standing.signal)
    standing.abort()
    await Promise.all([first, waiting])
    await store.generations.claim(employers.name, 2)
    const { position } = await stored()
    const { signal } = new AbortController()
    await expect(catchUp({ ...ARREARS, upTo }, silent, signal)).rejects.toMatchObject({ category: 'fenced' })
    expect((await stored()).position).toBe(position)
  })

  it('writes nothing to tables of another version than its code has', async () => {
    await registerInsured(process.app)
    const other = { ...ARREARS, generation: 2 }
    const { tables, version } = employers
    const made = { ...other, version: version - 1, tables, role: 'live', autoSwitch: false } as const
    await store.generations.create(made, 1)
    const catchUp = await catchUpOf()
    const silent = { reached: () => undefined, stored: () => undefined }
    await expect(
      catchUp({ ...other, upTo: await process.app.log.head() }, silent, new AbortController().signal),
    ).rejects.toMatchObject({ category: 'fatal' })
  })

  it('fails in a way that passes where the database is not there', async () => {
    const nowhere = new URL(database.url)
    nowhere.port = '1'
    const silent = { reached: () => undefined, stored: () => undefined }
    const catchUp = await catchUpOf(nowhere.toString())
    await expect(
      catchUp({ ...ARREARS, upTo: 1n }, silent, new AbortController().signal),
    ).rejects.toMatchObject({ category: 'transient' })
  })
})
