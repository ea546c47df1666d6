import { field, type ReadBatch, type ReadEntry, type ReadHeader, readParts, recordsOf } from './read.ts'
import { isDebitCode } from './records.ts'

/** What a bank reports of an entry that was sent. Amounts are cents. */
export type ReportItem =
  | {
      readonly kind: 'return'
      readonly line: number
      readonly companyId: string
      readonly code: string
      /** Trace number of the entry that was sent, 15 digits. */
      readonly originalTrace: string
      readonly amountCents: number
      /** Whether what comes back was to be taken, not brought. */
      readonly isDebit: boolean
    }
  | {
      readonly kind: 'change'
      readonly line: number
      readonly companyId: string
      readonly code: string
      readonly originalTrace: string
      /** As it stands in the record: bank numbers, or a name. */
      readonly correctedData: string
    }
  /** A return or a change of which what is needed cannot be read. */
  | {
      readonly kind: 'unreadable'
      readonly line: number
      readonly of: 'return' | 'change'
      /** Null: not even that can be read. */
      readonly code: string | null
      readonly originalTrace: string | null
      readonly amountCents: number
      readonly problem: string
    }
  /** An entry of the file that reports nothing. */
  | {
      readonly kind: 'other'
      readonly line: number
      readonly companyId: string
      readonly amountCents: number
    }

/** Returns and notifications of change. */
export interface ReportFile {
  /** The sender and the recipient of each of the files that stand one behind the other. */
  readonly headers: readonly Pick<ReadHeader, 'line' | 'destination' | 'origin'>[]
  readonly items: readonly ReportItem[]
}

/**
 * Reads what a bank reports. Nothing of it counts unless its counts, hashes and totals hold; an item that cannot be read
 * holds up no other.
 * @throws NachaFault
 */
export function readReport(text: string): ReportFile {
  const items: ReportItem[] = []
  const headers: ReadHeader[] = []
  let batch: ReadBatch | null = null
  for (const part of readParts(recordsOf(text))) {
    if (part.part === 'file') headers.push(part)
    else if (part.part === 'batch') batch = part
    else if (part.part === 'entry') items.push(itemOf(part, batch!))
  }
  return { headers, items }
}

/** Others may stand beside it: the addenda of what was sent, for example. */
function itemOf(entry: ReadEntry, { companyId }: ReadBatch): ReportItem {
  const { line, amountCents, transactionCode, addenda, fault } = entry
  const [report, another] = addenda.filter(({ type }) => type === '99' || type === '98')
  if (report === undefined) return { kind: 'other', line, companyId, amountCents }
  const { text } = report
  const kind = report.type === '99' ? 'return' : 'change'
  const code = codeOf(field(text, 4, 6), kind)
  const originalTrace = traceOf(field(text, 7, 21))
  const unreadable = (problem: string): ReportItem => {
    return { kind: 'unreadable', line, of: kind, code, originalTrace, amountCents, problem }
  }
  if (fault) return unreadable(fault.message)
  if (another) return unreadable(`line ${another.line}: a second addenda record says what comes back`)
  if (code === null) return unreadable(`line ${report.line}: the code of the addenda record is none`)
  if (originalTrace === null) {
    return unreadable(`line ${report.line}: the original trace number is not 15 digits`)
  }
  const common = { line, companyId, code, originalTrace }
  if (kind === 'return') {
    return { kind, ...common, amountCents, isDebit: isDebitCode(transactionCode) }
  }
  if (amountCents !== 0) return unreadable(`line ${line}: the amount of a notification of change is zero`)
  return { kind, ...common, correctedData: field(text, 36, 64) }
}

function codeOf(written: string, kind: 'return' | 'change'): string | null {
  const code = written.toUpperCase()
  return (kind === 'return' ? /^R\d{2}$/ : /^C\d{2}$/).test(code) ? code : null
}

/** Blanks may stand for zeros, but at its end: there it may have been cut short as well. */
function traceOf(written: string): string | null {
  return /^[ \d]{14}\d$/.test(written) ? written.replaceAll(' ', '0') : null
}

/** What a notification of change puts right; what it leaves as it is, is null. */
export interface NotificationOfChange {
  readonly routingNumber: string | null
  readonly accountNumber: string | null
  readonly accountType: 'checking' | 'savings' | null
}

/**
 * Reads what is to be right from now on. Source: Nacha Operating Rules, Appendix Five, "Notification of Change": where in
 * the corrected data each code has what.
 * @returns null where the code corrects no numbers, or what stands there cannot be used.
 */
export function notificationOfChange(code: string, correctedData: string): NotificationOfChange | null {
  const data = correctedData.padEnd(29)
  const nothing = { routingNumber: null, accountNumber: null, accountType: null }
  const routing = (at: number) => digitsOrNull(data.slice(at, at + 9), /^\d{9}$/)
  const account = (at: number) => digitsOrNull(data.slice(at, at + 17).trim(), /^\d{5,17}$/)
  const type = (at: number) => accountTypeOf(data.slice(at, at + 2))
  const whole = (change: NotificationOfChange, ...needed: readonly (keyof NotificationOfChange)[]) =>
    needed.every((name) => change[name] !== null) ? change : null
  switch (code) {
    case 'C01':
      return whole({ ...nothing, accountNumber: account(0) }, 'accountNumber')
    case 'C02':
      return whole({ ...nothing, routingNumber: routing(0) }, 'routingNumber')
    case 'C03':
      return whole(
        { ...nothing, routingNumber: routing(0), accountNumber: account(12) },
        ...(['routingNumber', 'accountNumber'] as const),
      )
    case 'C05':
      return whole({ ...nothing, accountType: type(0) }, 'accountType')
    case 'C06':
      return whole(
        { ...nothing, accountNumber: account(0), accountType: type(20) },
        ...(['accountNumber', 'accountType'] as const),
      )
    case 'C07':
      return whole(
        { routingNumber: routing(0), accountNumber: account(9), accountType: type(26) },
        ...(['routingNumber', 'accountNumber', 'accountType'] as const),
      )
    default:
      return null
  }
}

function digitsOrNull(text: string, form: RegExp): string | null {
  return form.test(text) ? text : null
}

function accountTypeOf(transactionCode: string): 'checking' | 'savings' | null {
  if (/^2\d$/.test(transactionCode)) return 'checking'
  return /^3\d$/.test(transactionCode) ? 'savings' : null
}
