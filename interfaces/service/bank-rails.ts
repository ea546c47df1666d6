import type { FileApp } from '../../application/banking/files/file-app.ts'
import { nachaRail } from '../../application/banking/files/write-files.ts'
import type { Application } from '../../application/commands/application.ts'
import type { BankFiles } from '../../application/ports/bank-files.ts'
import { LIMITS } from '../../domain/banking/files/nacha/draft.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { EncryptedBankArchive } from '../../infrastructure/providers/bank/nacha/archive.ts'
import { NachaFolders } from '../../infrastructure/providers/bank/nacha/folders.ts'
import { SimulatedBankRail } from '../../infrastructure/providers/bank/simulated.ts'
import { checkFolder } from './folders.ts'

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
