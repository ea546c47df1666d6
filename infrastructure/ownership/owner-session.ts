import { KEEPALIVES } from '../database/connection.ts'
import type { Database } from '../database/database.ts'
import { SupervisedSession } from '../database/supervised-session.ts'

/** The class of the advisory locks that sessions hold; no other lock of the service has two numbers. */
const LOCK_CLASS = 1_129_270_864

/** SQL that is true when nobody holds the lock of a session; it is given back with the transaction that asks. */
const isEnded = (session: string) => `pg_try_advisory_xact_lock_shared(${LOCK_CLASS}, ${session}.lock)`

/**
 * SQL that is true when the owner that an expression names has no session, or one that has ended or was not renewed in
 * time. Owners of an earlier release renew what they own instead.
 */
export function isGone(owner: string): string {
  return `NOT EXISTS (SELECT 1 FROM runtime.sessions AS session
                      WHERE session.owner = ${owner} AND COALESCE(session.alive_until > clock_timestamp(), true)
                        AND NOT ${isEnded('session')})`
}

/** Owners that are gone and own nothing any more are forgotten; one that hangs may come back. */
const FORGET = `
  DELETE FROM runtime.sessions WHERE ${isEnded('sessions')}
    AND NOT EXISTS (SELECT 1 FROM runtime.leases WHERE leases.owner = sessions.owner)
    AND NOT EXISTS (SELECT 1 FROM runtime.work WHERE work.lease_owner = sessions.owner)
    AND NOT EXISTS (
      SELECT 1 FROM webhooks.deliveries WHERE state = 'leased' AND deliveries.lease_owner = sessions.owner)`

/**
 * A database session that lives as long as this process: when it ends, others know at once that the process is gone, and
 * take over what it owned. A lost session is opened again; what others took over meanwhile is fenced. A process that hangs
 * keeps its session, and a machine that vanishes for up to 30 seconds: then time decides.
 * @param owner unique per start of a process.
 * @param ttlMs real milliseconds for which it is alive before it is renewed.
 * @throws DatabaseUnavailable when the first session cannot be opened.
 */
export async function openOwnerSession(
  database: Pick<Database, 'connect' | 'name' | 'pool'>,
  owner: string,
  ttlMs: number,
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
        `INSERT INTO runtime.sessions (owner, lock, alive_until)
         VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond') ON CONFLICT (owner) DO NOTHING`,
        [owner, lock, ttlMs],
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
