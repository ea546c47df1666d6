import { bankReport } from '../../../domain/banking/files/bank-report.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { FirstFailure } from '../../commands/first-failure.ts'
import type { FileApp } from './file-app.ts'
import { archivedReport } from './file-references.ts'

/** The id of a report, by its content. @param sha256 hex. */
export function reportIdOf(sha256: string): string {
  return derivedId('bank-report', sha256)
}

/**
 * Takes every file that has come: keeps it, records it, and puts it out of the way. The same content counts once, whatever
 * its name. What is in it is carried out after that.
 * @returns how many files were taken. @throws ProviderUnavailable for one that cannot be, once the others are.
 */
export async function takeReports(app: FileApp, context: CommandContext): Promise<number> {
  const { folders } = app.bankFiles
  const failure = new FirstFailure()
  let taken = 0
  for (const name of await folders.incoming()) {
    if (await failure.unlessFailing(() => takeReport(app, name, context))) taken += 1
  }
  failure.throwIfAny()
  return taken
}

async function takeReport(app: FileApp, name: string, context: CommandContext): Promise<boolean> {
  const { folders, archive } = app.bankFiles
  const file = await folders.read(name)
  // another process was faster
  if (file === null) return false
  const { sha256, bytes, content } = file
  const report_id = reportIdOf(sha256)
  if (content !== null) await archive.write(archivedReport(report_id), once(content))
  const data = { report_id, name: name.slice(0, 200), sha256, bytes }
  const commandId = derivedId(context.commandId, `receive/${report_id}/${name}`)
  const at = app.clock.now()
  orThrow(
    await app.commands.execute(
      bankReport,
      report_id,
      { type: 'Receive', data, at },
      { ...context, commandId },
    ),
  )
  await folders.take(name, sha256)
  return true
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < content.length; from += PART) yield content.subarray(from, from + PART)
}
/** Bytes of a part in the archive. */
const PART = 1024 * 1024
