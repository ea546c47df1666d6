import { isoTime } from '../../../domain/kernel/calendar.ts'
import type { Application } from '../../application.ts'
import { derivedId } from '../../event-registry.ts'
import type { BankFiles } from '../../ports/bank-files.ts'

/** What of the service files are written with. */
export type FileApp = Pick<
  Application,
  'log' | 'registry' | 'commands' | 'clock' | 'vault' | 'personalData' | 'randomness'
> & {
  readonly bankFiles: BankFiles
}

/** The id of a part of a batch. @param closesAt of the batch, epoch milliseconds. */
export function fileIdOf(closesAt: number, part: number): string {
  return derivedId(`bank-file/${isoTime(closesAt)}`, String(part))
}

/** Where the archive keeps a file that was written. */
export function archivedFile(fileId: string): string {
  return `out/${fileId}`
}

/** Where it keeps one that came. */
export function archivedReport(reportId: string): string {
  return `in/${reportId}`
}
