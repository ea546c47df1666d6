import pg from 'pg'

/** What is left of the rows of a table that is larger would be in the way of those that come, in bytes. */
const SMALL = 65_536

/** Removes every row that no migration stored, the read models, and what the planner has learnt. */
const EMPTY = `
  DO $$
  DECLARE statement text;
  BEGIN
    SET LOCAL session_replication_role = replica;
    SET LOCAL allow_system_table_mods = on;
    ALTER TABLE event_log.events DISABLE TRIGGER immutable;
    FOR statement IN
      SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname LIKE 'rm\\_%'
    LOOP
      EXECUTE statement;
    END LOOP;
    FOR statement IN
      SELECT CASE WHEN pg_table_size(oid) > ${SMALL} OR reltuples >= 0
               THEN format('TRUNCATE %s CASCADE', oid::regclass) ELSE format('DELETE FROM %s', oid::regclass) END
        FROM pg_class
       WHERE oid >= 16384 AND relkind = 'r' AND pg_relation_size(oid) > 0
         AND relnamespace <> 'schema_history'::regnamespace AND oid <> 'runtime.erasures'::regclass
    LOOP
      EXECUTE statement;
    END LOOP;
    UPDATE runtime.erasures SET count = 0;
    PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE oid >= 16384 AND relkind = 'S';
    DELETE FROM pg_statistic WHERE starelid >= 16384;
    ALTER TABLE event_log.events ENABLE ALWAYS TRIGGER immutable;
  END $$`

/** Everything that was made in the database, in catalogues that a change of it is seen in. */
const SHAPE = `
  SELECT md5(string_agg(part, chr(10) ORDER BY part)) AS shape FROM (
    SELECT concat_ws(' ', 'class', oid, relname, relkind, relnatts, relchecks, relacl, relrowsecurity) AS part
      FROM pg_class WHERE oid >= 16384
    UNION ALL SELECT row('column', a)::text FROM pg_attribute a WHERE attrelid >= 16384
    UNION ALL SELECT row('constraint', c)::text FROM pg_constraint c WHERE oid >= 16384
    UNION ALL SELECT row('index', i)::text FROM pg_index i WHERE indexrelid >= 16384
    UNION ALL SELECT row('trigger', t)::text FROM pg_trigger t WHERE oid >= 16384
    UNION ALL SELECT row('event trigger', t)::text FROM pg_event_trigger t
    UNION ALL SELECT row('function', p)::text FROM pg_proc p WHERE oid >= 16384
    UNION ALL SELECT row('schema', n)::text FROM pg_namespace n WHERE oid >= 16384 OR nspname = 'public'
    UNION ALL SELECT row('type', t)::text FROM pg_type t WHERE oid >= 16384
    UNION ALL SELECT row('rights', d)::text FROM pg_default_acl d
    UNION ALL SELECT row('migration', m)::text FROM schema_history.migration m
    UNION ALL SELECT row('setting', s)::text FROM pg_db_role_setting s
      WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
  ) parts`

/**
 * Migrated databases of this process that suites have used and that are as good as new: emptying one takes a tenth of the
 * time that making one takes.
 */
export class EmptiedDatabases {
  readonly #shapes = new Map<string, string>()
  readonly #free: string[] = []

  /** Name of one that nobody uses. */
  take(): string | undefined {
    return this.#free.pop()
  }

  /** Remembers what a new one consists of. */
  async know(name: string, url: string): Promise<void> {
    this.#shapes.set(name, await within(url, shapeOf))
  }

  /** Empties one that nobody is connected to. @returns false when it is not what it was, and nobody may use it again. */
  async giveBack(name: string, url: string): Promise<boolean> {
    const isAsNew = await within(url, async (client) => {
      await client.query(EMPTY)
      return (await shapeOf(client)) === this.#shapes.get(name)
    }).catch(() => false)
    if (isAsNew) this.#free.push(name)
    else this.#shapes.delete(name)
    return isAsNew
  }
}

async function shapeOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ shape: string }>(SHAPE)
  return rows[0]!.shape
}

async function within<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
