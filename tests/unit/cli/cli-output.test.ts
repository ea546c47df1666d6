import { expect, test } from 'vitest'
import { resource, rows } from '../../../interfaces/cli/output.ts'

test('an object that is too long for a line has a line for each field, whatever lies in it', () => {
  const tables = ['payroll_files', 'payroll_row_errors'].map((table) => ({
    table,
    equal: true,
    live: { rows: 26, hash: '-8347545568523126025:-43434922614320837275' },
    shadow: { rows: 26, hash: '-8347545568523126025:-43434922614320837275' },
  }))
  const rebuild = { generation: 4, failure: null, comparison: { equal: true, position: 173, tables } }
  const { text } = resource({ name: 'payroll-files', lag: { events: 0, seconds: 0 }, rebuild })
  expect(text).toContain('events: 0, seconds: 0')
  expect(text).toContain('rows: 26, hash: -8347545568523126025:-43434922614320837275')
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(130)
})

// the library measures all of a cell for each of its lines
test('a line of a cell is a row of the table, and one of 500 characters at the most', () => {
  const text = rows([{ one: 'first\nsecond', other: 'beside' }], { One: 'one', Other: 'other' })
  expect(text.split('\n').slice(1, -1)).toEqual([
    '│ One    │ Other  │',
    '│ first  │ beside │',
    '│ second │        │',
  ])
  const long = resource({ long: 'y'.repeat(1_200) }).text.match(/y+/g)
  expect(long?.map(({ length }) => length)).toEqual([500, 500, 200])
})
