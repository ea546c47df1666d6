import { type BankReport, bankReport, type ParkedItem } from '../../../domain/banking/files/bank-report.ts'
import { areAnswers, type FileAnswer, readAnswers } from '../../../domain/banking/files/nacha/answers.ts'
import { NachaFault } from '../../../domain/banking/files/nacha/read.ts'
import { readReport as parseReport, type ReportItem } from '../../../domain/banking/files/nacha/report.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { existing } from '../../commands/verbs.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { applyAnswer } from './apply-answer.ts'
import { applyItem, type ItemParts, itemCommandId } from './apply-item.ts'
import type { FileApp } from './file-app.ts'
import { archivedReport } from './file-references.ts'
import type { ItemOutcome } from './item-outcome.ts'
import { type Parties, partiesOfFiles, sentEntries } from './sent-entries.ts'

/** Items between two looks at whether the time is up. */
const AT_ONCE = 32

/**
 * Carries out what a bank reported. A repetition after a crash is safe: each item counts once. A file that is not whole, or
 * not for us, counts for nothing; an item that cannot be read is parked.
 * @throws ReadModelsLate when it cannot be told what was sent.
 */
export async function readReport(
  app: Application & Pick<FileApp, 'bankFiles'>,
  reportId: string,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  const report = await existing(app, bankReport, reportId)
  if (report.status !== 'received') return
  const bytes = await contentOf(app, report)
  if (bytes === null)
    return recorded(app, report, refusedFor('the file is too large to be a report'), context)
  let parsed: Parsed
  await untilCurrent(app, 'bank-files')
  try {
    parsed = parse(bytes)
    checkParties(parsed, await partiesOfFiles(app))
  } catch (error) {
    if (!(error instanceof NachaFault)) throw error
    return recorded(app, report, refusedFor(error.message), context)
  }
  const byHand = new Set(report.applied.map(({ line }) => line))
  const parts: ItemParts = { app, find: sentEntries(app) }
  const outcomes: (readonly [shown: Omit<ParkedItem, 'reason'>, outcome: ItemOutcome])[] = []
  const apply = async (item: Item): Promise<ItemOutcome> => {
    // an operator has said which debit it brings back
    if (byHand.has(item.line)) return { outcome: 'applied' }
    const commandId = itemCommandId(reportId, item.line)
    const once: CommandContext = { ...context, mayRepeat: true, commandId }
    return 'outcome' in item
      ? applyAnswer(app, item, { reportId, bank: parsed.headers[0]!.origin }, once)
      : applyItem(parts, item, once)
  }
  for (const some of inOrder(parsed.items)) {
    signal.throwIfAborted()
    const made = await Promise.all(some.map(apply))
    outcomes.push(...made.map((outcome, index) => [shownItem(some[index]!), outcome] as const))
  }
  const left = outcomes
    .flatMap(([shown, outcome]) =>
      outcome.outcome === 'parked' ? [{ ...shown, reason: outcome.reason }] : [],
    )
    .sort((one, other) => one.line - other.line)
  const repeated = outcomes.filter(([, { outcome }]) => outcome === 'repeated').length
  const { format, items } = parsed
  await recorded(
    app,
    report,
    { type: 'RecordRead', format, items: items.length, repeated, parked: left },
    context,
  )
}

type Item = ReportItem | FileAnswer

/**
 * The items of a report in the order in which they count, some at once. Changes come first, one after the other: each puts
 * right what the one before left of an account. A return of the numbers that it had says nothing of those that it has then,
 * wherever in the file it stands. Answers come one after the other, too: of two about one batch the first counts.
 */
function* inOrder(items: readonly Item[]): Generator<readonly Item[]> {
  const isChange = (item: Item) => 'kind' in item && item.kind === 'change'
  for (const item of items) if (isChange(item)) yield [item]
  const others = items.filter((item) => !isChange(item))
  const atOnce = others.some((item) => 'outcome' in item) ? 1 : AT_ONCE
  for (let from = 0; from < others.length; from += atOnce) yield others.slice(from, from + atOnce)
}

type Outcome =
  | { readonly type: 'Refuse'; readonly reason: string }
  | {
      readonly type: 'RecordRead'
      readonly format: Parsed['format']
      readonly items: number
      readonly repeated: number
      readonly parked: readonly ParkedItem[]
    }

const refusedFor = (reason: string): Outcome => ({ type: 'Refuse', reason })

async function recorded(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  { report_id }: BankReport,
  outcome: Outcome,
  context: CommandContext,
): Promise<void> {
  orThrow(await commands.execute(bankReport, report_id, { ...outcome, at: clock.now() }, context))
}

interface Parsed {
  readonly format: 'nacha' | 'answers'
  /** The sending bank and the originator, by line; answers have one bank and no originator. */
  readonly headers: readonly {
    readonly line: number
    readonly origin: string
    readonly destination: string | null
  }[]
  readonly items: readonly Item[]
}

/** @throws NachaFault for what is not whole. */
function parse(bytes: Uint8Array): Parsed {
  const encoding = encodingByMark(bytes)
  const text = new TextDecoder(encoding ?? 'utf-8').decode(bytes)
  if (areAnswers(text)) {
    const { bank, answers } = readAnswers(text)
    return { format: 'answers', headers: [{ line: 1, origin: bank, destination: null }], items: answers }
  }
  // without a mark one character for each byte, whatever it is: columns count
  const records = encoding === null ? Buffer.from(bytes).toString('latin1') : text
  return { format: 'nacha', ...parseReport(records) }
}

/**
 * Refuses what another bank sent, or what is for somebody else: whatever is set today, files may have been written for
 * another bank, and as somebody else.
 * @throws NachaFault
 */
function checkParties({ headers }: Parsed, parties: readonly Parties[]): void {
  const isOurs = (one: string) =>
    parties.some(
      ({ odfi, destinationRouting, originId }) =>
        one === originId || one === destinationRouting || one.startsWith(odfi),
    )
  for (const { line, origin, destination } of headers) {
    if (destination === null) {
      if (parties.some(({ destinationRouting }) => origin === destinationRouting)) return
      throw new NachaFault(line, 'the answers are of another bank')
    }
    const from = nineDigits(origin)
    if (!isOurs(destination) && !isOurs(nineDigits(destination))) {
      throw new NachaFault(line, 'the file is for somebody else')
    }
    if (/^\d{9}$/.test(from) && !isOurs(from)) throw new NachaFault(line, 'the file is of another bank')
  }
}

/** A routing number that was filled up to ten digits. */
function nineDigits(party: string): string {
  return party.replace(/^0(?=\d{9}$)/, '')
}

/** Byte order marks that files may begin with, and what each says of the text behind it. */
const MARKS = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
] as const

/** Null of a file that begins with none. Decoding takes the mark away. */
function encodingByMark(bytes: Uint8Array): (typeof MARKS)[number][0] | null {
  const found = MARKS.find(([, mark]) => mark.every((byte, index) => bytes[index] === byte))
  return found?.[0] ?? null
}

/** Null of a file that was too large to be kept. */
async function contentOf(
  { bankFiles }: Pick<FileApp, 'bankFiles'>,
  { report_id, bytes }: BankReport,
): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bankFiles.archive.read(archivedReport(report_id))) chunks.push(chunk)
  const content = Buffer.concat(chunks)
  return content.length === bytes ? content : null
}

/** What may be shown of an item: no bank numbers. */
function shownItem(item: Item): Omit<ParkedItem, 'reason'> {
  const { line } = item
  if ('outcome' in item) {
    return { line, kind: 'answer', code: item.outcome, original_trace: null, amount_cents: null }
  }
  if (item.kind === 'unreadable') {
    const { of: kind, code, originalTrace: original_trace, amountCents: amount_cents } = item
    return { line, kind, code, original_trace, amount_cents }
  }
  const { kind } = item
  if (kind === 'other') {
    return { line, kind, code: null, original_trace: null, amount_cents: item.amountCents }
  }
  const amount_cents = kind === 'return' ? item.amountCents : null
  return { line, kind, code: item.code, original_trace: item.originalTrace, amount_cents }
}
