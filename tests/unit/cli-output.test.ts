import { expect, test } from 'vitest'
import { resource } from '../../interfaces/cli/output.ts'

test('an object that is too long for a line has a line for each field, whatever lies in it', () => {
  const tables = ['payroll_files', 'payroll_row_errors'].map((table) => ({
    ...{ table, equal: true },
    live: { rows: 26, hash: '-8347545568523126025:-43434922614320837275' },
    shadow: { rows: 26, hash: '-8347545568523126025:-43434922614320837275' },
  }))
  const rebuild = { generation: 4, failure: null, comparison: { equal: true, position: 173, tables } }
  const { text } = resource({ name: 'payroll-files', lag: { events: 0, seconds: 0 }, rebuild })
  expect(text).toContain('events: 0, seconds: 0')
  expect(text).toContain('rows: 26, hash: -8347545568523126025:-43434922614320837275')
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(130)
})

test('four times as much is printed in a few times the time', () => {
  const fields = (count: number) =>
    Array.from({ length: count }, (_, index) => [`field ${index}`, 'x'.repeat(90)])
  const listOf = (count: number) => ({
    list: Array.from({ length: count }, () => Object.fromEntries(fields(8))),
  })
  const quickest = (data: unknown) =>
    Math.min(
      ...Array.from({ length: 3 }, () => {
        const start = performance.now()
        resource(data)
        return performance.now() - start
      }),
    )
  quickest(listOf(10))
  expect(quickest(listOf(40)) / quickest(listOf(10))).toBeLessThan(10)
  // a line of its own for each 500 characters
  expect(
    resource({ long: 'y'.repeat(1_200) })
      .text.match(/y+/g)
      ?.map(({ length }) => length),
  ).toEqual([500, 500, 200])
})
