import { field, NachaFault, type ReadBatch, type ReadEntry, readParts, recordsOf } from './read.ts'
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
  /** An entry of the file that reports nothing. */
  | {
      readonly kind: 'other'
      readonly line: number
      readonly companyId: string
      readonly amountCents: number
    }

/** A file with returns and notifications of change. */
export interface ReportFile {
  readonly destination: string
  readonly origin: string
  readonly items: readonly ReportItem[]
}

/**
 * Reads what a bank reports. Nothing of a file counts unless all of it is whole.
 * @throws NachaFault
 */
export function readReport(text: string): ReportFile {
  const items: ReportItem[] = []
  let destination = ''
  let origin = ''
  let batch: ReadBatch | null = null
  for (const part of readParts(recordsOf(text))) {
    if (part.part === 'file') {
      destination = part.destination
      origin = part.origin
    } else if (part.part === 'batch') batch = part
    else items.push(itemOf(part, batch!))
  }
  return { destination, origin, items }
}

function itemOf(entry: ReadEntry, { companyId, entryClass }: ReadBatch): ReportItem {
  const { line, amountCents, transactionCode, addenda } = entry
  const [first] = addenda
  if (addenda.length !== 1 || (first!.type !== '99' && first!.type !== '98')) {
    return { kind: 'other', line, companyId, amountCents }
  }
  const { text } = first!
  const code = field(text, 4, 6)
  const originalTrace = field(text, 7, 21)
  const kind = first!.type === '99' ? 'return' : 'change'
  if (!(kind === 'return' ? /^R\d{2}$/ : /^C\d{2}$/).test(code)) {
    throw new NachaFault(first!.line, 'the code of the addenda record is none')
  }
  if (!/^\d{15}$/.test(originalTrace)) {
    throw new NachaFault(first!.line, 'the original trace number is not 15 digits')
  }
  const common = { line, companyId, code, originalTrace }
  if (kind === 'return') {
    return { kind, ...common, amountCents, isDebit: isDebitCode(transactionCode) }
  }
  if (entryClass !== 'COR' || amountCents !== 0) {
    throw new NachaFault(line, 'a notification of change stands in a batch COR, and its amount is zero')
  }
  return { kind, ...common, correctedData: field(text, 36, 64) }
}

/** What a notification of change puts right; what it leaves as it is, is null. */
export interface Correction {
  readonly routingNumber: string | null
  readonly accountNumber: string | null
  readonly accountType: 'checking' | 'savings' | null
}

/**
 * Reads what is to be right from now on. Source: Nacha Operating Rules, Appendix Five, "Notification of Change": where in
 * the corrected data each code has what.
 * @returns null where the code corrects no numbers, or what stands there cannot be used.
 */
export function correctionOf(code: string, correctedData: string): Correction | null {
  const data = correctedData.padEnd(29)
  const nothing = { routingNumber: null, accountNumber: null, accountType: null }
  const routing = (at: number) => digitsOrNull(data.slice(at, at + 9), /^\d{9}$/)
  const account = (at: number) => digitsOrNull(data.slice(at, at + 17).trim(), /^\d{5,17}$/)
  const type = (at: number) => accountTypeOf(data.slice(at, at + 2))
  const whole = (correction: Correction, ...needed: readonly (keyof Correction)[]) =>
    needed.every((name) => correction[name] !== null) ? correction : null
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
