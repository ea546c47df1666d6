import { expect, test } from 'vitest'
import { PayDates } from '../../../domain/payroll/pay-dates.ts'

const paid = (...checkDates: readonly (string | undefined)[]) => {
  const dates = new PayDates()
  // chunk by chunk
  for (const check_date of checkDates) dates.add([check_date === undefined ? {} : { check_date }])
  return dates.checkDate
}

test.each([
  [[], null],
  [[undefined], null],
  [['2026-11-20', undefined, undefined], '2026-11-20'],
  [['2062-11-20', '2026-11-20', '2026-11-20'], '2026-11-20'],
  [['2026-11-20', '2026-11-27'], '2026-11-27'],
  [['2026-11-27', '2026-11-20'], '2026-11-27'],
] as const)('rows paid on %j are a file of %s', (checkDates, expected) => {
  expect(paid(...checkDates)).toBe(expected)
})

test('the period is what all rows that name one agree on', () => {
  const november = { pay_period_start: '2026-11-01', pay_period_end: '2026-11-15' }
  const dates = new PayDates()
  dates.add([{}, { pay_period_start: '2026-10-01' }])
  expect(dates.period).toBeNull()
  dates.add([november, november, {}])
  expect(dates.period).toEqual({ start: '2026-11-01', end: '2026-11-15' })
  dates.add([{ ...november, pay_period_end: '2026-11-16' }])
  expect(dates.period).toBeNull()
})
