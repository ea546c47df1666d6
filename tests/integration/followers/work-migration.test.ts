import { Kysely, Migrator, PostgresDialect } from 'kysely'
import pg from 'pg'
import { expect, test } from 'vitest'
import { migrations } from '../../../infrastructure/database/migrations/index.ts'
import { createTestDatabase } from '../../support/database.ts'

test('work of the release before waits on as what it is', async () => {
  const testDatabase = await createTestDatabase({ migrate: false })
  const pool = new pg.Pool({ connectionString: testDatabase.url })
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  try {
    const migrator = new Migrator({
      db: kysely,
      provider: { getMigrations: async () => ({ ...migrations }) },
      migrationTableName: 'migration',
      migrationTableSchema: 'schema_history',
    })
    expect((await migrator.migrateTo('0009-moved-to')).error).toBeUndefined()
    await pool.query(`
      INSERT INTO runtime.faults (point, mode, times) VALUES ('mail', 'hold', 1);
      INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, attempts, held_at, not_before,
        correlation_id, causation_id, last_error)
      VALUES
        ('p', '$reaction', 'a-1@7', '{"type":"X"}', 5, 'failed', 12, NULL, '-infinity', 'c', 'c', 'seventh'),
        ('p', '$reaction', 'a-1@10', '{"type":"X"}', 5, 'failed', 1, NULL, '-infinity', 'c', 'c', NULL),
        ('p', '$reaction', 'b@c@3', '{"type":"X"}', 5, 'due', 2, NULL, 'infinity', 'c', 'c', NULL),
        ('q', '$reaction', 'a-1@0', '{"type":"X"}', 5, 'due', 0, NULL, '-infinity', 'c', 'c', NULL),
        ('p', 'send', 'held', '{}', 5, 'due', 0, 'mail', '-infinity', 'c', 'c', NULL),
        ('p', 'send', 'released', '{}', 5, 'due', 0, 'text', '-infinity', 'c', 'c', NULL),
        ('p', 'send', 'paused', '{}', 5, 'due', 3, NULL, 'infinity', 'c', 'c', NULL),
        ('p', 'send', 'away', '{"away_since":5}', 5, 'due', 0, NULL, '-infinity', 'c', 'c', NULL),
        ('p', 'send', 'plain', '{}', 5, 'due', 0, NULL, '-infinity', 'c', 'c', NULL),
        ('p', 'send', 'failed', '{}', 5, 'failed', 12, 'mail', '-infinity', 'c', 'c', 'no');
      INSERT INTO runtime.work (process_manager, kind, key, payload, due_at, state, lease_owner, lease_token,
        lease_until, correlation_id, causation_id)
      VALUES ('p', 'send', 'leased', '{}', 5, 'leased', 'dead', 1, now(), 'c', 'c')`)
    expect((await migrator.migrateToLatest()).error).toBeUndefined()
    const { rows } = await pool.query(
      `SELECT concat_ws(' ', process_manager, kind, key, state, attempts, payload ->> 'revision', held_at, last_error,
         'away since ' || away_since) AS work
       FROM runtime.work ORDER BY process_manager, kind, key`,
    )
    expect(rows.map(({ work }) => work)).toEqual([
      'p $stream a-1 failed 12 7 seventh',
      'p $stream b@c later 2 3',
      'p send away later 0 away since 5',
      'p send failed failed 12 no',
      'p send held held 0 mail',
      'p send leased leased 0',
      'p send paused paused 3',
      'p send plain later 0',
      'p send released later 0',
      'q $stream a-1 later 0 0',
    ])
  } finally {
    await kysely.destroy()
    await testDatabase.drop()
  }
})
