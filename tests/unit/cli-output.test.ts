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
