import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import type { FileApp } from '../../application/banking/files/file-app.ts'
import { nachaRail } from '../../application/banking/files/write-files.ts'
import type { Application } from '../../application/commands/application.ts'
import type { BankFiles } from '../../application/ports/bank-files.ts'
import { LIMITS } from '../../domain/banking/files/nacha/draft.ts'
import { isWithin } from '../../infrastructure/config/combinations.ts'
import { type Config, ConfigError } from '../../infrastructure/config/config.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { errorCode } from '../../infrastructure/error-code.ts'
import { EncryptedBankArchive } from '../../infrastructure/providers/bank/nacha/archive.ts'
import { NachaFolders } from '../../infrastructure/providers/bank/nacha/folders.ts'
import { SimulatedBankRail } from '../../infrastructure/providers/bank/simulated.ts'

/**
 * The bank rails: what sandbox keys do stays with the simulated one, whatever is configured.
 * @throws ConfigError when a folder of the bank cannot be used.
 */
export async function bankRails(
  { bankRail }: Pick<Config, 'bankRail'>,
  parts: Omit<FileApp, 'bankFiles'> & Pick<Application, 'faults'> & Pick<Database, 'pool'>,
): Promise<Pick<Application, 'bankRails' | 'bankFiles'>> {
  const simulated = new SimulatedBankRail(parts)
  if (bankRail.kind === 'simulated') {
    return { bankRails: { live: simulated, sandbox: simulated }, bankFiles: null }
  }
  const { outboxDir, inboxDir, dataDir, originator } = bankRail
  await checkFolder('NACHA_OUTBOX_DIR', outboxDir, dataDir)
  await checkFolder('NACHA_INBOX_DIR', inboxDir, dataDir)
  const bankFiles: BankFiles = {
    folders: new NachaFolders({ outboxDir, inboxDir }),
    archive: new EncryptedBankArchive(parts.pool, parts.vault),
    originator,
    limits: LIMITS,
  }
  return { bankRails: { live: nachaRail({ ...parts, bankFiles }), sandbox: simulated }, bankFiles }
}

/** A folder that is not there is not made: it may be a place that is not mounted. */
async function checkFolder(name: string, path: string, dataDir: string): Promise<void> {
  const refuse = (why: string) =>
    new ConfigError(
      `${name} is ${JSON.stringify(path)}, ${why}: expected a directory that the service can write`,
    )
  try {
    if (!(await stat(path)).isDirectory()) throw refuse('which is no directory')
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw refuse(`which cannot be used (${errorCode(error)})`)
  }
  const real = await realpath(path)
  const data = await realpath(dataDir).catch(() => dataDir)
  if (isWithin(data, real) || isWithin(real, data))
    throw new ConfigError(`${name} is in DATA_DIR (${dataDir}), or around it: expected a directory apart`)
}
