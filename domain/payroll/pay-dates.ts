import type { CalendarDate } from '../kernel/calendar.ts'
import type { CanonicalRow } from './payroll-row.ts'

export interface PayPeriod {
  readonly start: CalendarDate
  readonly end: CalendarDate
}
type DatedRow = Pick<CanonicalRow, 'check_date' | 'pay_period_start' | 'pay_period_end'>

/** What the rows of a payroll file say of when they are paid and for which time, gathered chunk by chunk. */
export class PayDates {
  readonly #rowsByCheckDate = new Map<CalendarDate, number>()
  readonly #periods = new Map<string, PayPeriod>()

  add(rows: readonly DatedRow[]): void {
    for (const { check_date, pay_period_start: start, pay_period_end: end } of rows) {
      if (check_date !== undefined) {
        this.#rowsByCheckDate.set(check_date, (this.#rowsByCheckDate.get(check_date) ?? 0) + 1)
      }
      if (start !== undefined && end !== undefined) this.#periods.set(`${start}/${end}`, { start, end })
    }
  }

  /** The check date of most rows, so that a mistyped one moves nothing; of dates with as many, the latest. Null: no row has one. */
  get checkDate(): CalendarDate | null {
    let found: CalendarDate | null = null
    let most = 0
    for (const [date, rows] of this.#rowsByCheckDate) {
      if (rows > most || (rows === most && date > found!)) [found, most] = [date, rows]
    }
    return found
  }

  /** The period that rows are paid for. Null: no row has one, or not all have the same. */
  get period(): PayPeriod | null {
    return this.#periods.size === 1 ? [...this.#periods.values()][0]! : null
  }
}
