import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { id } from '../../kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../kernel/rejection.ts'

/** A file that a bank reports with, taken once by its content. Amounts are cents, times ISO 8601. */
const count = () => z.int().min(0)
const report = { report_id: id() }

export const BankReportReceived = eventType('BankReportReceived', {
  ...report,
  /** In the inbox. */
  name: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: count(),
  at: time(),
})
/** The same content came under another name: it changes nothing. */
export const BankReportDeliveredAgain = eventType('BankReportDeliveredAgain', {
  ...report,
  name: z.string(),
  at: time(),
})
/** Nothing of it counts: it is not whole, or not for us. */
export const BankReportRefused = eventType('BankReportRefused', { ...report, reason: z.string(), at: time() })
const parkedItem = z.object({
  /** Of its entry, or its answer, in the file. */
  line: z.int().min(1),
  kind: z.enum(['return', 'change', 'answer', 'other']),
  /** Why nothing followed from it. */
  reason: z.string(),
  /** Of a return or a change, for example `R01`. */
  code: z.string().nullable(),
  original_trace: z.string().nullable(),
  amount_cents: count().nullable(),
})
export type ParkedItem = z.output<typeof parkedItem>
/** Items from which nothing follows until a person has looked at them. */
export const BankReportItemsParked = eventType('BankReportItemsParked', {
  ...report,
  items: z.array(parkedItem),
  at: time(),
})
/** All of it was carried out, but for what is parked. */
export const BankReportRead = eventType('BankReportRead', {
  ...report,
  format: z.enum(['nacha', 'answers']),
  items: count(),
  applied: count(),
  /** Items that told what was known. */
  repeated: count(),
  parked: count(),
  at: time(),
})
/** An operator has it read again: what was parked may fit now. */
export const BankReportReadAgain = eventType('BankReportReadAgain', { ...report, at: time() })
/** An operator has seen to a parked item. */
export const BankReportItemResolved = eventType('BankReportItemResolved', {
  ...report,
  line: z.int().min(1),
  note: z.string().nullable(),
  at: time(),
})
/** An operator says which debit a parked item brings back, and with which code. */
export const BankReportItemApplied = eventType('BankReportItemApplied', {
  ...report,
  line: z.int().min(1),
  transaction_id: id(),
  return_code: z.string(),
  reason: z.string(),
  /** The item was resolved before, and not parked any more. */
  was_resolved: z.boolean(),
  at: time(),
})

/** None of its items is parked any more: each was seen to, or has its effect. */
export const BankReportCleared = eventType('BankReportCleared', { ...report, at: time() })

const events = [
  BankReportReceived,
  BankReportDeliveredAgain,
  BankReportRefused,
  BankReportItemsParked,
  BankReportRead,
  BankReportReadAgain,
  BankReportItemResolved,
  BankReportItemApplied,
  BankReportCleared,
] as const
export type BankReportEvent = EventOf<(typeof events)[number]>
type DataOf<Type extends BankReportEvent['type']> = Extract<BankReportEvent, { type: Type }>['data']

export const BANK_REPORT_STATUSES = ['received', 'refused', 'read'] as const

export interface BankReport extends DataOf<'BankReportReceived'> {
  readonly status: (typeof BANK_REPORT_STATUSES)[number]
  /** All names under which its content came. */
  readonly names: readonly string[]
  readonly refusal: string | null
  readonly counts: Pick<DataOf<'BankReportRead'>, 'format' | 'items' | 'applied' | 'repeated'> | null
  readonly parked: readonly ParkedItem[]
  /** With the item, unless the report was read again since, and one of them may have had its effect. */
  readonly resolved: readonly (Omit<DataOf<'BankReportItemResolved'>, 'report_id'> & {
    readonly item: ParkedItem | null
  })[]
  /** To debits that an operator named; the item as it was parked. */
  readonly applied: readonly (Omit<DataOf<'BankReportItemApplied'>, 'report_id'> & {
    readonly item: ParkedItem | null
  })[]
  /** Items were parked, and it was not cleared since; also while it is read again. */
  readonly calls_for_person: boolean
  readonly updated_at: string
}

/** Times are epoch milliseconds. */
export type BankReportCommand =
  | { readonly type: 'Receive'; readonly data: Omit<DataOf<'BankReportReceived'>, 'at'>; readonly at: number }
  | { readonly type: 'Refuse'; readonly reason: string; readonly at: number }
  | {
      readonly type: 'RecordRead'
      readonly format: DataOf<'BankReportRead'>['format']
      readonly items: number
      readonly repeated: number
      readonly parked: readonly ParkedItem[]
      readonly at: number
    }
  | { readonly type: 'ReadAgain'; readonly at: number }
  | { readonly type: 'Resolve'; readonly line: number; readonly note: string | null; readonly at: number }
  | {
      readonly type: 'Apply'
      readonly line: number
      readonly transaction_id: string
      /** Of the debit, in cents. */
      readonly amount_cents: number
      readonly return_code: string
      readonly reason: string
      readonly at: number
    }
  /** The debit that an operator named cannot come back: another item was faster. The item is parked again. */
  | {
      readonly type: 'ParkAgain'
      readonly line: number
      readonly transaction_id: string
      readonly return_code: string
      readonly reason: string
      readonly at: number
    }

/** Parked items in one event. */
const ITEMS_AT_ONCE = 500
/** Parked items that are told one by one, so that they fit into an append; further ones are counted. */
export const PARKED_REPORTED = 2_000

export const bankReport: Decider<BankReport | null, BankReportCommand, BankReportEvent> = {
  category: 'bankReport',
  events,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'BankReportReceived') {
      const { name, at } = event.data
      const nothing = { refusal: null, counts: null, parked: [], resolved: [], applied: [] }
      const begun = { ...event.data, status: 'received', names: [name], ...nothing } as const
      return { ...begun, calls_for_person: false, updated_at: at }
    }
    const before = { ...state!, updated_at: event.data.at }
    switch (event.type) {
      case 'BankReportDeliveredAgain':
        return { ...before, names: [...before.names, event.data.name] }
      case 'BankReportRefused':
        return { ...before, status: 'refused', refusal: event.data.reason }
      case 'BankReportItemsParked': {
        const { items } = event.data
        const applied = before.applied.filter(({ line }) => !items.some((item) => item.line === line))
        const ended = before.applied.length - applied.length
        const counts = before.counts && { ...before.counts, applied: before.counts.applied - ended }
        return { ...before, counts, applied, parked: [...before.parked, ...items], calls_for_person: true }
      }
      case 'BankReportRead': {
        const { format, items, applied, repeated, parked } = event.data
        const counts = { format, items, applied, repeated }
        // this many of the items that were resolved before still fit nothing
        const unfit = items - applied - repeated - parked
        const resolved =
          unfit === before.resolved.length
            ? before.resolved
            : before.resolved.map((one) => ({ ...one, item: null }))
        return { ...before, status: 'read', counts, resolved }
      }
      case 'BankReportReadAgain':
        return { ...before, status: 'received', refusal: null, parked: [] }
      case 'BankReportItemResolved': {
        const { report_id: _report, ...resolution } = event.data
        const parked = before.parked.filter(({ line }) => line !== resolution.line)
        const item = before.parked.find(({ line }) => line === resolution.line) ?? null
        return { ...before, parked, resolved: [...before.resolved, { ...resolution, item }] }
      }
      case 'BankReportItemApplied': {
        const { report_id: _report, ...application } = event.data
        const others = ({ line }: { readonly line: number }) => line !== application.line
        const item = itemOf(before, application.line)
        const counts = before.counts && { ...before.counts, applied: before.counts.applied + 1 }
        return {
          ...before,
          counts,
          parked: before.parked.filter(others),
          resolved: before.resolved.filter(others),
          applied: [...before.applied, { ...application, item }],
        }
      }
      case 'BankReportCleared':
        return { ...before, calls_for_person: false }
    }
  },
  decide(command, state): readonly BankReportEvent[] | Rejection {
    const decided = decide(command, state)
    if (isRejection(decided)) return decided
    const after = decided.reduce<BankReport | null>(bankReport.evolve, state)!
    // while it is read again it is unknown what fits
    if (!after.calls_for_person || after.status !== 'read') return decided
    if (after.parked.length > 0 || unreportedOf(after) > 0) return decided
    return [...decided, BankReportCleared.of({ report_id: after.report_id, at: isoTime(command.at) })]
  },
}

/** Parked items beyond those that were told: reading the report again tells of them. */
function unreportedOf({ counts, parked, resolved }: BankReport): number {
  const { items, repeated, applied } = counts!
  return items - repeated - applied - parked.length - resolved.length
}

function decide(
  command: BankReportCommand,
  state: BankReport | null,
): readonly BankReportEvent[] | Rejection {
  const at = isoTime(command.at)
  if (command.type === 'Receive') {
    const { report_id, name } = command.data
    if (!state) return [BankReportReceived.of({ ...command.data, at })]
    return state.names.includes(name) ? [] : [BankReportDeliveredAgain.of({ report_id, name, at })]
  }
  if (!state) return reject('not_found', 'bank_report_not_found', 'There is no such bank report')
  const { report_id, status } = state
  switch (command.type) {
    case 'Refuse':
      return status === 'received' ? [BankReportRefused.of({ report_id, reason: command.reason, at })] : []
    case 'RecordRead':
      return status === 'received' ? recordRead(command, state) : []
    case 'ReadAgain':
      if (status === 'received') return []
      return [BankReportReadAgain.of({ report_id, at })]
    case 'Resolve': {
      const { line, note } = command
      if (state.parked.some((item) => item.line === line)) {
        return [BankReportItemResolved.of({ report_id, line, note, at })]
      }
      if (state.resolved.some((item) => item.line === line)) return []
      return state.applied.some((item) => item.line === line) ? alreadyApplied() : noParkedItem()
    }
    case 'Apply':
      return apply(command, state)
    case 'ParkAgain': {
      const { line, transaction_id, return_code } = command
      // another code, or another debit, is another application, which has its effect
      const item = state.applied.find(
        (one) =>
          one.line === line && one.transaction_id === transaction_id && one.return_code === return_code,
      )?.item
      if (!item) return []
      return [BankReportItemsParked.of({ report_id, items: [{ ...item, reason: command.reason }], at })]
    }
  }
}

/** An item that is parked, or was resolved; null: none is under this line. */
function itemOf({ parked, resolved }: Pick<BankReport, 'parked' | 'resolved'>, line: number) {
  const open = parked.find((one) => one.line === line)
  return open ?? resolved.find((one) => one.line === line)?.item ?? null
}

function noParkedItem(): Rejection {
  return reject('not_found', 'parked_item_not_found', 'No item is parked under this line')
}

function alreadyApplied(): Rejection {
  return reject('conflict', 'item_applied', 'The item was applied to a debit')
}

/** Once, and to one debit: also an item that was resolved while there was no other way. */
function apply(
  { line, transaction_id, amount_cents, return_code, reason, at }: CommandOf<'Apply'>,
  { report_id, status, parked, resolved, applied }: BankReport,
): readonly BankReportEvent[] | Rejection {
  const before = applied.find((one) => one.line === line)
  if (before) {
    const isSame = before.transaction_id === transaction_id && before.return_code === return_code
    return isSame ? [] : alreadyApplied()
  }
  const isOpen = parked.some((one) => one.line === line)
  const item = itemOf({ parked, resolved }, line)
  // while it is read again it is unknown what fits
  if (item === null || status !== 'read') return noParkedItem()
  if (item.kind === 'change' || item.kind === 'answer') {
    return reject('conflict', 'item_no_return', 'The item brings no debit back: it is no return')
  }
  if (item.amount_cents !== amount_cents) {
    const why =
      'transaction_id names a debit of another amount than the item: have the return dishonored (R69)'
    return reject('conflict', 'item_amount_differs', why)
  }
  const data = { report_id, line, transaction_id, return_code, reason, was_resolved: !isOpen }
  return [BankReportItemApplied.of({ ...data, at: isoTime(at) })]
}

type CommandOf<Type extends BankReportCommand['type']> = Extract<BankReportCommand, { type: Type }>

function recordRead(
  { format, items, repeated, parked, at: now }: CommandOf<'RecordRead'>,
  { report_id, resolved }: BankReport,
): readonly BankReportEvent[] {
  const at = isoTime(now)
  // what a person has seen to stays so
  const open = parked.filter(({ line }) => !resolved.some((one) => one.line === line))
  const reported = open.slice(0, PARKED_REPORTED)
  const pages: ParkedItem[][] = []
  for (let from = 0; from < reported.length; from += ITEMS_AT_ONCE)
    pages.push(reported.slice(from, from + ITEMS_AT_ONCE))
  const applied = items - repeated - parked.length
  return [
    ...pages.map((page) => BankReportItemsParked.of({ report_id, items: page, at })),
    BankReportRead.of({ report_id, format, items, applied, repeated, parked: open.length, at }),
  ]
}
