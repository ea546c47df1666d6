import { describe, expect, it } from 'vitest'
import { jsonb, table, text } from '../../../application/queries/table.ts'
import { schemaName } from '../../../infrastructure/read-models/tables.ts'
import { catchUp } from '../../../projections/runtime/catch-up.ts'
import { ProjectionStoreError } from '../../../projections/runtime/failures.ts'
import { projection } from '../../../projections/runtime/projection.ts'
import type { ProjectionRequest } from '../../../projections/runtime/store.ts'
import {
  accounts,
  Opened,
  opened,
  type ProjectionProcess,
  paid,
  projectionProcesses,
} from '../../support/projection-process.ts'

const { start } = projectionProcesses()

/** Some accounts with a few payments each. */
async function history(process: ProjectionProcess, count = 50): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      process.append(`${index}`, opened(`${index}`), paid(`${index}`, 1), paid(`${index}`, 2)),
    ),
  )
  await process.caughtUp()
}

/** An earlier process, which had caught up with some history. */
async function endedWithHistory(): Promise<void> {
  const process = await start()
  await history(process)
  await process.projections.stop()
}

const isLive = (process: ProjectionProcess, version: number) =>
  process.until((status) => status.version === version && status.rebuild === null)
async function rebuilt(process: ProjectionProcess): Promise<void> {
  await process.projections.rebuild('accounts')
  await process.until((status) => status.generation === 2)
}

/** Schemas of generations that are there. */
async function schemas(process: ProjectionProcess): Promise<readonly string[]> {
  const { rows } = await process.database.pool.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'rm\\_%' ORDER BY 1`,
  )
  return rows.map((row) => row.name)
}

/** Writes and reads without a break until told to stop. */
function traffic(writer: ProjectionProcess, readers: readonly ProjectionProcess[]) {
  let going = true
  let written = 0
  const failures: unknown[] = []
  const write = async () => {
    while (going) {
      const position = await writer.append(`${written % 50}`, paid(`${written % 50}`, 1))
      written += 1
      if (!(await writer.projections.reached(['accounts'], position, { timeoutMs: 240_000 }))) {
        failures.push(`a write was not readable: ${JSON.stringify(await writer.status())}`)
      }
    }
  }
  let reads = 0
  const read = async (reader: ProjectionProcess) => {
    let before = 0
    while (going) {
      const rows = await reader.accounts()
      const payments = rows.reduce((sum, row) => sum + row.payments, 0)
      if (rows.length !== 50 || payments < before) {
        failures.push(`${rows.length} accounts, ${payments} payments after ${before}`)
      }
      before = payments
      reads += 1
    }
  }
  const running = [write(), ...readers.map(read)].map((one) => one.catch((error) => failures.push(error)))
  return {
    counts: () => ({ written, reads }),
    async stop() {
      going = false
      await Promise.all(running)
      expect(failures).toEqual([])
    },
  }
}

describe('a rebuild', () => {
  it('goes on beside reads and writes, which see no gap, and switches by itself', async () => {
    const process = await start()
    const reader = await start(accounts(), { start: false })
    await history(process)
    const load = traffic(process, [process, reader])
    for (const generation of [2, 3]) {
      expect(await process.projections.rebuild('accounts')).toEqual({ generation, version: 1 })
      await process.until((status) => status.generation === generation && status.rebuild === null)
    }
    const { written } = load.counts()
    await expect.poll(() => load.counts().written).toBeGreaterThan(written + 3)
    await load.stop()
    expect(load.counts().reads).toBeGreaterThan(10)
    await process.caughtUp()
    const rows = await process.accounts()
    expect(rows.reduce((sum, row) => sum + row.payments, 0)).toBe(100 + load.counts().written)
    // one generation is kept for going back, earlier ones are gone
    expect(await schemas(process)).toEqual(['rm_accounts_g2', 'rm_accounts_g3'])
    expect(await process.status()).toMatchObject({ state: 'active', retired: { generation: 2 } })
  })

  it('compares both generations at one position and waits for the operator where told to', async () => {
    const process = await start()
    await history(process)
    await process.projections.rebuild('accounts', { switch: 'manual' })
    const ready = await process.until((status) => status.rebuild?.comparison != null)
    expect(ready).toMatchObject({
      generation: 1,
      rebuild: {
        generation: 2,
        switch: 'manual',
        state: 'active',
        seconds_left: 0,
        comparison: { equal: true, tables: [{ table: 'accounts', equal: true, live: { rows: 50 } }] },
      },
    })
    expect(ready.rebuild!.comparison!.position).toBe(Number(await process.log.head()))
    // both go on
    await process.append('0', paid('0', 5))
    await process.caughtUp()
    expect(await process.projections.switch('accounts')).toEqual({ generation: 2 })
    expect((await process.accounts())[0]).toMatchObject({ balance: 8, payments: 3 })
    await expect(process.projections.switch('accounts')).rejects.toMatchObject({ kind: 'conflict' })
  })

  it('is held back, and calls a person, when its rows differ although the version is the same', async () => {
    const process = await start()
    await history(process)
    const live = schemaName({ projection: 'accounts', generation: 1 })
    await process.database.pool.query(`UPDATE "${live}".accounts SET balance = 0 WHERE account = '7'`)
    await process.projections.rebuild('accounts')
    const { generation, rebuild } = await process.until((status) => status.rebuild?.comparison != null)
    expect({ generation, next: rebuild!.switch }).toEqual({ generation: 1, next: 'manual' })
    const columns = [{ column: 'balance', live: '0', shadow: '3' }]
    const differences = [{ key: { account: '7' }, missing_in: null, columns }]
    const tables = [{ equal: false, shadow: { rows: 50 }, differing_rows: 1, differences }]
    expect(rebuild!.comparison).toMatchObject({ equal: false, tables })
    expect(process.heldBack).toEqual([
      { projection: 'accounts', generation: 2, reason: 'rows_differ', tables: ['accounts'] },
    ])
    expect((await process.accounts()).find((row) => row.account === '7')).toMatchObject({ balance: 0 })
    await process.projections.switch('accounts')
    expect((await process.accounts()).find((row) => row.account === '7')).toMatchObject({ balance: 3 })
    // what differed can be looked at until the next switch
    expect((await process.status()).retired).toMatchObject({ generation: 1, comparison: { tables } })
    await process.projections.rollback('accounts')
    expect((await process.status()).retired).toMatchObject({ generation: 2, comparison: null })
  })

  it('is held back when two rows have exchanged values, too', async () => {
    const process = await start()
    await history(process)
    const live = schemaName({ projection: 'accounts', generation: 1 })
    await process.database.pool.query(
      `UPDATE "${live}".accounts SET owner = 'owner of ' || 15 - account::int WHERE account IN ('7', '8')`,
    )
    await process.projections.rebuild('accounts')
    const { rebuild } = await process.until((status) => status.rebuild?.comparison != null)
    expect(rebuild!.comparison).toMatchObject({ equal: false, tables: [{ differing_rows: 2 }] })
  })

  it('is held back when lists differ only in where equal entries stand, or in pairs of them', async () => {
    const outcomes = (of: string) => Array.from({ length: 32 }, () => ({ of }))
    const batches = table('batches', { key: ['id'], columns: { id: text(), outcomes: jsonb() } })
    const listing = projection({
      name: 'accounts',
      version: 1,
      tables: [batches],
      handlers: (on) => [
        on(Opened, {
          apply: ({ data }, tables) =>
            tables.batches.put({ id: data.account, outcomes: outcomes('accepted') }),
        }),
      ],
    })
    const process = await start(listing)
    await process.append('1', opened('1'))
    await process.caughtUp()
    const live = schemaName({ projection: 'accounts', generation: 1 })
    await process.database.pool.query(`UPDATE "${live}".batches SET outcomes = $1`, [
      JSON.stringify(outcomes('rejected')),
    ])
    await process.projections.rebuild('accounts')
    const { rebuild } = await process.until((status) => status.rebuild?.comparison != null)
    expect(rebuild!.comparison).toMatchObject({ equal: false, tables: [{ differing_rows: 1 }] })
  })

  it('shows the first 20 rows that differ column by column, and nothing personal', async () => {
    const process = await start(accounts({ personal: ['note'] }))
    await history(process)
    await process.append('7', paid('7', 1, 'sealed: sld1.person/5.AAAA'))
    await process.append('8', paid('8', 1, `${'same '.repeat(100)}new`))
    await process.caughtUp()
    const table = `"${schemaName({ projection: 'accounts', generation: 1 })}".accounts`
    await process.database.pool.query(`
      UPDATE ${table} SET note = 'Ada Moss' WHERE account = '1';
      UPDATE ${table} SET owner = repeat('\u{1f600}', 100) || account WHERE account > '2';
      DELETE FROM ${table} WHERE account = '10';
      INSERT INTO ${table} (account, owner) VALUES ('0a', 'sld1.person/5.AAAA')`)
    await process.projections.rebuild('accounts', { switch: 'manual' })
    const { rebuild } = await process.until((status) => status.rebuild?.comparison != null)
    const [compared] = rebuild!.comparison!.tables
    expect(compared).toMatchObject({ equal: false, live: { rows: 50 }, shadow: { rows: 50 } })
    const { rows } = await process.database.pool.query(`SELECT FROM ${table} WHERE account > '2'`)
    expect(compared!.differing_rows).toBe(rows.length + 3)
    expect(compared!.differences).toHaveLength(20)
    const [added, masked, deleted, changed] = compared!.differences!
    expect(added).toEqual({
      key: { account: '0a' },
      missing_in: 'shadow',
      columns: [{ column: 'owner', live: '•••', shadow: null }],
    })
    expect(masked).toEqual({
      key: { account: '1' },
      missing_in: null,
      columns: [{ column: 'note', live: '•••', shadow: '•••' }],
    })
    expect(deleted).toMatchObject({ key: { account: '10' }, missing_in: 'live' })
    expect(deleted!.columns).toContainEqual({ column: 'balance', live: null, shadow: '3' })
    expect(changed!.columns).toEqual([
      { column: 'owner', live: `${'\u{1f600}'.repeat(60)}…`, shadow: `owner of ${changed!.key.account}` },
    ])
  })

  it('that is far behind catches up elsewhere, and goes on from its checkpoint when that breaks off', async () => {
    const positions: bigint[] = []
    let middle = 0n
    const process: ProjectionProcess = await start(accounts(), {
      async catchUp(arrears, ...rest) {
        const { log, registry, store } = process
        const at = positions.push(await store.pages.position({ ...arrears, tables: [] }, arrears.epoch))
        // the first one dies on its way
        const upTo = at === 1 ? middle : arrears.upTo
        await catchUp({ projections: [accounts()], log, registry, store }, { ...arrears, upTo }, ...rest)
        if (at === 1) throw new ProjectionStoreError('transient', 'the thread ended')
      },
    })
    await history(process)
    const payments = Array.from({ length: 2_000 }, () => paid('0', 1))
    middle = await process.append('0', ...payments)
    for (let n = 0; n < 11; n += 1) await process.append('0', ...payments)
    await process.caughtUp()
    await rebuilt(process)
    expect(positions).toEqual([0n, middle])
    expect((await process.accounts())[0]).toMatchObject({ payments: 24_002 })
  })

  it('can be given up, and is one at a time', async () => {
    const process = await start()
    await history(process)
    await process.projections.rebuild('accounts', { switch: 'manual' })
    await expect(process.projections.rebuild('accounts')).rejects.toMatchObject({ kind: 'conflict' })
    expect(await process.projections.cancel('accounts')).toEqual({ generation: 2 })
    expect(await schemas(process)).toEqual(['rm_accounts_g1'])
    expect((await process.status()).rebuild).toBeNull()
    await expect(process.projections.cancel('accounts')).rejects.toMatchObject({ kind: 'conflict' })
  })

  // projection-runner goes on after one
  it('goes on after a restart from where it stood', { tags: 'long' }, async () => {
    const process = await start()
    await history(process)
    await process.projections.rebuild('accounts', { switch: 'manual' })
    const before = await process.until((status) => (status.rebuild?.position ?? 0) > 0)
    await process.projections.stop()
    const next = await start()
    const { rebuild } = await next.status()
    expect(rebuild!.generation).toBe(2)
    expect(rebuild!.position).toBeGreaterThanOrEqual(before.rebuild!.position)
    const position = await next.append('0', paid('0', 1))
    await next.until((status) => status.rebuild?.comparison?.equal === true)
    // what was compared before the restart says nothing of what came since
    await next.projections.reached(['accounts'], position)
    await next.projections.switch('accounts')
    expect((await next.accounts())[0]).toMatchObject({ payments: 3 })
  })

  it('is not let loose by itself when it lost streams that the live one has', async () => {
    let broken = false
    const process = await start(accounts({ breaks: (account) => broken && account === '7' }))
    await history(process)
    broken = true
    await process.projections.rebuild('accounts')
    const status = await process.until(
      ({ rebuild }) => rebuild?.state === 'parked' && rebuild.comparison !== null,
    )
    expect(status).toMatchObject({
      generation: 1,
      state: 'active',
      rebuild: { parked_streams: 1, switch: 'manual' },
    })
    expect(process.heldBack).toMatchObject([{ generation: 2, reason: 'parked_streams' }])
    broken = false
    await process.projections.redrive('accounts')
    await process.projections.switch('accounts')
    expect(await process.status()).toMatchObject({ generation: 2, state: 'active', parked_streams: 0 })
  })

  it('waits for readers that hold the view instead of standing in their way', async () => {
    const process = await start()
    await history(process)
    await process.projections.rebuild('accounts', { switch: 'manual' })
    await process.until((status) => status.rebuild?.comparison != null)
    const reader = await process.database.pool.connect()
    await reader.query('BEGIN; SELECT count(*) FROM read_model.accounts')
    const switching = process.projections.switch('accounts')
    // other readers get through while the switch waits for the first one
    await expect.poll(async () => (await process.accounts()).length).toBe(50)
    await reader.query('COMMIT')
    reader.release()
    expect(await switching).toEqual({ generation: 2 })
  })
})

describe('going back', () => {
  it('brings the earlier generation up to date first, where there is one, so that readers see nothing disappear', async () => {
    const process = await start()
    await history(process)
    await expect(process.projections.rollback('accounts')).rejects.toMatchObject({ kind: 'conflict' })
    await rebuilt(process)
    await process.append('0', paid('0', 10))
    await process.caughtUp()
    expect(await process.projections.rollback('accounts')).toMatchObject({ generation: 1, switched: true })
    expect((await process.accounts())[0]).toMatchObject({ balance: 13, payments: 3 })
    expect(await process.status()).toMatchObject({ generation: 1, retired: { generation: 2 }, rebuild: null })
    await process.append('0', paid('0', 1))
    await process.caughtUp()
    expect((await process.accounts())[0]).toMatchObject({ balance: 14 })
    // and forth again
    expect(await process.projections.rollback('accounts')).toMatchObject({ generation: 2, switched: true })
    expect((await process.accounts())[0]).toMatchObject({ balance: 14 })
  })

  it('is done once, although a look for requests that began before it ends after it', async () => {
    const seen: ProjectionRequest[] = []
    const process = await start(accounts(), {
      storeThrough: (store) => ({
        requests: {
          async open(names) {
            const open = await store.requests.open(names)
            // as they were when the look before this one began
            const old = seen.splice(0)
            seen.push(...open)
            return [...old, ...open]
          },
        },
      }),
    })
    await history(process)
    await rebuilt(process)
    expect(await process.projections.rollback('accounts')).toMatchObject({ generation: 1, switched: true })
    // a further request is carried out after those that were found before it
    await process.projections.redrive('accounts', { dryRun: true })
    expect(await process.status()).toMatchObject({ generation: 1, retired: { generation: 2 } })
  })

  // the one before it is done once, too
  it('is done once, although its owner is lost before it can say so', { tags: 'long' }, async () => {
    let lost = 0
    const process = await start(accounts(), {
      storeThrough: (store) => ({
        requests: {
          async answer(id, outcome) {
            if (lost === 0 && outcome.ok && 'switched' in outcome.result) {
              lost += 1
              throw new ProjectionStoreError('transient', 'the connection was lost')
            }
            await store.requests.answer(id, outcome)
          },
        },
      }),
    })
    await history(process)
    await rebuilt(process)
    expect(await process.projections.rollback('accounts')).toMatchObject({ generation: 1, switched: true })
    await process.projections.redrive('accounts', { dryRun: true })
    expect(lost).toBe(1)
    expect(await process.status()).toMatchObject({ generation: 1, retired: { generation: 2 } })
  })
})

describe('a new version in the code', () => {
  it('with other tables is built beside the old one, which answers until then', async () => {
    await endedWithHistory()
    const reader = await start(accounts(), { start: false })
    let reading = true
    const failures: unknown[] = []
    const read = (async () => {
      while (reading) expect(await reader.accounts()).toHaveLength(50)
    })().catch((error) => failures.push(error))
    const next = await start(accounts({ version: 2, extra: true }))
    await isLive(next, 2)
    reading = false
    await read
    expect(failures).toEqual([])
    const { rows } = await next.database.pool.query(`SELECT DISTINCT extra FROM read_model.accounts`)
    expect(rows).toEqual([{ extra: 'more' }])
    expect(await next.status()).toMatchObject({ state: 'active', generation: 2, retired: { version: 1 } })
  })

  it('goes back to tables that the code cannot write, says so, and does not build the version again', async () => {
    await endedWithHistory()
    const next = await start(accounts({ version: 2, extra: true }))
    await isLive(next, 2)
    await next.append('0', paid('0', 10))
    await next.caughtUp()
    expect(await next.projections.rollback('accounts')).toMatchObject({ generation: 1, switched: true })
    const status = await next.until(({ state }) => state === 'detached')
    expect(status).toMatchObject({ version: 1, code_version: 2, rebuild: null, lag: { events: 1 } })
    expect(status.failure?.message).toMatch(/no code for version 1/)
    expect((await next.accounts())[0]).toMatchObject({ balance: 3 })
    await next.projections.stop()
    // the old code is deployed again: it goes on from its checkpoint
    const back = await start()
    await back.caughtUp()
    expect((await back.accounts())[0]).toMatchObject({ balance: 13 })
    await back.until(({ state }) => state === 'active')
  })

  // the next one keeps the old rows
  it('with the same tables does not touch the rows that were gone back to, until code of another version comes', {
    tags: 'long',
  }, async () => {
    await endedWithHistory()
    const broken = accounts({ version: 2, times: 100 })
    const next = await start(broken)
    await isLive(next, 2)
    const balance = async (process: ProjectionProcess) => (await process.accounts())[0]!.balance
    expect(await balance(next)).toBe(300)
    await next.projections.rollback('accounts')
    await next.append('0', paid('0', 10))
    await next.until(({ state }) => state === 'detached')
    expect(await balance(next)).toBe(3)
    await next.projections.stop()

    // the same code again still leaves them alone
    const again = await start(broken)
    expect(await again.status()).toMatchObject({ state: 'detached', version: 1, rebuild: null })
    expect(await balance(again)).toBe(3)
    await again.projections.stop()

    const mended = await start(accounts({ version: 3 }))
    await isLive(mended, 3)
    await mended.caughtUp()
    expect(await balance(mended)).toBe(13)
  })

  it('with the same tables keeps the old rows fresh until the new ones are there', async () => {
    await endedWithHistory()
    const next = await start(accounts({ version: 2, times: 100 }))
    const position = await next.append('0', paid('0', 1))
    expect(await next.projections.reached(['accounts'], position)).toBe(true)
    await isLive(next, 2)
    expect((await next.accounts())[0]).toMatchObject({ balance: 400, payments: 3 })
  })

  it('is asked for when tables changed without it', async () => {
    await endedWithHistory()
    const next = await start(accounts({ extra: true }))
    const status = await next.until(({ state }) => state === 'error')
    expect(status.failure?.message).toMatch(/changed without raising the version/)
    expect(await next.accounts()).toHaveLength(50)
  })
})
