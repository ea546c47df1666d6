import type { Kysely } from 'kysely'

/**
 * One step of the schema. `up` runs as the connecting user (the owner), once, in a transaction of its own, in which no
 * lock of a table is waited for long: it is tried again (migrate.ts). Privileges of the service role are granted afterwards, see service-role.ts.
 */
export interface SchemaMigration {
  up(db: Kysely<unknown>): Promise<void>
}
