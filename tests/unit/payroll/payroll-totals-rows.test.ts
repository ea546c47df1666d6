import { describe, expect, test } from 'vitest'
import { validatePayroll } from '../../../application/payroll/validate-payroll.ts'
import { REPORT_RECORDS, type RowVocabulary, TOOL_ROWS } from '../../../domain/payroll/payroll-row.ts'
import { validateRow } from '../../../domain/payroll/row-validation.ts'
import { rowNormalizer } from '../../../domain/payroll/totals-rows.ts'
import { SystemRandomness } from '../../../infrastructure/randomness.ts'
import { TERMS } from '../../support/payroll.ts'

type Raw = Record<string, unknown>

const randomness = new SystemRandomness({ kind: 'system', now: () => 0 })
const paid = { class_code: '8810', state: 'CA' }
const person = (name: string, gross_wages: number): Raw => ({ ...paid, first_name: name, gross_wages })
const nobody = (gross_wages: number): Raw => ({ ...paid, gross_wages })

/** What normalizes the rows of a file. */
function normalizerOf(rows: readonly Raw[], vocabulary: RowVocabulary = REPORT_RECORDS) {
  const steps = rowNormalizer(rows, vocabulary, TERMS)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** The numbers of the rows that are totals, from 1. */
function totalsOf(rows: readonly Raw[], vocabulary?: RowVocabulary): number[] {
  const normalize = normalizerOf(rows, vocabulary)
  return rows.flatMap((raw, index) => {
    const { errors } = validateRow(normalize(raw, index + 1).row, TERMS)
    return errors.some(({ field, code }) => field === 'gross_wages' && code === 'totals_row')
      ? [index + 1]
      : []
  })
}

describe('a totals row', () => {
  const people = [person('Ann', 1720), person('Ben', 1305)]

  test.each([
    ['names nobody', nobody(3025)],
    ['is called so', person('Grand Totals', 3025)],
    ['is called so in two fields', { ...paid, first_name: 'Grand', last_name: 'Total:', gross_wages: 3025 }],
    ['is called so in the whole name', { ...paid, name: 'Total', gross_wages: 3025 }],
    ['is called so in the employee id', { ...paid, employee_id: 'SUBTOTAL', gross_wages: 3025 }],
    ['is called so in another language, among other words', person('Sub-total Dept. 7', 3025)],
    ['gives hours and rate', { ...paid, hours: 100, rate: 30.25 }],
  ])('%s, and its wage is the sum of the rows before it', (_, row) => {
    expect(totalsOf([...people, row])).toEqual([3])
  })

  test.each([
    ['a row of nobody whose wage is no sum', [...people, nobody(3025.01)]],
    ['a row of nobody after a single row', [person('Ann', 1720), nobody(1720)]],
    ['a person', [...people, person('Cy', 3025)]],
    ['somebody with an employee id alone', [...people, { ...paid, employee_id: '7', gross_wages: 3025 }]],
    ['somebody called like it whose wage is no sum', [...people, person('Total', 3000)]],
    ['somebody whose name only holds the word', [...people, person('Totalová', 3025)]],
    ['any row of a file without names', [nobody(1720), nobody(1305), nobody(3025)]],
  ])('is not %s', (_, rows) => {
    expect(totalsOf(rows)).toEqual([])
  })

  test.each([
    ['a name', person('Ann', 1)],
    ['an employee id', { ...nobody(1), employee_id: '7' }],
    ['an ssn', { ...nobody(1), ssn: '123-45-6789' }],
  ])('stands also before the first row that names anybody: by %s', (_, first) => {
    const rows = [nobody(1720), nobody(1305), nobody(3025), nobody(7), nobody(8), nobody(15)]
    expect(totalsOf([...rows, first])).toEqual([3, 6])
  })

  test('names no person by its word for totals', () => {
    const rows = [nobody(1720), nobody(1305), nobody(3025)]
    expect(totalsOf([...rows, person('Total', 1)])).toEqual([])
  })

  test('is found by a dry run before the first name as well', async () => {
    const rows = [nobody(1720), nobody(1305), nobody(3025), { ...nobody(1), employee_first_name: 'Ann' }]
    const { validation } = await validatePayroll({ randomness }, TERMS, rows, 'ignored')
    expect(validation.errors.map(({ row, field }) => [row, field])).toEqual([[3, 'gross_wages']])
  })

  test('counts in no further sum: subtotals, totals of them and the grand total are all found', () => {
    const rows = [
      ...[person('Ann', 100.1), person('Ben', 200.2), nobody(300.3)],
      ...[person('Cy', 50.05), nobody(50.05)],
      ...[person('Di', 7), person('Ed', 8), person('Department total', 15)],
      ...[person('Grand total', 365.35), nobody(365.35)],
    ]
    expect(totalsOf(rows)).toEqual([3, 5, 8, 9, 10])
  })

  test('adds up rows that are at fault themselves, cent by cent', () => {
    const rows = [
      { ...person('Ann', 0.1), state: 'ZZ' },
      person('Ben', -0.3),
      { ...person('Cy', 0), gross_wages: 'x' },
    ]
    const file = [...rows, nobody(-0.2)]
    const normalize = normalizerOf(file)
    const codes = file.map((raw, index) =>
      validateRow(normalize(raw, index + 1).row, TERMS).errors.map(({ code }) => code),
    )
    expect(codes.at(-1)).toEqual(['totals_row'])
  })

  test('is told from a sum that no number holds exactly', () => {
    const rows = [person('Ann', 1e300), person('Ben', 1), person('Cy', 2)]
    expect(totalsOf([...rows, nobody(100), nobody(3)])).toEqual([])
    expect(totalsOf([...rows, person('Di', 3), nobody(5)])).toEqual([5])
  })

  test('is looked for in names as long as a row may be, too', () => {
    const rows = Array.from({ length: 50 }, () => person(`Ann${' -'.repeat(16_000)}total`, 1))
    expect(totalsOf([...rows.slice(0, 49), { ...rows[49]!, gross_wages: 49 }])).toEqual([50])
  })

  test('is found at the end of the largest file, and for agents as well', () => {
    const rows = Array.from({ length: 49_999 }, (_, index) => ({
      ...paid,
      employee_first_name: `P${index}`,
      gross_wages: 1000.01,
    }))
    expect(totalsOf([...rows, nobody(49_999_499.99)], TOOL_ROWS)).toEqual([50_000])
  })
})
