// @module-tag once: its subject is the same whatever holds the log
import pg from 'pg'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../support/database.ts'
import { accounts, opened, openProcess } from '../../support/projection-process.ts'

/** Uses a database as suites do, and gives it back. @returns its name, and what it held at first. */
async function use(change?: string): Promise<{ name: string; held: readonly string[] }> {
  const database = await createTestDatabase()
  const client = new pg.Client(database.url)
  await client.connect()
  const { rows: tables } = await client.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class
      WHERE oid >= 16384 AND relkind IN ('r', 'v', 'S') AND relnamespace <> 'schema_history'::regnamespace`,
  )
  const held: string[] = []
  for (const { name } of tables.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { rows } = await client.query(`SELECT * FROM ${name}`)
    held.push(`${name}: ${JSON.stringify(rows)}`)
  }
  const process = await openProcess(database.url, accounts())
  await process.append('one', opened('one'))
  await process.caughtUp()
  await expect(client.query('DELETE FROM event_log.events')).rejects.toThrow('events are immutable')
  if (change !== undefined) await client.query(change)
  await client.end()
  await process.close()
  await database.drop()
  return { name: database.name, held }
}

test('a database that a suite gives back is as new for the next one', async () => {
  const first = await use()
  expect(await use()).toEqual(first)
})

// of the tests themselves, no part of the product
test.each([
  'CREATE TABLE left_over ()',
  "INSERT INTO schema_history.migration VALUES ('9999-from-the-future', 'now')",
  'CREATE OR REPLACE FUNCTION event_log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$',
  "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$",
])('one that a suite has changed is used no more: %s', { tags: 'long' }, async (change) => {
  const { name } = await use(change)
  expect((await use()).name).not.toBe(name)
})
