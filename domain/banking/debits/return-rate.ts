import { z } from 'zod'
import { type CalendarDate, daysAfter } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { newYorkDate } from '../../kernel/new-york.ts'
import { RETURN_CODES } from './return-codes.ts'

/**
 * How many of an originator's debits come back, against what it may be. Source: Nacha Operating Rules, Subsection 2.17.2
 * "Entry Return Rates": unauthorized returns 0.5 %, administrative ones 3 %, all of them 15 % of the entries of 60 days.
 */
export const RATE_DAYS = 60
export const RETURN_RATES = {
  unauthorized: { limit_per_mille: 5 },
  administrative: { limit_per_mille: 30 },
  overall: { limit_per_mille: 150 },
} as const
export type ReturnRateKind = keyof typeof RETURN_RATES
export const RETURN_RATE_KINDS = Object.keys(RETURN_RATES) as [ReturnRateKind, ...ReturnRateKind[]]

/** Days in New York, both included. */
export interface CountedDays {
  readonly from: CalendarDate
  readonly to: CalendarDate
}

/** The days that count, as of a moment in epoch milliseconds. */
export function countedDays(epochMs: number): CountedDays {
  const to = newYorkDate(epochMs)
  return { from: daysAfter(to, 1 - RATE_DAYS), to }
}

/** Debits of an originator in the days that count. */
export interface CountedReturns {
  /** That the bank has taken. */
  readonly entries: number
  /** That came back: for each rate those that it counts. */
  readonly returned: Readonly<Record<ReturnRateKind, number>>
}

/** The rates that count a return, by its code; an unknown one counts with all. */
export function ratesOf(returnCode: string): readonly ReturnRateKind[] {
  const group = RETURN_CODES[returnCode]?.group ?? null
  return group === null ? ['overall'] : [group, 'overall']
}

/** Whether a rate is above its limit, which no single return makes it: that of a few entries says nothing of a rate. */
export function isAbove(kind: ReturnRateKind, { entries, returned }: CountedReturns): boolean {
  return returned[kind] > 1 && returned[kind] * 1_000 > entries * RETURN_RATES[kind].limit_per_mille
}

const rate = {
  return_rate_id: id(),
  tenant_id: id(),
  environment: environment(),
  rate: z.enum(RETURN_RATE_KINDS),
  /** Of the last {@link RATE_DAYS} days. */
  entries: z.int().min(0),
  returned: z.int().min(0),
  limit_per_mille: z.int(),
  at: time(),
}
export const ReturnRateExceeded = eventType('ReturnRateExceeded', rate)
/** The rate is within its limit again. */
export const ReturnRateRecovered = eventType('ReturnRateRecovered', rate)

const events = [ReturnRateExceeded, ReturnRateRecovered] as const
export type ReturnRateEvent = EventOf<(typeof events)[number]>
export interface ReturnRate {
  readonly exceeded: readonly ReturnRateKind[]
}
export interface ReturnRateCommand {
  readonly type: 'Compare'
  readonly data: Pick<
    EventOf<typeof ReturnRateExceeded>['data'],
    'return_rate_id' | 'tenant_id' | 'environment' | 'at'
  >
  readonly counted: CountedReturns
}

/** Says when the rates of an originator, which is a tenant in an environment, pass their limits, and when no longer. */
export const returnRate: Decider<ReturnRate, ReturnRateCommand, ReturnRateEvent> = {
  category: 'returnRate',
  events,
  initialState: { exceeded: [] },
  evolve({ exceeded }, { type, data: { rate } }) {
    const others = exceeded.filter((one) => one !== rate)
    return { exceeded: type === 'ReturnRateExceeded' ? [...others, rate] : others }
  },
  decide({ data, counted }, { exceeded }) {
    return RETURN_RATE_KINDS.flatMap((rate) => {
      const isNow = isAbove(rate, counted)
      if (isNow === exceeded.includes(rate)) return []
      const { limit_per_mille } = RETURN_RATES[rate]
      const { entries, returned } = counted
      const compared = { ...data, rate, entries, returned: returned[rate], limit_per_mille }
      return [isNow ? ReturnRateExceeded.of(compared) : ReturnRateRecovered.of(compared)]
    })
  },
}
