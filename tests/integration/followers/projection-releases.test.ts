import { beforeEach, describe, expect, it } from 'vitest'
import { ReadModelsLate } from '../../../application/ports/read-models.ts'
import type { Projection } from '../../../projections/runtime/projection.ts'
import {
  accounts,
  opened,
  type ProjectionProcess,
  paid,
  projectionProcesses,
} from '../../support/projection-process.ts'

const { start } = projectionProcesses()
/** Leases that processes of the older release asked for. */
let asked = 0

beforeEach(() => {
  asked = 0
})

/** A process of the older release; it tries at once, and then every 20 ms. */
function startOlder(projection: Projection = accounts()) {
  return start(projection, {
    leasesThrough: (leases) => ({
      owner: leases.owner,
      acquire: (name) => {
        asked += 1
        return leases.acquire(name)
      },
      holders: (names) => leases.holders(names),
      onLapse: (lapsed) => leases.onLapse(lapsed),
    }),
  })
}

/** Everything that is stored of the projection. */
async function stored(process: ProjectionProcess) {
  const { rows } = await process.database.pool.query(
    `SELECT generation, version, role, state, position, epoch, shape, auto_switch
     FROM runtime.projections ORDER BY generation`,
  )
  const { rows: schemas } = await process.database.pool.query(
    `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'rm\\_%' ORDER BY 1`,
  )
  return { rows, schemas, accounts: await process.accounts() }
}

/** Version 1 with some events, then the newer version in its place, which the caller stops. */
async function upgradedTo(newer: Projection, until: (process: ProjectionProcess) => Promise<unknown>) {
  const old = await start(accounts())
  for (const account of ['1', '2', '7']) await old.append(account, opened(account), paid(account, 1))
  await old.caughtUp()
  await old.projections.stop()
  const process = await start(newer)
  await until(process)
  return process
}

const isSwitched = (process: ProjectionProcess) =>
  process.until(({ version, rebuild }) => version === 2 && rebuild === null)
/** Its rebuild loses a stream, so that it does not go live by itself. */
const isBuilt = (process: ProjectionProcess) => process.until(({ rebuild }) => rebuild?.state === 'parked')

describe('a process of an older release', () => {
  // the first is the furthest from what the older one knows
  for (const [which, newer, until, tags] of [
    ['with other tables', accounts({ version: 2, extra: true }), isSwitched, []],
    ['with the same tables', accounts({ version: 2, times: 100 }), isSwitched, ['long']],
    [
      'that is still being built',
      accounts({ version: 2, breaks: (account) => account === '7' }),
      isBuilt,
      ['long'],
    ],
    [
      'that is still being built with other tables',
      accounts({ version: 2, extra: true, breaks: (account) => account === '7' }),
      isBuilt,
      ['long'],
    ],
  ] as const)
    it(`leaves a newer version ${which} alone when nobody runs it`, { tags: [...tags] }, async () => {
      const next = await upgradedTo(newer, until)
      const waiting = await startOlder()
      await next.projections.stop()
      const before = await stored(next)
      const restarted = await startOlder()
      const position = await restarted.append('1', paid('1', 5))
      for (const older of [waiting, restarted]) {
        // many looks of both
        expect(await older.projections.reached(['accounts'], position, { timeoutMs: 500 })).toBe(false)
        expect(await older.status()).toMatchObject({ owner: null, code_version: 1 })
      }
      expect(asked).toBe(0)
      expect(await stored(next)).toEqual(before)

      // the newer one goes on where it was
      const again = await start(newer)
      await again.until(({ position: live, rebuild }) => Math.max(live, rebuild?.position ?? 0) >= position)
      expect((await again.status()).owner).toBe(again.owner)
    })

  it('does not bring back what an operator went back from', async () => {
    const next = await upgradedTo(accounts({ version: 2, extra: true }), isSwitched)
    await next.projections.rollback('accounts')
    await next.until(({ state }) => state === 'detached')
    await next.projections.stop()
    // going back is what lets the older release run it again
    const older = await startOlder()
    await older.append('1', paid('1', 5))
    await older.caughtUp()
    const before = await stored(older)
    await expect(older.projections.rollback('accounts')).rejects.toMatchObject({ kind: 'conflict' })
    const after = await stored(older)
    expect(after.schemas).toEqual(before.schemas)
    expect(await older.status()).toMatchObject({ version: 1, owner: older.owner, retired: { version: 2 } })
  })

  it('tells a reader to ask again where columns that it reads are gone, and answers when they are there', async () => {
    const newer = accounts({ version: 2, extra: true })
    const older = { name: 'test/extra', text: 'SELECT extra FROM read_model.accounts', parameters: [] }
    const process = await start(accounts())
    await expect(process.read.query(older, {})).rejects.toBeInstanceOf(ReadModelsLate)
    await process.projections.stop()
    const next = await start(newer)
    await isSwitched(next)
    expect(await process.read.query(older, {})).toEqual([])
  })
})
