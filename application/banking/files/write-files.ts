import { createHash } from 'node:crypto'
import { isRoutingNumber } from '../../../domain/banking/accounts/routing-number.ts'
import { nextBankingDay } from '../../../domain/banking/debits/banking-days.ts'
import { type BankFile, bankFile, bankFileNumbers } from '../../../domain/banking/files/bank-file.ts'
import type { BankFileData } from '../../../domain/banking/files/bank-file-events.ts'
import { writtenName } from '../../../domain/banking/files/nacha/characters.ts'
import { checkForward } from '../../../domain/banking/files/nacha/check.ts'
import {
  addEntries,
  type DraftEntry,
  entriesOf as draftedEntries,
  type FileDraft,
  type FinishedFile,
  finishFile,
  newDraft,
  sequencesOf,
} from '../../../domain/banking/files/nacha/draft.ts'
import { MAX_ENTRY_CENTS, traceNumber } from '../../../domain/banking/files/nacha/records.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { newYorkDate, newYorkTime } from '../../../domain/kernel/new-york.ts'
import { isRejection, orThrow } from '../../../domain/kernel/rejection.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import type { BankRail, RailBatch, RailEntry } from '../../ports/bank-rail.ts'
import { ProviderUnavailable } from '../../ports/provider.ts'
import { entriesIdOf, entriesOf, recordEntries } from './entries.ts'
import { exposeFile } from './expose-files.ts'
import type { FileApp } from './file-app.ts'
import { archivedFile, fileIdOf } from './file-references.ts'
import { orderedDeposits, orderMicroDeposits } from './micro-deposits.ts'

/** Characters of the receiver's name. */
const NAME_WIDTH = 22
/** Characters written at once, about. */
const CHUNK = 256 * 1024

/** The bank rail whose debits and deposits go to the bank in files. */
export function nachaRail(app: FileApp): BankRail {
  return {
    kind: 'nacha',
    submit: (batch) => writeFiles(app, batch),
    sendMicroDeposits: (deposits) => orderMicroDeposits(app, deposits),
  }
}

/**
 * Writes the files of a batch that has closed: as many as its entries take. What an earlier attempt recorded is exposed
 * and not written again; what it did not get to record was never to be seen, and is written anew.
 * @throws ProviderUnavailable where the folders cannot be used.
 */
export async function writeFiles(app: FileApp, batch: RailBatch): Promise<void> {
  const { closesAt, context, signal } = batch
  const { originator, limits } = app.bankFiles
  let part = 0
  const recorded = new Set<string>()
  for (; ; part += 1) {
    const { state } = await app.commands.load(bankFile, fileIdOf(closesAt, part))
    if (state === null || state.content === null) break
    for await (const { ids } of entriesOf(app, state.content.entries_id))
      for (const id of ids) recorded.add(id)
    await exposeFile(app, state.file_id, context)
  }
  let draft = newDraft(originator, limits)
  const put = async (...entries: readonly [DraftEntry, ...DraftEntry[]]) => {
    if (addEntries(draft, entries)) return
    await writeFile(app, { closesAt, part, draft, signal }, context)
    part += 1
    draft = newDraft(originator, limits)
    if (!addEntries(draft, entries)) throw new Error('An entry does not fit into a file of its own')
  }
  const ofBatch = { closesAt, entryDate: entryDateFrom(app), recorded }
  // both of an order in one file: what is recorded is known by their order
  for await (const both of orderedDeposits(app, ofBatch, context)) await put(...both)
  for await (const page of batch.entries) {
    signal.throwIfAborted()
    for (const entry of page) {
      if (recorded.has(entry.debitId)) continue
      const drafted = draftOf(entry, entryDateFrom(app))
      if (typeof drafted === 'string') await batch.refuse(entry, drafted)
      else await put(drafted)
    }
  }
  if (draftedEntries(draft) > 0) await writeFile(app, { closesAt, part, draft, signal }, context)
  else await withdrawBegun(app, fileIdOf(closesAt, part))
}

/** Removes what a process staged, before it died, of a file that has no entries any more. */
async function withdrawBegun({ commands, bankFiles }: FileApp, fileId: string): Promise<void> {
  const { state } = await commands.load(bankFile, fileId)
  if (state?.status === 'begun') await bankFiles.folders.withdraw(nameOf(state))
}

function nameOf({ file_date, modifier, file_id }: BankFile): string {
  return `${file_date.replaceAll('-', '')}-${modifier}-${file_id}.ach`
}

/**
 * Whether a file of a batch is recorded: the bank may have what stands in it, whatever is decided of its debits.
 * @param closesAt epoch milliseconds.
 */
export async function isInFiles({ commands }: Pick<FileApp, 'commands'>, closesAt: number): Promise<boolean> {
  const { state } = await commands.load(bankFile, fileIdOf(closesAt, 0))
  return state !== null && state.content !== null
}

/** The first day on which what is handed over now can take effect: no entry takes effect on the day it is sent. */
function entryDateFrom({ clock }: Pick<FileApp, 'clock'>): string {
  return nextBankingDay(newYorkDate(clock.now()))
}

/** An entry as a file holds it, or why none can. @param earliest where its batch was late, it takes effect later. */
function draftOf(
  { debitId, amountCents, effectiveDate, account, fingerprint, isRetry, refusal }: RailEntry,
  earliest: string,
): DraftEntry | string {
  if (refusal !== null) return refusal
  if (account === null) throw new Error(`The account of the entry ${debitId} is missing`)
  const name = writtenName(account.holderName, NAME_WIDTH)
  if (!isRoutingNumber(account.routingNumber)) return 'The check digit of the routing number is wrong'
  if (amountCents > MAX_ENTRY_CENTS) return `An entry holds ${MAX_ENTRY_CENTS} cents at the most`
  if (name === null) return 'The name of the account holder has no letter or digit that a file can hold'
  return {
    kind: isRetry ? 'retry' : 'debit',
    id: debitId,
    amountCents,
    name,
    entryDate: effectiveDate < earliest ? earliest : effectiveDate,
    routing: account.routingNumber,
    account: account.accountNumber,
    accountType: account.accountType,
    fingerprint,
  }
}

interface Part {
  readonly closesAt: number
  readonly part: number
  readonly draft: FileDraft
  readonly signal: AbortSignal
}

/** Writes one file: numbers, content, archive, then its record in the log, and only then its name in the outbox. */
async function writeFile(
  app: FileApp,
  { closesAt, part, draft, signal }: Part,
  context: CommandContext,
): Promise<void> {
  const { folders, archive, originator } = app.bankFiles
  const { destinationRouting: destination_routing, originId: origin_id, companyId: company_id } = originator
  const fileId = fileIdOf(closesAt, part)
  const begun = await begin(app, { closesAt, part, count: sequencesOf(draft) }, context)
  const header = { date: begun.file_date, time: begun.file_time, modifier: begun.modifier }
  const file = finishFile(draft, header, begun.first_sequence)
  checkForward(file.lines())
  const name = nameOf(begun)
  const { sha256, bytes } = summed(file)
  await folders.stage(name, sha256, encoded(file, signal))
  await archive.write(archivedFile(fileId, sha256), encoded(file, signal))
  await recordEntries(app, { fileId, sha256, file }, context)
  const data: BankFileData<'BankFileRecorded'> = {
    file_id: fileId,
    name,
    sha256,
    bytes,
    entries_id: entriesIdOf(fileId, sha256),
    first_trace: traceNumber(originator.odfi, file.firstSequence),
    last_trace: traceNumber(originator.odfi, file.lastSequence),
    batches: file.batches.map(({ number, description, entryDate, serviceClass, totals }) => ({
      batch_number: number,
      description,
      entry_date: entryDate,
      service_class: serviceClass,
      entries: totals.entries,
      debit_cents: totals.debitCents,
      credit_cents: totals.creditCents,
    })),
    debit_cents: file.totals.debitCents,
    credit_cents: file.totals.creditCents,
    originator: { destination_routing, origin_id, company_id },
    at: isoTime(app.clock.now()),
  }
  const commandId = derivedId(context.commandId, `record/${fileId}/${sha256}`)
  orThrow(await app.commands.execute(bankFile, fileId, { type: 'Record', data }, { ...context, commandId }))
  await exposeFile(app, fileId, context)
}

/** Begins a file, with numbers that nobody else has; one that an earlier attempt began goes on with its numbers. */
async function begin(
  app: FileApp,
  { closesAt, part, count }: { readonly closesAt: number; readonly part: number; readonly count: number },
  context: CommandContext,
): Promise<BankFile> {
  const { commands, clock, bankFiles } = app
  const fileId = fileIdOf(closesAt, part)
  const { state: before } = await commands.load(bankFile, fileId)
  const now = clock.now()
  const fileDate = newYorkDate(now)
  // the header tells the day on which the file goes
  if (before && before.count >= count && before.file_date === fileDate) return before
  const { odfi, companyId } = bankFiles.originator
  const taken = await commands.execute(
    bankFileNumbers,
    derivedId('bank-file-numbers', `${odfi}/${companyId}`),
    { type: 'TakeNumbers', fileId, fileDate, count, at: now },
    // numbers that are taken and not used are gone: each attempt takes its own
    { ...context, commandId: app.randomness.commandId(), mayRepeat: false },
  )
  // tomorrow there are modifiers again
  if (isRejection(taken)) throw new ProviderUnavailable(taken.message, { nothingHappened: true })
  const { modifier, first_sequence } = taken.events[0]!.data
  const data = {
    file_id: fileId,
    batch_closes_at: isoTime(closesAt),
    part,
    file_date: fileDate,
    file_time: newYorkTime(now),
    modifier,
    first_sequence,
    count,
    at: isoTime(now),
  }
  const commandId = derivedId(context.commandId, `begin/${fileId}/${first_sequence}`)
  const begun = orThrow(
    await commands.execute(bankFile, fileId, { type: 'Begin', data }, { ...context, commandId }),
  )
  return begun.state!
}

function* texts({ lines }: Pick<FinishedFile, 'lines'>): Generator<Buffer> {
  let text = ''
  for (const line of lines()) {
    text += `${line}\n`
    if (text.length < CHUNK) continue
    yield Buffer.from(text, 'latin1')
    text = ''
  }
  if (text !== '') yield Buffer.from(text, 'latin1')
}

/** @throws the reason of the signal: another attempt may write the file by then. */
async function* encoded(file: Pick<FinishedFile, 'lines'>, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (const text of texts(file)) {
    signal.throwIfAborted()
    yield text
  }
}

function summed(file: Pick<FinishedFile, 'lines'>): { readonly sha256: string; readonly bytes: number } {
  const hash = createHash('sha256')
  let bytes = 0
  for (const text of texts(file)) {
    hash.update(text)
    bytes += text.length
  }
  return { sha256: hash.digest('hex'), bytes }
}
