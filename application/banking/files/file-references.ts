import { isoTime } from '../../../domain/kernel/calendar.ts'
import { derivedId } from '../../commands/event-registry.ts'

/** The id of a part of a batch. @param closesAt of the batch, epoch milliseconds. */
export function fileIdOf(closesAt: number, part: number): string {
  return derivedId(`bank-file/${isoTime(closesAt)}`, String(part))
}

/** Where the archive keeps a file that was written: each content of its own, whichever attempt is recorded. @param sha256 hex. */
export function archivedFile(fileId: string, sha256: string): string {
  return `out/${fileId}/${sha256}`
}

/** Where it keeps one that came. */
export function archivedReport(reportId: string): string {
  return `in/${reportId}`
}
