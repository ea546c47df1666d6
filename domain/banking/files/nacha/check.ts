import { isCalendarDate } from '../../../kernel/calendar.ts'
import { isRoutingNumber } from '../../accounts/routing-number.ts'
import { isBankingDay } from '../../debits/banking-days.ts'
import {
  NachaFault,
  type ReadBatch,
  type ReadControl,
  type ReadEntry,
  type ReadHeader,
  readParts,
} from './read.ts'
import { isDebitCode, SERVICE_CLASSES } from './records.ts'

const FORWARD_CODES: ReadonlySet<number> = new Set([22, 27, 32, 37])

/**
 * Holds a file that is to be sent against what a bank refuses: what {@link readParts} finds, and beyond it trace numbers,
 * service classes, transaction codes, dates, names, routing numbers, addenda that should not be there, and the filling.
 * @param records with their line breaks gone.
 * @throws NachaFault
 */
export function checkForward(records: Iterable<string>): void {
  let count = 0
  const counted = function* () {
    for (const record of records) {
      count += 1
      yield record
    }
  }
  let header: ReadHeader | null = null
  let batch: ReadBatch | null = null
  let sides = { debits: false, credits: false }
  let trace = ''
  let batches = 0
  for (const part of readParts(counted())) {
    switch (part.part) {
      case 'file':
        if (header) throw new NachaFault(part.line, 'records follow the file control: are these two files?')
        header = part
        if (!/^[A-Z0-9]$/.test(header.modifier)) throw new NachaFault(1, 'the file-ID modifier is none')
        break
      case 'batch':
        batches += 1
        checkBatch(part, header!, batches)
        batch = part
        sides = { debits: false, credits: false }
        break
      case 'entry':
        checkEntry(part, batch!, trace)
        trace = part.trace
        sides = {
          debits: sides.debits || isDebitCode(part.transactionCode),
          credits: sides.credits || !isDebitCode(part.transactionCode),
        }
        break
      case 'control':
        checkControl(part, batch!)
        checkServiceClass(batch!, sides)
    }
  }
  if (count % 10 !== 0) throw new NachaFault(count, 'the file does not end with a whole block')
}

function checkBatch(
  { line, number, entryClass, entryDate }: ReadBatch,
  header: ReadHeader,
  at: number,
): void {
  if (number !== String(at).padStart(7, '0'))
    throw new NachaFault(line, 'the batches are not numbered one after the other')
  if (entryClass !== 'CCD') throw new NachaFault(line, 'the entry class is not CCD')
  const date = calendarDate(entryDate)
  if (date === null || !isBankingDay(date)) throw new NachaFault(line, 'the entry date is no banking day')
  const created = calendarDate(header.date)
  // no entry takes effect on the day on which its file is written
  if (created === null || date <= created) {
    throw new NachaFault(line, 'the entry date is not after the day of the file')
  }
}

/** What the end of a batch repeats of its header. */
const REPEATED = {
  serviceClass: 'service class',
  companyId: 'company',
  odfi: 'originating bank',
  number: 'batch number',
} as const

function checkControl(control: ReadControl, batch: ReadBatch): void {
  for (const [name, what] of Object.entries(REPEATED) as [keyof typeof REPEATED, string][]) {
    if (control[name] === batch[name]) continue
    throw new NachaFault(control.line, `${what}: the control record says another one than the header`)
  }
}

function checkEntry(entry: ReadEntry, { odfi }: ReadBatch, before: string): void {
  if (entry.fault) throw entry.fault
  const { line, transactionCode, routing, account, amountCents, name, trace, addendaIndicator, addenda } =
    entry
  if (!FORWARD_CODES.has(transactionCode)) throw new NachaFault(line, 'the transaction code is none of ours')
  if (!isRoutingNumber(routing)) throw new NachaFault(line, 'the check digit of the routing number is wrong')
  if (account === '') throw new NachaFault(line, 'the account number is missing')
  if (amountCents === 0) throw new NachaFault(line, 'the amount is zero')
  if (name === '') throw new NachaFault(line, 'the name of the receiver is missing')
  if (!/^\d{15}$/.test(trace)) throw new NachaFault(line, 'the trace number is not 15 digits')
  if (!trace.startsWith(odfi)) throw new NachaFault(line, 'the trace number is not of the originating bank')
  if (trace <= before) throw new NachaFault(line, 'the trace numbers do not ascend')
  if (addendaIndicator !== (addenda.length > 0 ? '1' : '0')) {
    throw new NachaFault(line, 'whether addenda follow is not what the entry says')
  }
  if (addenda.length > 0) throw new NachaFault(line, 'an entry that is sent has no addenda')
}

function checkServiceClass(
  { line, serviceClass }: ReadBatch,
  { debits, credits }: { readonly debits: boolean; readonly credits: boolean },
): void {
  const { mixed, debits: onlyDebits, credits: onlyCredits } = SERVICE_CLASSES
  const right = debits && credits ? mixed : debits ? onlyDebits : onlyCredits
  if (!(debits || credits)) throw new NachaFault(line, 'the batch has no entry')
  if (serviceClass !== String(right)) throw new NachaFault(line, `the service class should be ${right}`)
}

/** Of `YYMMDD`, in this century; null where there is no such day. */
function calendarDate(written: string): string | null {
  const date = `20${written.slice(0, 2)}-${written.slice(2, 4)}-${written.slice(4, 6)}`
  return isCalendarDate(date) ? date : null
}
