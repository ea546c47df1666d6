import { createHash } from 'node:crypto'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { bankFile } from '../../../domain/banking/files/bank-file.ts'
import type { Application } from '../../commands/application.ts'
import type { BankFiles } from '../../ports/bank-files.ts'
import type { ResultOf } from '../../ports/read-database.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type PageBySeq, pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { type EntriesChunk, entriesOf, traceAt } from '../files/entries.ts'
import { archivedFile } from '../files/file-references.ts'
import { described, type Findings } from './findings.ts'

/** Files that are looked up in one go; debits that are looked at together; debits that a query tells of at the most. */
const PAGE = 100
const AT_ONCE = 64
const MOST = 500
/** How long the debits of a file may wait for the bank's answer, in milliseconds. */
const TELLING_MS = 3_600_000

interface Recorded extends PageBySeq {
  /** Of files that are begun: nothing is in them yet, and nothing may ever be. */
  readonly begun: 'begun'
}
const FILES = statement('bank-files-recorded', (db, $: Parameter<Recorded>) =>
  db
    .selectFrom('bank_files')
    .select(['file_id', 'entries_id', 'seq'])
    .where('seq', '>', $('after') as never)
    .where('status', '<>', $('begun'))
    .orderBy('seq')
    .limit($('limit')),
)
/** Of debits that wait in a file, or have ended although their entries stand in one. */
const WAITS_OR_ENDED = ['in_file', 'ended'] as const
interface Misplaced {
  readonly waits: 'in_file'
  readonly places: typeof WAITS_OR_ENDED
  readonly accepted: 'accepted'
  readonly limit: number
}
const WHOSE = [
  ...(['booked_debits.leg_id', 'booked_debits.tenant_id', 'booked_debits.environment'] as const),
  ...(['booked_debits.carrier_id', 'booked_debits.file_id', 'booked_debits.place'] as const),
  ...(['booked_debits.entries', 'booked_debits.representments', 'bank_files.answer'] as const),
] as const
const MISPLACED = statement('debits-misplaced-in-files', (db, $: Parameter<Misplaced>) =>
  db
    .selectFrom('booked_debits')
    .leftJoin('bank_files', 'bank_files.file_id', 'booked_debits.file_id')
    .select(WHOSE)
    .where((eb) =>
      eb.or([
        eb('booked_debits.entries', '>', eb(eb.ref('booked_debits.representments'), '+', eb.lit(1))),
        eb.and([eb('booked_debits.place', '=', $('waits')), eb('bank_files.file_id', 'is', null)]),
        // its money moves, although it is said to have ended before any did, or to wait
        eb.and([
          eb('booked_debits.place', '=', ({ fn }) => fn.any($('places'))),
          eb('bank_files.answer', '=', $('accepted')),
        ]),
      ]),
    )
    // those that a bank's answer is being told to are looked at last: they must not crowd out the others
    .orderBy(
      (eb) => eb('booked_debits.entries', '>', eb(eb.ref('booked_debits.representments'), '+', eb.lit(1))),
      'desc',
    )
    .orderBy((eb) => eb('booked_debits.place', '=', $('waits')))
    .limit($('limit')),
)
/** Files of which the bank took some batches, with debits that wait or have ended: those of the others have. */
const PARTLY = statement(
  'bank-files-taken-in-part',
  (db, $: Parameter<{ readonly places: typeof WAITS_OR_ENDED; readonly partly: 'partly' }>) =>
    db
      .selectFrom('booked_debits')
      .innerJoin('bank_files', 'bank_files.file_id', 'booked_debits.file_id')
      .select(['bank_files.file_id', 'bank_files.entries_id'])
      .distinct()
      .where('booked_debits.place', '=', ({ fn }) => fn.any($('places')))
      .where('bank_files.answer', '=', $('partly')),
)
interface OfBatch {
  readonly debitIds: readonly string[]
  readonly fileId: string
  readonly places: typeof WAITS_OR_ENDED
}
const MISPLACED_OF = statement('debits-misplaced-in-a-batch', (db, $: Parameter<OfBatch>) =>
  db
    .selectFrom('booked_debits')
    .innerJoin('bank_files', 'bank_files.file_id', 'booked_debits.file_id')
    .select(WHOSE)
    .where('booked_debits.leg_id', '=', ({ fn }) => fn.any($('debitIds')))
    .where('booked_debits.file_id', '=', $('fileId'))
    .where('booked_debits.place', '=', ({ fn }) => fn.any($('places'))),
)

/**
 * Holds the files for the bank against the debits that they collect, and against their contents in the archive: each file
 * once, and every debit that stands in one.
 * @param after position behind which files are compared, a decimal.
 * @returns how many files were compared.
 * @throws ReadModelsLate when it cannot be told which files there are.
 */
export async function compareFiles(app: Application, after: string, findings: Findings): Promise<number> {
  const { read, bankFiles } = app
  await untilCurrent(app, 'bank-files')
  let files = 0
  const recorded = (page: PageBySeq) => read.query(FILES, { ...page, begun: 'begun' })
  for await (const page of pagesBySeq(PAGE, recorded, after)) {
    for (const { file_id, entries_id } of page) {
      await compareEntries(app, file_id, entries_id, findings)
      if (bankFiles !== null) await compareContent(app, bankFiles, file_id, entries_id, findings)
    }
    files += page.length
  }
  const places = WAITS_OR_ENDED
  const misplaced = { waits: 'in_file', places, accepted: 'accepted', limit: MOST } as const
  for (const row of await read.query(MISPLACED, misplaced)) {
    if (hasMoreEntries(row) || !(await isYetToBeReported(app, row))) findings.add(differenceOf(row))
  }
  for (const file of await read.query(PARTLY, { places, partly: 'partly' })) {
    await compareTaken(app, file, findings)
  }
  return files
}

type Row = ResultOf<typeof MISPLACED>

function hasMoreEntries({ entries, representments }: Pick<Row, 'entries' | 'representments'>): boolean {
  return entries > representments + 1
}

/** Whether the bank's answer may be on its way to the debits of a file: a later comparison finds one that never was. */
async function isYetToBeReported(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  { place, file_id }: Pick<Row, 'place' | 'file_id'>,
): Promise<boolean> {
  if (place !== 'in_file' || file_id === null) return false
  const { state } = await commands.load(bankFile, file_id)
  return state !== null && clock.now() - Date.parse(state.updated_at) < TELLING_MS
}

function differenceOf({ place, entries, representments, answer, ...whose }: Row) {
  return {
    ...({ what: 'file_differs', ...whose } as const),
    expected: described({ entries: `at most ${representments + 1}` }),
    found: described({ entries, place, answer }),
  }
}

/** The debits of a file that the bank took in part against that: none in what it took waits, or has ended. */
async function compareTaken(
  app: Application,
  { file_id: fileId, entries_id }: { readonly file_id: string; readonly entries_id: string },
  findings: Findings,
): Promise<void> {
  const { commands, log, registry, read } = app
  const { batches } = (await commands.load(bankFile, fileId)).state!
  const isTaken = (number: number) =>
    batches.some(({ batch_number, outcome }) => batch_number === number && outcome === 'accepted')
  for await (const { batch_number, ids: debitIds } of entriesOf({ log, registry }, entries_id)) {
    if (!isTaken(batch_number)) continue
    const rows = await read.query(MISPLACED_OF, { debitIds, fileId, places: WAITS_OR_ENDED })
    for (const row of rows) {
      // one with more entries was reported before
      if (hasMoreEntries(row) || (await isYetToBeReported(app, row))) continue
      findings.add(differenceOf({ ...row, answer: 'accepted' }))
    }
  }
}

/** The entries of a file against the debits that they are of. */
async function compareEntries(
  { commands, log, registry }: Application,
  file_id: string,
  entriesId: string,
  findings: Findings,
): Promise<void> {
  for await (const chunk of entriesOf({ log, registry }, entriesId)) {
    if (chunk.kind === 'micro-deposit') continue
    for (let from = 0; from < chunk.ids.length; from += AT_ONCE) {
      const debitIds = chunk.ids.slice(from, from + AT_ONCE)
      const debits = await commands.loadAll(bankDebit, debitIds)
      for (const [index, { state: debit }] of debits.entries()) {
        const cents = chunk.amounts_cents[from + index]!
        if (debit && debit.amount_cents === cents && isOf(debit, chunk)) continue
        const { tenant_id, environment, carrier_id } = debit ?? {}
        findings.add({
          ...({ what: 'file_differs', file_id, leg_id: debitIds[index]! } as const),
          ...(debit && { tenant_id, environment, carrier_id }),
          expected: described({ cents: debit?.amount_cents ?? null, file: debit?.in_file?.file_id ?? null }),
          found: described({ cents, file: file_id, entry: traceAt(chunk, from + index) }),
        })
      }
    }
  }
}

/** Whether a debit was told, or is about to be, that it stands in that file; one that was presented again stands in a later one. */
function isOf({ in_file, representments, status }: BankDebit, { file_id, kind }: EntriesChunk): boolean {
  if (in_file === null && status === 'Scheduled') return true
  return in_file?.file_id === file_id || representments > (kind === 'retry' ? 1 : 0)
}

/** Compares the entries of a file with its archived content, and that with its hash. */
async function compareContent(
  { commands, log, registry }: Application,
  { archive }: BankFiles,
  file_id: string,
  entriesId: string,
  findings: Findings,
): Promise<void> {
  const { content } = (await commands.load(bankFile, file_id)).state!
  const hash = createHash('sha256')
  const written = entriesIn(archive.read(archivedFile(file_id, content!.sha256)), hash)
  for await (const chunk of entriesOf({ log, registry }, entriesId)) {
    for (const [index, cents] of chunk.amounts_cents.entries()) {
      const trace = traceAt(chunk, index)
      // offsetting entries stand between them
      let entry = (await written.next()).value
      while (entry && entry.trace < trace) entry = (await written.next()).value
      if (entry?.trace === trace && entry.cents === cents) continue
      const found = described({ entry: entry?.trace ?? null, cents: entry?.cents ?? null })
      findings.add({
        ...({ what: 'file_differs', file_id, expected: described({ entry: trace, cents }) } as const),
        found,
      })
      return
    }
  }
  // to its end
  while (!(await written.next()).done);
  const [expected, found] = [content!.sha256, hash.digest('hex')]
  if (expected === found) return
  findings.add({
    ...({ what: 'file_differs', file_id } as const),
    expected: described({ sha256: expected }),
    found: described({ sha256: found }),
  })
}

interface WrittenEntry {
  readonly trace: string
  readonly cents: number
}

/** Trace numbers and amounts of the entries of a file, a line after the other; its bytes go into a hash as they come. */
async function* entriesIn(
  bytes: AsyncIterable<Uint8Array>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<WrittenEntry, undefined> {
  let rest = ''
  for await (const chunk of bytes) {
    hash.update(chunk)
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split(/\r?\n/)
    rest = lines.pop()!
    for (const line of lines) {
      if (line.startsWith('6')) yield { trace: line.slice(79, 94), cents: Number(line.slice(29, 39)) }
    }
  }
  return undefined
}
