import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../../application/ports/clock.ts'
import { table, text } from '../../../application/queries/table.ts'
import { schemaName } from '../../../infrastructure/read-models/tables.ts'
import { projection } from '../../../projections/runtime/projection.ts'
import {
  accounts,
  Noted,
  Opened,
  opened,
  type ProjectionProcess,
  paid,
  projectionProcesses,
} from '../../support/projection-process.ts'

const LIVE = { projection: 'accounts', generation: 1, tables: accounts().tables }
const TABLE = `"${schemaName(LIVE)}"."accounts"`

const { start, url } = projectionProcesses()

/** Holds a lock on the physical table, so that every page has to wait. */
async function blockWrites(): Promise<() => Promise<void>> {
  const client = new pg.Client(url())
  await client.connect()
  await client.query(`BEGIN; LOCK TABLE ${TABLE} IN ACCESS EXCLUSIVE MODE`)
  return () => client.end()
}

async function storedPosition(process: ProjectionProcess): Promise<bigint> {
  return (await process.store.generations.positions(['accounts'])).get('accounts')!
}

/** Five hundred rows per account. */
const members = projection({
  name: 'members',
  version: 1,
  tables: [table('members', { key: ['member'], columns: { member: text() } })],
  handlers: (on) => [
    on(Opened, {
      apply({ data }, { members }) {
        for (let n = 0; n < 500; n += 1) members.put({ member: `${data.account}/${n}` })
      },
    }),
  ],
})

describe('a projection that follows the log', () => {
  it('writes no more rows at once than it collects, however many one page of the log comes to', async () => {
    const writer = await start(members, { start: false })
    for (let n = 0; n < 30; n += 1) await writer.append(String(n), opened(String(n)))
    const written: number[] = []
    const process = await start(members, {
      storeThrough: (store) => ({
        pages: {
          write(generation, page) {
            written.push(page.tables.reduce((rows, { put }) => rows + put.length, 0))
            return store.pages.write(generation, page)
          },
        },
      }),
    })
    await process.caughtUp()
    expect(written.reduce((sum, rows) => sum + rows, 0)).toBe(15_000)
    expect(Math.max(...written)).toBeLessThanOrEqual(5_000)
    const { rows } = await process.database.pool.query('SELECT count(*)::int AS all FROM read_model.members')
    expect(rows).toEqual([{ all: 15_000 }])
  })

  it('applies what is appended, and tells who waits for it', async () => {
    const process = await start(accounts())
    const position = await process.append('a', opened('a'), paid('a', 250), paid('a', 50, 'thanks'))
    expect(await process.projections.reached(['accounts'], position)).toBe(true)
    const [row] = await process.accounts()
    expect(row).toMatchObject({
      account: 'a',
      owner: 'owner of a',
      balance: 300,
      payments: 2,
      note: 'thanks',
    })
    expect(row!.updated_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(await storedPosition(process)).toBe(position)
    // it is told that it has reached the head a moment after its first page
    await expect
      .poll(() => process.status())
      .toMatchObject({
        state: 'active',
        position: Number(position),
        lag: { events: 0, seconds: 0 },
        owner: process.owner,
        failure: null,
      })
  })

  it('catches up with what was there before, with rows that it has to fetch', async () => {
    const process = await start(accounts())
    await process.append('a', opened('a'), paid('a'))
    await process.caughtUp()
    await process.projections.stop()
    for (let index = 0; index < 20; index += 1) await process.append('a', paid('a'))
    await process.append('b', opened('b'), paid('b', 7))
    const next = await start(accounts())
    await next.caughtUp()
    expect(await next.accounts()).toMatchObject([
      { account: 'a', balance: 2100, payments: 21 },
      { account: 'b', balance: 7, payments: 1 },
    ])
  })

  it('lets no command wait for a projection whose readers wait themselves', async () => {
    const process = await start({ ...members, readersWait: true }, { start: false })
    const position = await process.append('a', opened('a'))
    expect(await process.projections.awaitProjections({ events: [Opened] }, position)).toBe(true)
    expect(await process.projections.reached(['members'], position, { timeoutMs: 30 })).toBe(false)
  })

  it('answers false when the position is not reached in time, and refuses unknown names', async () => {
    const process = await start(accounts())
    const head = await process.log.head()
    expect(await process.projections.reached(['accounts'], head + 100n, { timeoutMs: 30 })).toBe(false)
    await expect(process.projections.reached(['nothing'], 0n)).rejects.toThrow('No projection nothing')
  })

  it('moves over events of other types, so that a quiet filter shows no lag', async () => {
    const process = await start(accounts())
    let position = 0n
    for (let index = 0; index < 50; index += 1) {
      position = await process.append('a', Noted.of({ text: 'nothing for this one' }))
    }
    expect(await process.projections.reached(['accounts'], position)).toBe(true)
    expect((await process.status()).lag).toEqual({ events: 0, seconds: 0 })
    await expect.poll(() => storedPosition(process)).toBe(position)
  })

  it('stays paused across a restart, and goes on where it stood', async () => {
    const process = await start(accounts())
    await process.append('a', opened('a'))
    await process.caughtUp()
    await process.projections.pause('accounts')
    await process.append('a', paid('a'))
    await process.projections.stop()
    const next = await start(accounts())
    expect(await next.status()).toMatchObject({ state: 'paused', lag: { events: 1 } })
    expect(await next.accounts()).toMatchObject([{ payments: 0 }])
    await next.projections.resume('accounts')
    await next.caughtUp()
    expect(await next.accounts()).toMatchObject([{ payments: 1 }])
    await next.until((status) => status.state === 'active')
    await expect(next.projections.resume('accounts')).rejects.toMatchObject({ kind: 'conflict' })
  })

  it('tells operators when nobody runs a projection, and of projections without code', async () => {
    const process = await start(accounts())
    await process.caughtUp()
    await process.projections.stop()
    const other = await start({ ...accounts(), name: 'renamed', tables: [], handlers: [] })
    await expect.poll(async () => (await other.projections.list())[0]?.state).toBe('active')
    const states = (await other.projections.list()).map(({ name, state }) => [name, state])
    expect(states).toEqual([
      ['renamed', 'active'],
      ['accounts', 'detached'],
    ])
    await expect(other.projections.pause('accounts')).rejects.toMatchObject({ kind: 'not_found' })
  })
})

describe('lag', () => {
  const virtual: Clock = { kind: 'virtual', now: () => 0 }

  it.each([
    ['the system clock', undefined],
    ['a virtual clock that stands still', virtual],
  ])('of a stuck projection grows by %s', async (_, clock) => {
    const process = await start(accounts(), clock ? { clock } : {})
    await process.append('a', opened('a'))
    await process.caughtUp()
    const release = await blockWrites()
    await process.append('a', paid('a'), paid('a'))
    const first = await process.until(({ lag }) => lag.events === 2)
    const later = await process.until(({ lag }) => lag.seconds > first.lag.seconds + 0.05)
    expect(later.lag.events).toBe(2)
    await release()
    await process.caughtUp()
    expect((await process.status()).lag).toEqual({ events: 0, seconds: 0 })
  })
})

describe('a page', () => {
  const row = { account: 'x', owner: 'o', balance: 1, payments: 1, note: null, updated_at: null }
  const page = {
    tables: [{ table: 'accounts', put: [row], removed: [] }],
    deadLetter: [],
    redriven: [],
    rate: 0,
  }

  it('is not written under an outdated epoch or from elsewhere, and moves the checkpoint with its rows or not at all', async () => {
    const process = await start(accounts())
    await process.caughtUp()
    await process.projections.stop()
    const [record] = await process.store.generations.all()
    const at = { epoch: record!.epoch, from: record!.position, to: 5n }
    const write = (changes: object) => process.store.pages.write(LIVE, { ...page, ...at, ...changes })
    const bad = [{ table: 'accounts', put: [row, { ...row, account: 'y', balance: 'none' }], removed: [] }]
    await expect(write({ epoch: -1 })).rejects.toMatchObject({ category: 'fenced' })
    await expect(write({ from: 1n })).rejects.toMatchObject({ category: 'fenced' })
    await expect(write({ tables: bad })).rejects.toMatchObject({
      category: 'data',
      message: expect.not.stringContaining('none'),
    })
    expect(await process.accounts()).toEqual([])
    expect(await storedPosition(process)).toBe(record!.position)
    await write({})
    expect(await process.accounts()).toMatchObject([{ account: 'x', balance: 1 }])
    expect(await storedPosition(process)).toBe(5n)
  })
})

describe('ownership', () => {
  it('is one process at a time; the next takes over when the lease is given back', async () => {
    const first = await start(accounts())
    const second = await start(accounts())
    expect((await second.status()).owner).toBe(first.owner)
    await first.append('a', opened('a'))
    await second.caughtUp()
    await first.projections.stop()
    await second.until((status) => status.owner === second.owner)
    await second.append('a', paid('a'))
    await second.caughtUp()
    expect(await second.accounts()).toMatchObject([{ payments: 1 }])
  })

  it('taken over in the middle of a page applies each event once', async () => {
    const first = await start(accounts())
    await first.append('a', opened('a'))
    await first.caughtUp()
    const release = await blockWrites()
    for (let index = 0; index < 10; index += 1) await first.append('a', paid('a', 1))
    await first.until(({ lag }) => lag.events === 10)
    // the page of the first is under way; the second takes the lease from it and finds the same events
    const second = await start(accounts())
    const ownerOnceExpired = async () => {
      // again and again: the first renews it
      const expire = 'UPDATE runtime.leases SET expires_at = clock_timestamp() WHERE owner = $1'
      await first.database.pool.query(expire, [first.owner])
      return (await second.status()).owner
    }
    await expect.poll(ownerOnceExpired).toBe(second.owner)
    await first.append('a', paid('a', 1))
    await release()
    await second.caughtUp()
    expect(await second.accounts()).toMatchObject([{ balance: 11, payments: 11 }])
    // the first has noticed: it no longer writes, and waits for its turn
    await first.append('a', paid('a', 1))
    await second.caughtUp()
    expect(await first.accounts()).toMatchObject([{ balance: 12, payments: 12 }])
    expect((await first.status()).owner).toBe(second.owner)
  })
})

describe('failures that pass', () => {
  it('are retried from the checkpoint: connections cut in the middle of writes lose and repeat nothing', async () => {
    const process = await start(accounts())
    await process.append('a', opened('a'))
    await process.caughtUp()
    const server = new pg.Client(url())
    await server.connect()
    let cut = 0
    for (let index = 0; index < 60; index += 1) {
      await process.append('a', paid('a', 1)).catch(async () => process.append('a', paid('a', 1)))
      if (index % 15 !== 7) continue
      const { rowCount } = await server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()
           AND query LIKE '%runtime.projections SET position%'`,
      )
      cut += rowCount ?? 0
    }
    await server.end()
    expect(cut).toBeGreaterThan(0)
    await process.caughtUp()
    const events = await process.log.readStream('account-a')
    expect(await process.accounts()).toMatchObject([{ payments: events.length - 1 }])
    await process.until((status) => status.state === 'active' && status.failure === null)
  })
})
