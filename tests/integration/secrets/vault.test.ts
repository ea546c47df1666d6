// @module-tag once: its subject is the same whatever holds the log
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Clock } from '../../../application/ports/clock.ts'
import { PostgresLastUsed } from '../../../infrastructure/access/last-used.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { PostgresSecretVault } from '../../../infrastructure/secrets/vault.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const clock: Clock = { kind: 'virtual', now: () => Date.UTC(2026, 0, 2) }
const masterKeys = new MasterKeys([randomBytes(32)])

let database: TestDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
})

afterAll(async () => {
  await pool?.end()
  await database?.drop()
})

const vault = () => new PostgresSecretVault(pool, masterKeys, clock)

describe('the vault', () => {
  test('keeps a secret under its reference, for every process', async () => {
    await vault().put('client/1', 's3cret')
    expect(await vault().get('client/1')).toBe('s3cret')
    expect(await vault().get('client/2')).toBeNull()
  })

  test('takes the same secret again and refuses another one without quoting either', async () => {
    await vault().put('client/3', 'first')
    await vault().put('client/3', 'first')
    const refusal = await vault()
      .put('client/3', 'second')
      .catch((error: Error) => error.message)
    expect(refusal).toBe('Another secret is stored as client/3 already')
    expect(await vault().get('client/3')).toBe('first')
  })

  test('of two different secrets stored at once one wins and the other is refused', async () => {
    const results = await Promise.allSettled([vault().put('client/4', 'a'), vault().put('client/4', 'b')])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  /** A pool that does something before it answers a statement. */
  const beforeAnswer = (name: string, act: () => Promise<unknown>) => {
    const query = async (statement: pg.QueryConfig) => {
      const answer = await pool.query(statement)
      if (statement.name === name) await act()
      return answer
    }
    return { query } as unknown as Pick<pg.Pool, 'query'>
  }

  test('gives no removed secret out of memory while the answer to the removal is on its way', async () => {
    const found: (string | null)[] = []
    const database = beforeAnswer('secrets/remove', async () => found.push(await removing.get('client/7')))
    const removing: PostgresSecretVault = new PostgresSecretVault(database, masterKeys, clock)
    await removing.put('client/7', 's3cret')
    expect(await removing.get('client/7')).toBe('s3cret')
    await removing.remove('client/7')
    expect(found).toEqual([null])
  })

  test('does not remember what it read before its removal', async () => {
    const database = beforeAnswer('secrets/get', () => reading.remove('client/8'))
    const reading: PostgresSecretVault = new PostgresSecretVault(database, masterKeys, clock)
    await vault().put('client/8', 's3cret')
    expect(await reading.get('client/8')).toBe('s3cret')
    expect(await reading.get('client/8')).toBeNull()
  })

  test('stores ciphertext that belongs to its reference', async () => {
    await vault().put('client/5', 'the one secret')
    const { rows } = await pool.query<{ row: string; sealed: Buffer }>(
      "SELECT sealed, encode(sealed || wrapped_key, 'escape') AS row FROM runtime.secrets WHERE ref = 'client/5'",
    )
    expect(rows[0]!.row).not.toContain('the one secret')
    await pool.query("UPDATE runtime.secrets SET ref = 'client/6' WHERE ref = 'client/5'")
    await expect(vault().get('client/6')).rejects.toThrow('cannot be unwrapped')
  })
})

describe('last uses', () => {
  test('are known at once in their process and written in the background', async () => {
    const lastUsed = new PostgresLastUsed(pool)
    lastUsed.touch('a1', 1000)
    lastUsed.touch('a1', 3000)
    lastUsed.touch('a1', 2000)
    lastUsed.touch('a2', 500)
    expect(Object.fromEntries(await lastUsed.of(['a1', 'a2', 'a3']))).toEqual({ a1: 3000, a2: 500 })
    await lastUsed.close()
    const elsewhere = new PostgresLastUsed(pool)
    expect(Object.fromEntries(await elsewhere.of(['a1', 'a2', 'a3']))).toEqual({ a1: 3000, a2: 500 })
  })

  test('never go back, whichever process writes last', async () => {
    const [late, early] = [new PostgresLastUsed(pool), new PostgresLastUsed(pool)]
    late.touch('b1', 9000)
    early.touch('b1', 4000)
    await late.close()
    await early.close()
    expect(await early.of(['b1'])).toEqual(new Map([['b1', 9000]]))
  })

  test('a failed write is reported and made good by the next one', async () => {
    const failures: unknown[] = []
    const lastUsed = new PostgresLastUsed(pool, (error) => failures.push(error))
    await pool.query('ALTER TABLE runtime.last_used RENAME TO last_used_away')
    lastUsed.touch('c1', 7000)
    await lastUsed.flush()
    expect(failures).toHaveLength(1)
    await pool.query('ALTER TABLE runtime.last_used_away RENAME TO last_used')
    await lastUsed.close()
    expect(await new PostgresLastUsed(pool).of(['c1'])).toEqual(new Map([['c1', 7000]]))
  })

  test('a burst of requests is few statements', async () => {
    let writes = 0
    const counting = new Proxy(pool, {
      get(target, name, receiver) {
        if (name === 'query') writes += 1
        return Reflect.get(target, name, receiver)
      },
    })
    const lastUsed = new PostgresLastUsed(counting)
    for (let use = 0; use < 5000; use += 1) lastUsed.touch(`d${use % 50}`, use)
    await lastUsed.close()
    expect(writes).toBe(1)
    expect((await lastUsed.of(['d49'])).get('d49')).toBe(4999)
  })
})
