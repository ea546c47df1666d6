import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { technicalDeadline } from '../../application/technical-deadlines.ts'
import { type DatabaseLog, endClient } from './connection.ts'

const HEARTBEAT_MS = 15_000
const HEARTBEAT_LIMIT_MS = 5_000
const SHORTEST_BACKOFF_MS = 50
const LONGEST_BACKOFF_MS = 5_000

interface Session {
  readonly client: pg.Client
  readonly lost: Promise<Error>
}

/**
 * Listens on a channel with a session of its own. The first connection must succeed; a lost one is replaced for ever,
 * with growing pauses.
 * @param parts.handler told of each payload, and of null whenever the session is new: some may have been missed by then.
 * @returns how to stop; it resolves when the session has ended, and never rejects.
 */
export async function listen(parts: {
  readonly channel: string
  readonly handler: (payload: string | null) => void
  readonly connect: (onLost: (error: Error) => void) => Promise<pg.Client>
  readonly log: DatabaseLog
}): Promise<() => Promise<void>> {
  const { channel, connect, log } = parts
  const stopping = new AbortController()
  const { signal } = stopping
  const tell = (payload: string | null) => {
    if (!signal.aborted) parts.handler(payload)
  }

  const open = async (): Promise<Session> => {
    let lose: (error: Error) => void = () => undefined
    const lost = new Promise<Error>((resolve) => {
      lose = resolve
    })
    const client = await connect((error) => lose(error))
    client.on('notification', ({ payload }) => tell(payload ?? ''))
    try {
      await client.query(`LISTEN ${client.escapeIdentifier(channel)}`)
    } catch (error) {
      void endClient(client)
      throw error
    }
    tell(null)
    return { client, lost }
  }

  const follow = async (first: Session): Promise<void> => {
    let session: Session | null = first
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      if (session) {
        const error = await lossOf(session, signal)
        if (error === null) break
        void endClient(session.client)
        log.warn({ reason: error.message }, 'the listening database connection was lost')
        attempt = 0
      }
      const pauseMs = Math.min(SHORTEST_BACKOFF_MS * 2 ** attempt, LONGEST_BACKOFF_MS)
      await delay(pauseMs, undefined, { signal }).catch(() => undefined)
      session = signal.aborted ? null : await open().catch(() => null)
    }
    if (session) await endClient(session.client)
  }

  const following = follow(await open())
  return () => {
    stopping.abort()
    return following
  }
}

/** Waits until a session is lost; one whose other end vanished without a word is found out. @returns null when stopped. */
async function lossOf({ client, lost }: Session, signal: AbortSignal): Promise<Error | null> {
  const after = <T>(ms: number, value: T) => delay(ms, value, { signal, ref: false }).catch(() => null)
  for (;;) {
    const paused = await Promise.race([lost, after(HEARTBEAT_MS, 'over' as const)])
    if (paused !== 'over') return paused
    const answer = client.query('SELECT 1').then(
      () => 'alive' as const,
      (error: Error) => error,
    )
    const heard = await Promise.race([
      lost,
      answer,
      after(technicalDeadline(HEARTBEAT_LIMIT_MS), new Error('no answer')),
    ])
    if (heard !== 'alive') return heard
  }
}
