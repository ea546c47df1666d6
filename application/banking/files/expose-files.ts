import { createHash } from 'node:crypto'
import {
  type BankFile,
  type BankFileCommand,
  bankFile,
  isTooLate,
} from '../../../domain/banking/files/bank-file.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { existing } from '../../commands/verbs.ts'
import type { FileApp } from './file-app.ts'
import { archivedFile } from './file-references.ts'

/**
 * Brings a file that is recorded to its name in the outbox, and records that. One that is neither beside its place nor in
 * it may be at the bank, and one that is too late goes nowhere: it is `uncertain`, and a person decides.
 * @throws ProviderUnavailable
 */
export async function exposeFile(app: FileApp, fileId: string, context: CommandContext): Promise<void> {
  const { folders } = app.bankFiles
  let file = await existing(app, bankFile, fileId)
  if (file.status === 'repeating') {
    const { name, sha256 } = file.content!
    const place = await folders.look(name, sha256)
    // its folder was away, and came back with it
    if (place === 'fetched') {
      await recorded(app, file, 'RecordFetched', context)
      return
    }
    // it waited for its folder until the day of its entries: a person decides again
    if (place !== 'exposed' && isTooLate(file, app.clock.now())) {
      await folders.withdraw(name)
      await recorded(app, file, 'RecordAbsent', context)
      return
    }
    if (place === 'absent') await folders.stage(name, sha256, archived(app, fileId, sha256))
    file = await recorded(app, file, 'RecordRestaged', context)
  }
  if (file.status !== 'recorded') return
  const { name, sha256 } = file.content!
  const place = await folders.look(name, sha256)
  // the process that was to expose it died, or its folder was away
  const isLate = place === 'staged' && isTooLate(file, app.clock.now())
  if (isLate) await folders.withdraw(name)
  if (isLate || place === 'absent') {
    await recorded(app, file, 'RecordAbsent', context)
    return
  }
  if (place === 'staged') await folders.expose(name, sha256)
  file = await recorded(app, file, 'RecordExposed', context)
  if (place === 'fetched') await recorded(app, file, 'RecordFetched', context)
}

/**
 * Looks after a file that was exposed, or is uncertain: whether it was fetched, is gone without that, or is back.
 * @returns what became of it; null: nothing, or it stands in the outbox. @throws ProviderUnavailable
 */
export async function lookAfterFile(
  app: FileApp,
  fileId: string,
  context: CommandContext,
): Promise<'fetched' | 'uncertain' | null> {
  const file = await existing(app, bankFile, fileId)
  if (file.status !== 'exposed' && file.status !== 'uncertain') return null
  const place = await app.bankFiles.folders.look(file.content!.name, file.content!.sha256)
  // one that was never exposed waits for a person
  const found = place === 'exposed' || place === 'fetched' ? place : 'uncertain'
  if (found === file.status) return null
  await recorded(app, file, FOUND[found], context)
  return found === 'exposed' ? null : found
}

const FOUND = { exposed: 'RecordExposed', fetched: 'RecordFetched', uncertain: 'RecordAbsent' } as const

/** The content of a file, out of the archive. @throws Error when it is not what was recorded. */
export async function* archived(
  { bankFiles }: Pick<FileApp, 'bankFiles'>,
  fileId: string,
  sha256: string,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const chunk of bankFiles.archive.read(archivedFile(fileId, sha256))) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('hex') !== sha256) throw new Error(`The archive does not hold the file ${fileId} as it was`)
}

type Recorded = Extract<
  BankFileCommand['type'],
  'RecordExposed' | 'RecordFetched' | 'RecordAbsent' | 'RecordRestaged'
>

async function recorded(
  { commands, clock }: Pick<FileApp, 'commands' | 'clock'>,
  { file_id, updated_at }: BankFile,
  type: Recorded,
  context: CommandContext,
): Promise<BankFile> {
  // a file may be exposed more than once
  const commandId = derivedId(context.commandId, `${type}/${file_id}/${updated_at}`)
  const outcome = orThrow(
    await commands.execute(bankFile, file_id, { type, at: clock.now() }, { ...context, commandId }),
  )
  return outcome.state!
}
