import type { Kysely } from 'kysely'

/**
 * One step of the schema. `up` runs as the connecting user (the owner), once, inside the transaction of all pending
 * migrations. Privileges of the service role are granted afterwards, see service-role.ts.
 */
export interface SchemaMigration {
  up(db: Kysely<unknown>): Promise<void>
}
