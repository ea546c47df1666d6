import { z } from 'zod'
import { type CalendarDate, isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { date, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'

/**
 * A record of what the legacy service collected, or has on its way. Records are taken over in its words, one by one or by
 * an import, and stand in the ledger beside the debits of this service. Amounts are cents, times ISO 8601.
 */
export const LEGACY_STATUSES = [
  'pending',
  'at_sb',
  'file_transmitted',
  'sb_remit',
  'legacy_collected',
  'returned',
  'failed',
  'canceled',
] as const
export type LegacyStatus = (typeof LEGACY_STATUSES)[number]

/** Statuses whose money the legacy service has, or will have: what it collects so is not collected again. */
export const COLLECTING_STATUSES = [
  'pending',
  'at_sb',
  'file_transmitted',
  'sb_remit',
  'legacy_collected',
] as const satisfies readonly LegacyStatus[]

/** What statuses say of the money; two of them, until the bank acknowledges, are looked for under either word. */
export const LEGACY_GROUPS = {
  in_flight: ['pending', 'at_sb', 'file_transmitted'],
  money_landed: ['sb_remit', 'at_sb', 'file_transmitted', 'legacy_collected'],
  failed: ['returned', 'failed', 'canceled'],
} as const satisfies Readonly<Record<string, readonly LegacyStatus[]>>
export type LegacyGroup = keyof typeof LEGACY_GROUPS

/** The group that one record is shown in: money that no bank has acknowledged is on its way. */
export function legacyGroupOf(status: LegacyStatus): LegacyGroup {
  if ((LEGACY_GROUPS.in_flight as readonly string[]).includes(status)) return 'in_flight'
  return (LEGACY_GROUPS.failed as readonly string[]).includes(status) ? 'failed' : 'money_landed'
}

/** What a record says, as the legacy service has it. */
export const legacyCollectionFields = {
  employer_id: id(),
  /** Null where the record names none. */
  carrier_id: id().nullable(),
  policy_id: id().nullable(),
  /** First and last day that the premium is for. */
  period_start: date(),
  period_end: date(),
  premium_cents: z.int().min(1),
  status: z.enum(LEGACY_STATUSES),
}

/** A record stands in a stream of its own: because it came alone, or because something happened to it. */
export const LegacyCollectionRecorded = eventType('LegacyCollectionRecorded', {
  transaction_id: id(),
  tenant_id: id(),
  environment: environment(),
  ...legacyCollectionFields,
  /** The import that stored it before, and its line there; null: it came alone. */
  import: z.object({ import_id: id(), line: z.int().min(1) }).nullable(),
  recorded_at: time(),
})
/** The bank acknowledged what the legacy service sent it. */
export const LegacyCollectionAcknowledged = eventType('LegacyCollectionAcknowledged', {
  transaction_id: id(),
  at: time(),
})
/** The money went back, or never came. */
export const LegacyCollectionReturned = eventType('LegacyCollectionReturned', {
  transaction_id: id(),
  return_code: z.string(),
  at: time(),
})
/** An operator says how it stands: what was taken over, or reported since, was wrong. */
export const LegacyCollectionCorrected = eventType('LegacyCollectionCorrected', {
  transaction_id: id(),
  status: z.enum(LEGACY_STATUSES),
  /** For its history, which partners read. */
  reason: z.string(),
  at: time(),
})

const events = [
  LegacyCollectionRecorded,
  LegacyCollectionAcknowledged,
  LegacyCollectionReturned,
  LegacyCollectionCorrected,
] as const
export type LegacyCollectionEvent = EventOf<(typeof events)[number]>
export type RecordedLegacyCollection = EventOf<typeof LegacyCollectionRecorded>['data']

/** A change of status. */
export interface LegacyChange {
  readonly at: string
  readonly from: LegacyStatus
  readonly to: LegacyStatus
  /** For the history. */
  readonly note: string
}
export interface LegacyCollection extends RecordedLegacyCollection {
  readonly return_code: string | null
  /** Since it was recorded, in order. */
  readonly changes: readonly LegacyChange[]
}

/** Times are epoch milliseconds. */
export type LegacyCollectionCommand =
  | { readonly type: 'Record'; readonly data: RecordedLegacyCollection }
  | { readonly type: 'Acknowledge'; readonly at: number }
  | { readonly type: 'Return'; readonly return_code: string; readonly at: number }
  | {
      readonly type: 'Correct'
      readonly status: LegacyStatus
      readonly reason: string
      readonly at: number
    }

/** What the bank may still acknowledge, and what it may return. */
const AT_BANK: readonly LegacyStatus[] = ['at_sb', 'file_transmitted']
const RETURNABLE: readonly LegacyStatus[] = [...AT_BANK, 'sb_remit', 'legacy_collected']

export const legacyCollection: Decider<
  LegacyCollection | null,
  LegacyCollectionCommand,
  LegacyCollectionEvent
> = {
  category: 'legacyCollection',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'LegacyCollectionRecorded':
        return asRecorded(event.data)
      case 'LegacyCollectionAcknowledged':
        return changedTo(state!, { to: 'sb_remit', at: event.data.at, note: 'Acknowledged by the bank' })
      case 'LegacyCollectionReturned': {
        const { return_code, at } = event.data
        const note = `Returned by the bank (${return_code})`
        return { ...changedTo(state!, { to: 'returned', at, note }), return_code }
      }
      case 'LegacyCollectionCorrected': {
        const { status: to, reason, at } = event.data
        return changedTo(state!, { to, at, note: `Corrected by an operator: ${reason}` })
      }
    }
  },
  decide(command, state): readonly LegacyCollectionEvent[] | Rejection {
    if (command.type === 'Record') {
      // what an import stored is recorded with each change, until it is
      if (state && command.data.import !== null) return []
      if (state) return reject('conflict', 'legacy_collection_exists', 'The legacy collection exists already')
      return [LegacyCollectionRecorded.of(command.data)]
    }
    if (!state) return reject('not_found', 'legacy_collection_not_found', 'There is no such transaction')
    const { transaction_id, status } = state
    const at = isoTime(command.at)
    switch (command.type) {
      case 'Acknowledge':
        if (status === 'sb_remit') return []
        if (!AT_BANK.includes(status)) return doesNotFit(state, 'acknowledged')
        return [LegacyCollectionAcknowledged.of({ transaction_id, at })]
      case 'Return': {
        const { return_code } = command
        if (status === 'returned' && state.return_code === return_code) return []
        if (!RETURNABLE.includes(status)) return doesNotFit(state, 'returned')
        return [LegacyCollectionReturned.of({ transaction_id, return_code, at })]
      }
      case 'Correct':
        if (status === command.status) return []
        return [
          LegacyCollectionCorrected.of({
            transaction_id,
            status: command.status,
            reason: command.reason,
            at,
          }),
        ]
    }
  },
}

/** A record to which nothing has happened yet. */
export function asRecorded(data: RecordedLegacyCollection): LegacyCollection {
  return { ...data, return_code: null, changes: [] }
}

/** The moment that a record is dated: the beginning of the last day of its period. */
export function datedAt(periodEnd: CalendarDate): string {
  return `${periodEnd}T00:00:00.000Z`
}

function changedTo(state: LegacyCollection, change: Omit<LegacyChange, 'from'>): LegacyCollection {
  const changes = [...state.changes, { ...change, from: state.status }]
  return { ...state, status: change.to, return_code: null, changes }
}

function doesNotFit({ status }: LegacyCollection, verb: string): Rejection {
  return reject(
    'conflict',
    `legacy_collection_${status}`,
    `The legacy service has the debit as ${status}: it cannot be ${verb}`,
  )
}
