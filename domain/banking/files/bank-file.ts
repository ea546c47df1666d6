import type { CalendarDate } from '../../kernel/calendar.ts'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import type { EventOf } from '../../kernel/event-type.ts'
import { newYorkDate } from '../../kernel/new-york.ts'
import { isRejection, type Rejection, reject } from '../../kernel/rejection.ts'
import { nextBankingDay } from '../debits/banking-days.ts'
import {
  BankFileAnswered,
  BankFileBegun,
  BankFileCaughtUp,
  type BankFileData,
  BankFileEntriesRecorded,
  type BankFileEvent,
  BankFileExposed,
  BankFileExposureRepeated,
  BankFileFetched,
  BankFileNumbersTaken,
  BankFileOverdue,
  BankFileRecorded,
  BankFileRestaged,
  BankFileTreatedAsSent,
  BankFileUncertain,
  bankFileEvents,
} from './bank-file-events.ts'
import { MAX_SEQUENCE } from './nacha/records.ts'

/**
 * A file for a bank, one part of a batch. What is in it is recorded before it can be seen outside, so that it is never
 * written twice; one that cannot be found where it should be is `uncertain` until an operator decides.
 */
export const BANK_FILE_STATUSES = [
  'begun',
  'recorded',
  'exposed',
  'fetched',
  'uncertain',
  'repeating',
  'sent',
] as const
export type BankFileStatus = (typeof BANK_FILE_STATUSES)[number]
export const BANK_FILE_ANSWERS = ['none', 'accepted', 'rejected', 'partly'] as const

export interface BankFileBatch extends Readonly<BankFileData<'BankFileRecorded'>['batches'][number]> {
  readonly outcome: 'accepted' | 'rejected' | null
  readonly reason: string | null
}

export interface BankFile extends BankFileData<'BankFileBegun'> {
  readonly status: BankFileStatus
  /** Null until it is recorded. */
  readonly content: Omit<BankFileData<'BankFileRecorded'>, 'file_id' | 'batches' | 'at'> | null
  readonly batches: readonly BankFileBatch[]
  readonly note: string | null
  /** The file was to be fetched and answered by now. */
  readonly is_overdue: boolean
  readonly updated_at: string
}

/** Times are epoch milliseconds. */
export type BankFileCommand =
  | { readonly type: 'Begin'; readonly data: BankFileData<'BankFileBegun'> }
  | { readonly type: 'Record'; readonly data: BankFileData<'BankFileRecorded'> }
  | { readonly type: 'RecordExposed'; readonly at: number }
  | { readonly type: 'RecordFetched'; readonly at: number }
  | { readonly type: 'RecordAbsent'; readonly at: number }
  | { readonly type: 'ExposeAgain'; readonly note: string | null; readonly at: number }
  | { readonly type: 'RecordRestaged'; readonly at: number }
  | { readonly type: 'TreatAsSent'; readonly note: string | null; readonly at: number }
  | { readonly type: 'RecordOverdue'; readonly at: number }
  | {
      readonly type: 'Answer'
      /** Null: the whole file. */
      readonly batchNumber: number | null
      readonly outcome: 'accepted' | 'rejected'
      readonly reason: string | null
      readonly reportId: string | null
      readonly at: number
    }

/** Statuses in which a file may be found fetched; while it is exposed again, too, where its folder was away. */
const FETCHABLE: ReadonlySet<BankFileStatus> = new Set(['exposed', 'uncertain', 'repeating'])
/** Statuses in which a file may be found nowhere, or come too late to be exposed. */
const MISSABLE: ReadonlySet<BankFileStatus> = new Set(['recorded', 'exposed', 'repeating'])
/** What an answer tells more of: the bank has it. */
export const HAD_BY_WHO_ANSWERS: ReadonlySet<BankFileStatus> = new Set(['exposed', 'uncertain'])
/** What can come back: the bank has it, or may have it. */
const RETURNABLE: ReadonlySet<BankFileStatus> = new Set(['fetched', 'uncertain', 'sent'])
/** The bank may have it. */
const OUTSIDE: ReadonlySet<BankFileStatus> = new Set(['exposed', 'fetched', 'uncertain', 'sent'])

export const bankFile: Decider<BankFile | null, BankFileCommand, BankFileEvent> = {
  category: 'bankFile',
  events: bankFileEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'BankFileBegun') {
      const nothing = { content: null, batches: [], note: null, is_overdue: false }
      return { ...event.data, status: 'begun', ...nothing, updated_at: event.data.at }
    }
    const before = { ...state!, updated_at: event.data.at }
    switch (event.type) {
      case 'BankFileRecorded': {
        const { file_id: _file, batches, at: _at, ...content } = event.data
        const unanswered = batches.map((batch) => ({ ...batch, outcome: null, reason: null }))
        return { ...before, status: 'recorded', content, batches: unanswered }
      }
      case 'BankFileExposed':
        return { ...before, status: 'exposed' }
      case 'BankFileFetched':
        return { ...before, status: 'fetched' }
      case 'BankFileUncertain':
        return { ...before, status: 'uncertain' }
      case 'BankFileExposureRepeated':
        return { ...before, status: 'repeating', note: event.data.note }
      case 'BankFileRestaged':
        return { ...before, status: 'recorded' }
      case 'BankFileTreatedAsSent':
        return { ...before, status: 'sent', note: event.data.note }
      case 'BankFileAnswered': {
        const { batch_numbers, outcome, reason } = event.data
        const batches = before.batches.map((batch) =>
          batch_numbers.includes(batch.batch_number) ? { ...batch, outcome, reason } : batch,
        )
        // an answer proves that the bank has it, however it was fetched
        const status = HAD_BY_WHO_ANSWERS.has(before.status) ? 'sent' : before.status
        return { ...before, batches, status }
      }
      case 'BankFileOverdue':
        return { ...before, is_overdue: true }
      case 'BankFileCaughtUp':
        return { ...before, is_overdue: false }
    }
  },
  decide(command, state): readonly BankFileEvent[] | Rejection {
    const decided = decide(command, state)
    if (isRejection(decided) || !state?.is_overdue) return decided
    const after = decided.reduce<BankFile | null>(bankFile.evolve, state)!
    if (isAwaited(after)) return decided
    return [...decided, BankFileCaughtUp.of({ file_id: state.file_id, at: after.updated_at })]
  },
}

function decide(command: BankFileCommand, state: BankFile | null): readonly BankFileEvent[] | Rejection {
  if (command.type === 'Begin') {
    if (state && state.status !== 'begun') return doesNotFit(state, 'begun')
    return [BankFileBegun.of(command.data)]
  }
  if (!state) return reject('not_found', 'bank_file_not_found', 'There is no such bank file')
  if (command.type === 'Record') {
    if (state.status === 'begun') return [BankFileRecorded.of(command.data)]
    return state.content?.sha256 === command.data.sha256 ? [] : doesNotFit(state, 'recorded')
  }
  const { file_id, status } = state
  const data = { file_id, at: isoTime(command.at) }
  switch (command.type) {
    case 'RecordExposed':
      // a look meanwhile found it on its way
      if (status === 'recorded' || status === 'uncertain') return [BankFileExposed.of(data)]
      return status === 'begun' || status === 'repeating' ? doesNotFit(state, 'exposed') : []
    case 'RecordFetched':
      return FETCHABLE.has(status) ? [BankFileFetched.of(data)] : []
    case 'RecordAbsent':
      return MISSABLE.has(status) ? [BankFileUncertain.of(data)] : []
    case 'ExposeAgain':
      if (status !== 'uncertain') return doesNotFit(state, 'exposed again')
      if (isTooLate(state, command.at)) return tooLate(state)
      return [BankFileExposureRepeated.of({ ...data, note: command.note })]
    case 'RecordRestaged':
      return status === 'repeating' ? [BankFileRestaged.of(data)] : []
    case 'TreatAsSent':
      if (status === 'sent') return []
      if (status !== 'uncertain') return doesNotFit(state, 'treated as sent')
      return [BankFileTreatedAsSent.of({ ...data, note: command.note })]
    case 'RecordOverdue':
      return !state.is_overdue && isAwaited(state) ? [BankFileOverdue.of(data)] : []
    case 'Answer':
      return answer(command, state)
  }
}

/** The first day on which entries of a file take effect. */
export function firstDayOf({
  batches,
}: {
  readonly batches: readonly Pick<BankFileBatch, 'entry_date'>[]
}): CalendarDate {
  return batches.map(({ entry_date }) => entry_date).sort()[0]!
}

/**
 * Whether entries of a file would take effect before the first day on which those of a new one could: banks refuse such a
 * date, or settle at once what has it, on a day that nobody here knows. @param now epoch milliseconds.
 */
export function isTooLate(file: Pick<BankFile, 'batches'>, now: number): boolean {
  return firstDayOf(file) < nextBankingDay(newYorkDate(now))
}

/** Refuses that an entry of a file came back which nobody has fetched: it would go out all the same. */
export function refuseUnfetched({ status }: BankFile): Rejection | null {
  if (RETURNABLE.has(status)) return null
  const why =
    `transaction_id names a debit whose file is ${status}: the bank cannot have sent it back. If the file was fetched, look ` +
    'into the folders and repeat this'
  return reject('conflict', `bank_file_${status}`, why)
}

function tooLate(file: BankFile): Rejection {
  const why =
    `Entries of the file were to take effect on ${firstDayOf(file)}: it is too late to send it. If the bank does not have ` +
    'it, reject it, so that its debits fail, and have them created anew; if it has it, treat it as sent'
  return reject('conflict', 'bank_file_too_late', why)
}

/** Whether it has yet to be fetched, or the bank to answer to some of it: until then its debits wait. */
function isAwaited({ status, batches }: BankFile): boolean {
  return (status !== 'fetched' && status !== 'sent') || batches.some(({ outcome }) => outcome === null)
}

/** How the bank answered to a file as a whole. */
export function answerOf({ batches }: Pick<BankFile, 'batches'>): (typeof BANK_FILE_ANSWERS)[number] {
  const outcomes = new Set(batches.map(({ outcome }) => outcome))
  if (outcomes.size === 0 || (outcomes.size === 1 && outcomes.has(null))) return 'none'
  return outcomes.size === 1 ? [...outcomes][0]! : 'partly'
}

function answer(
  { batchNumber, outcome, reason, reportId: report_id, at }: Extract<BankFileCommand, { type: 'Answer' }>,
  state: BankFile,
): readonly BankFileEvent[] | Rejection {
  if (!OUTSIDE.has(state.status)) return doesNotFit(state, 'answered')
  if (outcome === 'rejected' && state.status === 'exposed') {
    // its debits would fail, and the file be fetched all the same
    const why =
      'The file stands in the outbox and was not fetched: the bank cannot have rejected it. If it was fetched, look into ' +
      'the folders and repeat this; if it is not to go, take it away from the outbox first'
    return reject('conflict', 'bank_file_exposed', why)
  }
  const named = state.batches.filter(
    ({ batch_number }) => batchNumber === null || batch_number === batchNumber,
  )
  if (named.length === 0) {
    return reject('not_found', 'batch_not_found', `The file has no batch ${batchNumber}`)
  }
  const other = named.find((batch) => batch.outcome !== null && batch.outcome !== outcome)
  if (other) {
    const why = `Batch ${other.batch_number} of the file was ${other.outcome} before`
    return reject('conflict', 'batch_answered', why)
  }
  const batch_numbers = named
    .filter((batch) => batch.outcome === null)
    .map(({ batch_number }) => batch_number)
  if (batch_numbers.length === 0) return []
  const { file_id } = state
  return [BankFileAnswered.of({ file_id, batch_numbers, outcome, reason, report_id, at: isoTime(at) })]
}

function doesNotFit({ status }: BankFile, verb: string): Rejection {
  return reject('conflict', `bank_file_${status}`, `The file is ${status}: it cannot be ${verb}`)
}

/** What entries of files are for: only counted here, they are read from the log page by page. */
export interface BankFileEntries {
  readonly chunks: number
}
export interface RecordEntriesCommand {
  readonly type: 'RecordEntries'
  readonly chunks: readonly EventOf<typeof BankFileEntriesRecorded>['data'][]
}

export const bankFileEntries: Decider<
  BankFileEntries,
  RecordEntriesCommand,
  EventOf<typeof BankFileEntriesRecorded>
> = {
  category: 'bankFileEntries',
  events: [BankFileEntriesRecorded],
  initialState: { chunks: 0 },
  sizeOf: () => 64,
  evolve: ({ chunks }) => ({ chunks: chunks + 1 }),
  decide: ({ chunks }) => chunks.map((chunk) => BankFileEntriesRecorded.of(chunk)),
}

/** The letters and digits that tell files of a day apart, in their order. */
const MODIFIERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/** Clocks of processes differ: a day is counted for longer than they can. */
const COUNTED_DAYS = 8

/** The numbers that an originator has used at a bank. */
export interface BankFileNumbers {
  readonly next_sequence: number
  /** The latest days of files, at most {@link COUNTED_DAYS}, with how many modifiers each has used. */
  readonly used: Readonly<Record<CalendarDate, number>>
}
export interface TakeNumbersCommand {
  readonly type: 'TakeNumbers'
  readonly fileId: string
  readonly fileDate: CalendarDate
  readonly count: number
  readonly at: number
}

export const bankFileNumbers: Decider<
  BankFileNumbers,
  TakeNumbersCommand,
  EventOf<typeof BankFileNumbersTaken>
> = {
  category: 'bankFileNumbers',
  events: [BankFileNumbersTaken],
  initialState: { next_sequence: 1, used: {} },
  sizeOf: () => 512,
  evolve({ used: before }, { data: { file_date, first_sequence, count } }) {
    const days = Object.entries({ ...before, [file_date]: (before[file_date] ?? 0) + 1 }).sort()
    return { next_sequence: first_sequence + count, used: Object.fromEntries(days.slice(-COUNTED_DAYS)) }
  },
  decide({ fileId: file_id, fileDate: file_date, count, at }, state) {
    const modifier = MODIFIERS[state.used[file_date] ?? 0]
    if (modifier === undefined) {
      const why = `There are ${MODIFIERS.length} files of this day already: no other can be told apart from them`
      return reject('too_many', 'no_file_modifier', why)
    }
    // traces ascend within a file; those of one long ago may come again, with another file and amount
    const first_sequence = state.next_sequence + count - 1 > MAX_SEQUENCE ? 1 : state.next_sequence
    const data = { file_id, file_date, modifier, first_sequence, count, at: isoTime(at) }
    return [BankFileNumbersTaken.of(data)]
  },
}
