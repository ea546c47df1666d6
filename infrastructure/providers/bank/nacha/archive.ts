import type pg from 'pg'
import type { BankArchive } from '../../../../application/ports/bank-files.ts'
import type { SecretVault } from '../../../../application/ports/personal-data.ts'
import { decrypt, encrypt, newKey } from '../../../crypto/aes-gcm.ts'

/** What went to banks and what came, in the table `runtime.bank_archive`: each content under a key of its own in the vault. */
export class EncryptedBankArchive implements BankArchive {
  readonly #pool: Pick<pg.Pool, 'query'>
  readonly #vault: Pick<SecretVault, 'get' | 'getOrPut'>

  constructor(pool: Pick<pg.Pool, 'query'>, vault: Pick<SecretVault, 'get' | 'getOrPut'>) {
    this.#pool = pool
    this.#vault = vault
  }

  async write(ref: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const key = keyOf(await this.#vault.getOrPut(vaultRef(ref), () => newKey().toString('base64')))
    let part = 0
    for await (const chunk of chunks) {
      await this.#pool.query({
        name: 'bank-archive/put',
        text: `INSERT INTO runtime.bank_archive (ref, part, sealed) VALUES ($1, $2, $3)
               ON CONFLICT (ref, part) DO UPDATE SET sealed = excluded.sealed`,
        values: [ref, part, encrypt(key, boundTo(ref, part), Buffer.from(chunk))],
      })
      part += 1
    }
    await this.#pool.query({
      name: 'bank-archive/cut',
      text: 'DELETE FROM runtime.bank_archive WHERE ref = $1 AND part >= $2',
      values: [ref, part],
    })
  }

  async *read(ref: string): AsyncGenerator<Uint8Array> {
    const secret = await this.#vault.get(vaultRef(ref))
    if (secret === null) return
    for (let part = 0; ; part += 1) {
      const { rows } = await this.#pool.query<{ sealed: Buffer }>({
        name: 'bank-archive/get',
        text: 'SELECT sealed FROM runtime.bank_archive WHERE ref = $1 AND part = $2',
        values: [ref, part],
      })
      if (!rows[0]) return
      yield decrypt(keyOf(secret), boundTo(ref, part), rows[0].sealed)
    }
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret, 'base64')
}

function vaultRef(ref: string): string {
  return `bank-archive/${ref}`
}

/** What the ciphertext of a part is bound to. */
function boundTo(ref: string, part: number): string {
  return `bank archive ${ref} ${part}`
}
