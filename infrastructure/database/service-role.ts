import type pg from 'pg'
import { isConnectionLoss } from './connection.ts'

/**
 * The role that the service's sessions run as. It reads and adds events and cannot change or remove them, whoever
 * connects. Roles belong to the whole cluster, so several databases may share it.
 */
export const SERVICE_ROLE = 'compstream_service'

/**
 * Schemas in which the service role reads and writes all tables, present and future ones of the owner; those of the
 * generations of projections (`rm_…`) are made while the service runs.
 */
const SERVICE_SCHEMAS = ['runtime', 'read_model', 'webhooks']
const GENERATION_SCHEMAS = 'rm\\_%'

const ATTEMPTS = 20

/**
 * Creates the role where the connecting user may and lets that user take it. Races with other processes and other
 * databases of the cluster are repeated.
 * @returns whether sessions of that user can run as the role.
 */
export async function ensureServiceRole(client: pg.ClientBase): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (await mayTakeServiceRole(client)) return true
      const exists = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [SERVICE_ROLE])
      if (exists.rowCount === 0) await client.query(`CREATE ROLE ${SERVICE_ROLE} NOLOGIN`)
      await client.query(`GRANT ${SERVICE_ROLE} TO CURRENT_USER`)
      return await mayTakeServiceRole(client)
    } catch (error) {
      if (isConnectionLoss(error)) throw error
      const code = (error as { code?: string }).code
      // 42501: this user may not; then the triggers alone protect the events
      if (code === '42501') return false
      // 42710, 23505: created by another process meanwhile; XX000: tuple concurrently updated
      if (attempt >= ATTEMPTS || !['42710', '23505', 'XX000'].includes(code ?? '')) throw error
    }
  }
}

/** Grants the service role what it needs in this database; at each start, because a restored dump may lack it. */
export async function grantToServiceRole(client: pg.ClientBase): Promise<void> {
  await client.query(`
    GRANT USAGE ON SCHEMA event_log TO ${SERVICE_ROLE};
    REVOKE ALL ON ALL TABLES IN SCHEMA event_log FROM ${SERVICE_ROLE};
    GRANT SELECT, INSERT ON event_log.events TO ${SERVICE_ROLE};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA event_log TO ${SERVICE_ROLE};
  `)
  const { rows } = await client.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace
      WHERE (nspname = ANY ($1) OR nspname LIKE $2) AND pg_has_role(current_user, nspowner, 'MEMBER')`,
    [SERVICE_SCHEMAS, GENERATION_SCHEMAS],
  )
  for (const { name } of rows) await grantSchemaToServiceRole(client, name)
}

/** Lets the service role read and write every table of a schema, also those that the owner creates in it later. */
export async function grantSchemaToServiceRole(client: pg.ClientBase, schema: string): Promise<void> {
  const name = client.escapeIdentifier(schema)
  const tables = 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE'
  await client.query(`
    GRANT USAGE ON SCHEMA ${name} TO ${SERVICE_ROLE};
    GRANT ${tables} ON ALL TABLES IN SCHEMA ${name} TO ${SERVICE_ROLE};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO ${SERVICE_ROLE};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name} TO ${SERVICE_ROLE};
    ALTER DEFAULT PRIVILEGES IN SCHEMA ${name} GRANT ${tables} ON TABLES TO ${SERVICE_ROLE};
    ALTER DEFAULT PRIVILEGES IN SCHEMA ${name} GRANT USAGE ON SEQUENCES TO ${SERVICE_ROLE};
  `)
}

/** Whether sessions of the connecting user may run as the role. */
export async function mayTakeServiceRole(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    `SELECT pg_has_role(current_user, oid,
              CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) AS may
       FROM pg_roles WHERE rolname = $1`,
    [SERVICE_ROLE],
  )
  return rows[0]?.may === true
}
