import type { Application } from '../../commands/application.ts'
import type { BankFiles } from '../../ports/bank-files.ts'

/** What of the service files are written with. */
export type FileApp = Pick<
  Application,
  'log' | 'registry' | 'commands' | 'clock' | 'vault' | 'personalData' | 'randomness'
> & {
  readonly bankFiles: BankFiles
}
