import type { Command } from 'commander'
import type { CliIo } from './io.ts'
import { watched } from './log-commands.ts'
import { resource } from './output.ts'
import { verb } from './verbs.ts'

const SETTINGS =
  'it takes the settings of the service: DATA_DIR or DATABASE_URL, and MASTER_KEY or MASTER_KEY_FILE unless the key lies in DATA_DIR'

/** backup, restore: what works on the storage of an installation itself. */
export function backupCommands(io: CliIo, program: Command): void {
  verb<{ check?: boolean }>(
    io,
    program
      .command('backup')
      .description(
        `back up an installation as of one moment, while it runs, encrypted under its master key, and read the backup back; ${SETTINGS}`,
      )
      .argument('<folder>', 'a new folder, or an empty one')
      .option('--check', 'read the backup in the folder to its end instead, and tell what it holds'),
    async ({ args, options }) => {
      const { backUp, verifyBackup } = await import('./backup.ts')
      const run = options.check ? verifyBackup : backUp
      return resource(await watched(io, options, (given) => run({ folder: args[0]!, ...given })))
    },
  )
  verb(
    io,
    program
      .command('restore')
      .description(
        `restore a backup into an empty installation; ${SETTINGS}; EVENTSTORE_URL where the log is to be in EventStoreDB`,
      )
      .argument('<folder>', 'what `compstream backup` has made'),
    async ({ args, options }) => {
      const { restore } = await import('./backup.ts')
      return resource(await watched(io, options, (given) => restore({ folder: args[0]!, ...given })))
    },
  )
}
