import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ClaimedWork } from '../../../application/followers/work-store.ts'
import { PostgresWorkStore } from '../../../infrastructure/work/work-store.ts'
import { sessionsThatWait } from '../../support/database.ts'
import { openWorkbench, pieceOfWork, until, type Workbench } from '../../support/workbench.ts'

let bench: Workbench

beforeEach(async () => {
  bench = await openWorkbench()
})
afterEach(() => bench.close())

const piece = (key: string) => pieceOfWork({ processManager: 'p', kind: 'k', key, isLater: false })

async function claim(slots = 1): Promise<ClaimedWork> {
  const kinds = [{ processManager: 'p', kind: 'k', slots }]
  const [claimed] = await bench.store.claim({ owner: bench.leases.owner, leaseMs: 60_000, kinds })
  return claimed!
}

test('pieces that are stored again while they end do not wait for each other', async () => {
  const { pool } = bench.database
  const store = new PostgresWorkStore(pool)
  const position = await store.takeOver('p', 1)
  const advance = (keys: readonly string[]) =>
    store.advance('p', { position, epoch: 1 }, position, { store: keys.map((key) => piece(key)), cancel: [] })
  // claimed one after the other: the last one in the order of keys has the first token
  const claims: ClaimedWork[] = []
  for (const key of ['d', 'b', 'a']) {
    await advance([key])
    claims.push(await claim())
  }
  await advance(['c'])
  const [d, b, a] = claims as [ClaimedWork, ClaimedWork, ClaimedWork]
  const waitingFor = (count: number) => until(async () => (await sessionsThatWait(pool)) === count)
  const other = await pool.connect()
  try {
    await other.query(`BEGIN; SELECT FROM runtime.work WHERE key = 'c' FOR UPDATE`)
    const stored = advance(['a', 'c', 'b'])
    await waitingFor(1)
    const ended = Promise.all([d, b, a].map((one) => store.end(one, { end: 'done' })))
    await waitingFor(2)
    await other.query('COMMIT')
    await stored
    expect(await ended).toEqual(['ended', 'again', 'again'])
  } finally {
    other.release()
  }
})
