import { KEEPALIVES } from '../database/connection.ts'
import type { Database } from '../database/database.ts'
import { SupervisedSession } from '../database/supervised-session.ts'

/** The class of the advisory locks that sessions hold; no other lock of the service has two numbers. */
const LOCK_CLASS = 1_129_270_864

/**
 * SQL that is true when the owner that an expression names had a session and has it no more. Owners that never had
 * one are judged by time alone. The lock is given back with the transaction that asks.
 */
export function isGone(owner: string): string {
  return `EXISTS (SELECT 1 FROM runtime.sessions AS session
                   WHERE session.owner = ${owner} AND pg_try_advisory_xact_lock_shared(${LOCK_CLASS}, session.lock))`
}

/** Owners that are gone and own nothing any more are forgotten. */
const FORGET = `
  DELETE FROM runtime.sessions WHERE ${isGone('sessions.owner')}
    AND NOT EXISTS (SELECT 1 FROM runtime.leases WHERE leases.owner = sessions.owner)
    AND NOT EXISTS (SELECT 1 FROM runtime.work WHERE work.lease_owner = sessions.owner)`

/**
 * A database session that lives as long as this process: when it ends, others know at once that the process is gone,
 * and take over what it held before its leases run out. A lost session is opened again; what others took over
 * meanwhile is fenced. A process that hangs keeps its session, and a machine that vanishes for up to 30 seconds: then
 * time decides.
 * @param owner of the leases, unique per start of a process.
 * @throws DatabaseUnavailable when the first session cannot be opened.
 */
export async function openOwnerSession(
  database: Pick<Database, 'connect' | 'name' | 'pool'>,
  owner: string,
): Promise<{ close(): Promise<void> }> {
  const { rows } = await database.pool.query<{ lock: number }>(
    `SELECT nextval('runtime.session_locks')::integer AS lock`,
  )
  const lock = rows[0]!.lock
  const session = new SupervisedSession({
    name: database.name,
    connect: (onLost) => database.connect({ purpose: 'session', settings: KEEPALIVES, onLost }),
    async prepare(client) {
      // the session that was lost may hold it for a while
      await client.query('SELECT pg_advisory_lock($1, $2)', [LOCK_CLASS, lock])
      await client.query(
        'INSERT INTO runtime.sessions (owner, lock) VALUES ($1, $2) ON CONFLICT (owner) DO NOTHING',
        [owner, lock],
      )
    },
    hasHeartbeat: true,
  })
  await session.client()
  try {
    await database.pool.query(FORGET)
    return session
  } catch (error) {
    await session.close()
    throw error
  }
}
