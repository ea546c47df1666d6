import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { technicalDeadline } from '../../application/technical-deadlines.ts'
import { endClient, KEEPALIVES } from '../database/connection.ts'
import type { Database } from '../database/database.ts'

/** The class of the advisory locks that sessions hold; no other lock of the service has two numbers. */
const LOCK_CLASS = 1_129_270_864
const HEARTBEAT_MS = 15_000
const HEARTBEAT_LIMIT_MS = 5_000
const LONGEST_BACKOFF_MS = 1_000

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
  database: Pick<Database, 'connect' | 'pool'>,
  owner: string,
): Promise<{ close(): Promise<void> }> {
  const { rows } = await database.pool.query<{ lock: number }>(
    `SELECT nextval('runtime.session_locks')::integer AS lock`,
  )
  const lock = rows[0]!.lock
  const closing = new AbortController()
  let client: pg.Client | null = null
  let heartbeat: NodeJS.Timeout | undefined

  const open = async () => {
    let isLost = false
    const opened = await database.connect({
      purpose: 'session',
      settings: KEEPALIVES,
      onLost: () => {
        isLost = true
        lose(opened)
      },
    })
    try {
      // the session that was lost may hold it for a while
      await opened.query('SELECT pg_advisory_lock($1, $2)', [LOCK_CLASS, lock])
      await opened.query(
        'INSERT INTO runtime.sessions (owner, lock) VALUES ($1, $2) ON CONFLICT (owner) DO NOTHING',
        [owner, lock],
      )
      // lost while its last answer was on the way
      if (isLost) throw new Error('The session was lost as soon as it was opened')
    } catch (error) {
      await endClient(opened)
      throw error
    }
    if (closing.signal.aborted) {
      await endClient(opened)
      return
    }
    client = opened
    heartbeat = setInterval(() => beat(opened), HEARTBEAT_MS)
    heartbeat.unref()
  }
  const lose = (lost: pg.Client) => {
    if (client !== lost) return
    client = null
    clearInterval(heartbeat)
    void endClient(lost)
    void reopen()
  }
  const reopen = async () => {
    for (let attempt = 0; !closing.signal.aborted; attempt += 1) {
      try {
        await open()
        return
      } catch {
        const pause = Math.min(50 * 2 ** Math.min(attempt, 8), LONGEST_BACKOFF_MS)
        await delay(pause, null, { signal: closing.signal }).catch(() => undefined)
      }
    }
  }
  /** A connection whose other end vanished without a word is found out. */
  const beat = (of: pg.Client) => {
    let isAnswered = false
    const answered = () => {
      isAnswered = true
      clearTimeout(limit)
    }
    const limit = setTimeout(
      // an answer that came while this process stood still is read first
      () => setImmediate(() => isAnswered || lose(of)),
      technicalDeadline(HEARTBEAT_LIMIT_MS),
    )
    of.query('SELECT 1').then(answered, answered)
  }

  const close = async () => {
    closing.abort()
    clearInterval(heartbeat)
    const last = client
    client = null
    if (last) await endClient(last)
  }

  await open()
  try {
    await database.pool.query(FORGET)
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}
