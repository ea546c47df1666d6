import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import type pg from 'pg'
import type { Clock } from '../../application/ports/clock.ts'
import { type ConsoleSessions, IDLE_MS, LONGEST_MS } from '../../application/ports/console-sessions.ts'
import { decrypt, encrypt, KEY_BYTES } from '../crypto/aes-gcm.ts'

const SECRET_BYTES = 32
const CONTEXT = 'console session'

/**
 * Sessions in the table `runtime.console_sessions`. It holds a hash of a session's secret, and its token encrypted under a
 * key made of the secret: who reads the table opens neither a session nor the API. Every process sees an end at once.
 */
export class StoredConsoleSessions implements ConsoleSessions {
  readonly #pool: Pick<pg.Pool, 'query'>
  readonly #clock: Pick<Clock, 'now'>

  constructor(pool: Pick<pg.Pool, 'query'>, clock: Pick<Clock, 'now'>) {
    this.#pool = pool
    this.#clock = clock
  }

  async begin(token: string): Promise<string> {
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const { now, idle, longest } = this.#times()
    await this.#pool.query({
      name: 'console-sessions/prune',
      text: 'DELETE FROM runtime.console_sessions WHERE seen <= $1 OR began <= $2',
      values: [idle, longest],
    })
    await this.#pool.query({
      name: 'console-sessions/begin',
      text: `INSERT INTO runtime.console_sessions (secret_hash, sealed_token, began, seen) VALUES ($1, $2, $3, $3)`,
      values: [hashOf(secret), encrypt(keyOf(secret), CONTEXT, Buffer.from(token)), now],
    })
    return secret
  }

  async tokenOf(secret: string): Promise<string | null> {
    const { now, idle, longest } = this.#times()
    const { rows } = await this.#pool.query<{ sealed_token: Buffer }>({
      name: 'console-sessions/seen',
      text: `UPDATE runtime.console_sessions SET seen = $2
              WHERE secret_hash = $1 AND seen > $3 AND began > $4 RETURNING sealed_token`,
      values: [hashOf(secret), now, idle, longest],
    })
    const [found] = rows
    return found ? decrypt(keyOf(secret), CONTEXT, found.sealed_token).toString() : null
  }

  async takeForm(secret: string, form: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query({
      name: 'console-sessions/take-form',
      text: `UPDATE runtime.console_sessions SET used_forms = array_append(used_forms, $2)
              WHERE secret_hash = $1 AND NOT $2 = ANY (used_forms)`,
      values: [hashOf(secret), form],
    })
    return rowCount === 1
  }

  async end(secret: string): Promise<void> {
    await this.#pool.query({
      name: 'console-sessions/end',
      text: 'DELETE FROM runtime.console_sessions WHERE secret_hash = $1',
      values: [hashOf(secret)],
    })
  }

  #times(): { readonly now: Date; readonly idle: Date; readonly longest: Date } {
    const now = this.#clock.now()
    return { now: new Date(now), idle: new Date(now - IDLE_MS), longest: new Date(now - LONGEST_MS) }
  }
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', CONTEXT, KEY_BYTES))
}
