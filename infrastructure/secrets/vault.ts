import { timingSafeEqual } from 'node:crypto'
import type pg from 'pg'
import { RecentlyUsed } from '../../application/commands/recently-used.ts'
import type { Clock } from '../../application/ports/clock.ts'
import type { SecretVault } from '../../application/ports/personal-data.ts'
import { decrypt, encrypt, newKey } from '../crypto/aes-gcm.ts'
import type { MasterKeys, WrappedKey } from '../crypto/master-keys.ts'

/** Another secret stands under the reference already. */
class SecretConflict extends Error {
  override readonly name = 'SecretConflict'
}

interface StoredSecret extends WrappedKey {
  readonly sealed: Buffer
}

/** Secrets kept in memory at the most. */
const REMEMBERED_SECRETS = 10_000

/** The vault in PostgreSQL: each secret under a data key of its own, which the master key wraps. */
export class PostgresSecretVault implements SecretVault {
  readonly #pool: Pick<pg.Pool, 'query'>
  readonly #masterKeys: MasterKeys
  readonly #clock: Clock
  // a reference never changes its secret, so what was read once stays true
  readonly #remembered = new RecentlyUsed<string, string>(REMEMBERED_SECRETS)
  #removals = 0

  constructor(pool: Pick<pg.Pool, 'query'>, masterKeys: MasterKeys, clock: Clock) {
    this.#pool = pool
    this.#masterKeys = masterKeys
    this.#clock = clock
  }

  /** @throws SecretConflict when another secret stands under the reference. */
  async put(ref: string, secret: string): Promise<void> {
    const stored = await this.getOrPut(ref, () => secret)
    if (!isSame(stored, secret)) throw new SecretConflict(`Another secret is stored as ${ref} already`)
  }

  async get(ref: string): Promise<string | null> {
    const remembered = this.#remembered.get(ref)
    if (remembered !== undefined) return remembered
    const removals = this.#removals
    const { rows } = await this.#pool.query<StoredSecret>({
      name: 'secrets/get',
      text: `SELECT sealed, wrapped_key AS wrapped, master_key_id AS "masterKeyId"
             FROM runtime.secrets WHERE ref = $1`,
      values: [ref],
    })
    if (!rows[0]) return null
    const key = this.#masterKeys.unwrap(rows[0], secretPurpose(ref))
    const secret = decrypt(key, ref, rows[0].sealed).toString()
    // what was read before a removal may be what it removes
    if (this.#removals === removals) this.#remembered.set(ref, secret)
    return secret
  }

  async remove(ref: string): Promise<void> {
    // not given out from memory while the answer of the database is on its way
    this.#remembered.delete(ref)
    this.#removals += 1
    await this.#pool.query({
      name: 'secrets/remove',
      text: 'DELETE FROM runtime.secrets WHERE ref = $1',
      values: [ref],
    })
    this.#remembered.delete(ref)
  }

  /** The secret under a reference; where there is none, the one that `make` returns is stored. */
  async getOrPut(ref: string, make: () => string): Promise<string> {
    const present = await this.get(ref)
    if (present !== null) return present
    const key = newKey()
    const { wrapped, masterKeyId } = this.#masterKeys.wrap(key, secretPurpose(ref))
    await this.#pool.query({
      name: 'secrets/put',
      text: `INSERT INTO runtime.secrets (ref, sealed, wrapped_key, master_key_id, created_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (ref) DO NOTHING`,
      values: [
        ref,
        encrypt(key, ref, Buffer.from(make())),
        wrapped,
        masterKeyId,
        new Date(this.#clock.now()),
      ],
    })
    // of two concurrent writes, the first counts for both
    return (await this.get(ref))!
  }

  /** Wraps the key of every secret that stands under an older master key with the current one. @returns how many. */
  async rewrap(): Promise<number> {
    let total = 0
    for (let after = ''; ; ) {
      const { rows } = await this.#pool.query<StoredSecret & { ref: string }>(
        `SELECT ref, wrapped_key AS wrapped, master_key_id AS "masterKeyId"
         FROM runtime.secrets WHERE master_key_id <> $1 AND ref > $2 ORDER BY ref LIMIT 1000`,
        [this.#masterKeys.currentId, after],
      )
      if (rows.length === 0) return total
      for (const row of rows) {
        const purpose = secretPurpose(row.ref)
        const { wrapped, masterKeyId } = this.#masterKeys.wrap(this.#masterKeys.unwrap(row, purpose), purpose)
        await this.#pool.query(
          'UPDATE runtime.secrets SET wrapped_key = $2, master_key_id = $3 WHERE ref = $1',
          [row.ref, wrapped, masterKeyId],
        )
        total += 1
      }
      after = rows.at(-1)!.ref
    }
  }
}

/** What the wrapped key of a secret is bound to. */
function secretPurpose(ref: string): string {
  return `secret ${ref}`
}

function isSame(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}
