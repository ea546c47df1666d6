import type pg from 'pg'
import type { MasterKeys } from '../crypto/master-keys.ts'
import { PersonalDataKeys } from './personal-data-keys.ts'
import type { PostgresSecretVault } from './vault.ts'

/**
 * After a rotation: wraps everything that stands under an older master key with the current one, so
 * that the older one can be taken out of the list. May run in the background, beside other
 * processes, and again after an interruption.
 * @returns how many keys were wrapped anew.
 * @throws MasterKeyError when a master key that is still needed is missing.
 */
export async function rewrapAll(
  pool: pg.Pool,
  vault: PostgresSecretVault,
  masterKeys: MasterKeys,
): Promise<{ readonly dataKeys: number; readonly secrets: number }> {
  const secrets = await vault.rewrap()
  const dataKeys = await new PersonalDataKeys(pool).rewrap(masterKeys)
  return { dataKeys, secrets }
}
