import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { calendarTables } from '../../../bench/payroll-calendar.ts'

test('The page about scaling assumes what the simulation plays', async () => {
  expect(await readFile('docs/operators/scaling.md', 'utf8')).toContain(calendarTables())
})
