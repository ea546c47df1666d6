import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { release, reserve } from '../../application/commands/reservations.ts'
import { isMovable } from '../../application/ports/clock.ts'
import { reservation } from '../../domain/uniqueness/reservation.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { openWorkbench, type Workbench } from '../support/workbench.ts'

let database: TestDatabase
let bench: Workbench

beforeAll(async () => {
  database = await createTestDatabase()
  bench = await openWorkbench(database.url)
})
afterAll(async () => {
  await bench?.close()
  await database?.drop()
})

const value = () => ({ kind: 'fein', fingerprint: randomUUID(), id: `fein_live_${randomUUID()}` }) as const
const context = () => ({
  actor: { type: 'operator', id: 'operator' } as const,
  tenantId: null,
  environment: 'live' as const,
  correlationId: 'test',
  commandId: randomUUID(),
})
const alive = async () => false
const lost = async () => true
const unborn = async () => null

async function holderOf(id: string): Promise<string | null> {
  return (await bench.commands.load(reservation, id)).state.owner_id
}

describe('a reserved value', () => {
  test('is one owner’s at a time, until it is given back', async () => {
    const fein = value()
    expect(await reserve(bench, fein, 'a', alive, context())).toBeNull()
    expect(await reserve(bench, fein, 'a', alive, context())).toBeNull()
    expect(await reserve(bench, fein, 'b', alive, context())).toMatchObject({ code: 'fein_taken' })
    await release(bench, fein, 'b', context())
    expect(await holderOf(fein.id)).toBe('a')
    await release(bench, fein, 'a', context())
    expect(await reserve(bench, fein, 'b', alive, context())).toBeNull()
  })

  test('passes to one of many who find that its holder lost it', async () => {
    const fein = value()
    await reserve(bench, fein, 'old', alive, context())
    const claims = ['b', 'c', 'd', 'e'].map((owner) => reserve(bench, fein, owner, lost, context()))
    const outcomes = await Promise.all(claims)
    expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(1)
  })

  test('of a holder that never came to be is kept for a while, then given up', async () => {
    const fein = value()
    await reserve(bench, fein, 'crashed', alive, context())
    expect(await reserve(bench, fein, 'b', unborn, context())).not.toBeNull()
    const { clock } = bench
    if (!isMovable(clock)) throw new Error('the test moves the clock')
    clock.moveTo(clock.now() + 10 * 60_000)
    expect(await reserve(bench, fein, 'b', unborn, context())).not.toBeNull()
    clock.moveTo(clock.now() + 1)
    expect(await reserve(bench, fein, 'b', unborn, context())).toBeNull()
    expect(await holderOf(fein.id)).toBe('b')
  })
})
