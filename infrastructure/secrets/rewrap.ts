import type { Pool } from 'pg'
import { systemClock } from '../clock/system-clock.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import { PersonalDataKeys } from './personal-data-keys.ts'
import { PostgresSecretVault } from './vault.ts'

/**
 * After a rotation or a move: wraps everything that stands under another master key with the current one, so
 * that the other one can be taken out of the list. May run in the background, beside other
 * processes, and again after an interruption.
 * @returns how many keys were wrapped anew.
 * @throws MasterKeyError when a master key that is still needed is missing.
 */
export async function rewrapAll(
  db: Pick<Pool, 'query'>,
  masterKeys: MasterKeys,
): Promise<{ readonly dataKeys: number; readonly secrets: number }> {
  const secrets = await new PostgresSecretVault(db, masterKeys, systemClock).rewrap()
  const dataKeys = await new PersonalDataKeys(db).rewrap(masterKeys)
  return { dataKeys, secrets }
}
