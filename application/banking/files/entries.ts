import { type BankFileEntries, bankFileEntries } from '../../../domain/banking/files/bank-file.ts'
import type { BankFileEntriesRecorded } from '../../../domain/banking/files/bank-file-events.ts'
import type { FinishedFile } from '../../../domain/banking/files/nacha/draft.ts'
import { traceNumber } from '../../../domain/banking/files/nacha/records.ts'
import { streamOf } from '../../../domain/kernel/decider.ts'
import type { EventOf } from '../../../domain/kernel/event-type.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { eventsOf } from '../../commands/events-of.ts'
import type { FileApp } from './file-app.ts'

/** What some entries of a file are for, one after the other. */
export type EntriesChunk = EventOf<typeof BankFileEntriesRecorded>['data']

/** Entries in one event: about 250 KiB. */
const CHUNK = 4_000
/** Events read at once. */
const PAGE = 8

/** The stream of what the entries of a file are for, by its content: another content has another one. */
export function entriesIdOf(fileId: string, sha256: string): string {
  return derivedId(fileId, `entries/${sha256}`)
}

/** Records what the entries of a file are for, as far as an earlier attempt has not. */
export async function recordEntries(
  { commands, bankFiles }: Pick<FileApp, 'commands' | 'bankFiles'>,
  { fileId, sha256, file }: { readonly fileId: string; readonly sha256: string; readonly file: FinishedFile },
  context: CommandContext,
): Promise<void> {
  const entries_id = entriesIdOf(fileId, sha256)
  const chunks = [...chunksOf(file, { entries_id, file_id: fileId, sha256 }, bankFiles.originator.odfi)]
  let { state } = await commands.load(bankFileEntries, entries_id)
  while (state.chunks < chunks.length) {
    const command = { type: 'RecordEntries', chunks: [chunks[state.chunks]!] } as const
    const commandId = derivedId(context.commandId, `${entries_id}/${state.chunks}`)
    const outcome = orThrow(
      await commands.execute(bankFileEntries, entries_id, command, { ...context, commandId }),
    )
    state = outcome.state as BankFileEntries
  }
}

function* chunksOf(
  { batches }: FinishedFile,
  of: Pick<EntriesChunk, 'entries_id' | 'file_id' | 'sha256'>,
  odfi: string,
): Generator<EntriesChunk> {
  for (const { number, kind, entryDate, firstSequence, ids, amounts, fingerprints } of batches) {
    for (let from = 0; from < ids.length; from += CHUNK) {
      yield {
        ...of,
        batch_number: number,
        kind,
        entry_date: entryDate,
        first_trace: traceNumber(odfi, firstSequence + from),
        ids: ids.slice(from, from + CHUNK),
        amounts_cents: amounts.slice(from, from + CHUNK),
        fingerprints: fingerprints.slice(from, from + CHUNK),
      }
    }
  }
}

/** Reads what the entries of a file are for, in the order of their trace numbers. */
export async function* entriesOf(
  { log, registry }: Pick<FileApp, 'log' | 'registry'>,
  entriesId: string,
): AsyncGenerator<EntriesChunk> {
  const stream = streamOf(bankFileEntries, entriesId)
  for await (const stored of eventsOf(log, stream, { pageSize: PAGE })) {
    yield registry.decode(stored).data as EntriesChunk
  }
}

/** The trace number of the n-th entry of a chunk, from 0. */
export function traceAt({ first_trace }: Pick<EntriesChunk, 'first_trace'>, index: number): string {
  return traceNumber(first_trace.slice(0, 8), Number(first_trace.slice(8)) + index)
}
