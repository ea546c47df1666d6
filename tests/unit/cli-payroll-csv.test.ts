import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  exactNumber,
  MAX_ROWS,
  type PayrollRecord,
  readPayrollCsv,
} from '../../interfaces/cli/payroll-csv.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'compstream-csv-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function read(text: string | Buffer): Promise<readonly PayrollRecord[]> {
  const file = join(directory, 'rows.csv')
  await writeFile(file, text)
  return readPayrollCsv(file, Readable.from([]))
}

describe('a payroll CSV', () => {
  test('becomes report records: known columns by any usual name, amounts as numbers, the rest as text', async () => {
    const records = await read(
      'Employee First Name,employee_last_name,Class Code,State,Gross Wages,Hours,Rate,Employee ID,Department\n' +
        'Ada,Baker,8810,CA,1000.50,40,25.5,007,"Front, desk"\n',
    )
    expect(records).toEqual([
      {
        first_name: 'Ada',
        last_name: 'Baker',
        class_code: '8810',
        state: 'CA',
        gross_wages: 1000.5,
        hours_worked: 40,
        rate: 25.5,
        employee_id: '007',
        Department: 'Front, desk',
      },
    ])
  })

  test('leaves empty cells and empty lines out', async () => {
    const records = await read('first_name,gross_wages,overtime\r\nAda,100,\r\n\r\n,,\r\nBen,,5\r\n')
    expect(records).toEqual([
      { first_name: 'Ada', gross_wages: 100 },
      { first_name: 'Ben', overtime: 5 },
    ])
  })

  test('is read past a byte order mark and with quotes and line breaks in cells', async () => {
    const records = await read('\ufefffirst_name,last_name\n"Ada ""The"" ","Ba\nker"\n')
    expect(records).toEqual([{ first_name: 'Ada "The"', last_name: 'Ba\nker' }])
  })

  test('is read from standard input under the name -', async () => {
    const records = await readPayrollCsv(
      '-',
      Readable.from([Buffer.from('gross_wages\n1'), Buffer.from('2\n')]),
    )
    expect(records).toEqual([{ gross_wages: 12 }])
  })

  test.each([
    ['first_name,first_name\na,b\n', 'both mean first_name'],
    ['hours,hours_worked\n1,2\n', 'the columns "hours" and "hours_worked" both mean hours_worked'],
    ['first_name,\na,b\n', 'column 2 has no name'],
    ['first_name\n', 'no rows below its header'],
    ['', 'no rows below its header'],
    ['first_name,last_name\nAda\n', 'line 2'],
    ['first_name\n"Ada\n', 'line'],
  ])('is refused in words when it cannot be meant: %j', async (text, words) => {
    await expect(read(text)).rejects.toThrow(words)
    await expect(read(text)).rejects.toMatchObject({ name: 'CliError' })
  })

  test('is refused when there is no such file', async () => {
    await expect(readPayrollCsv(join(directory, 'missing.csv'), Readable.from([]))).rejects.toThrow(
      /missing\.csv cannot be read: ENOENT/,
    )
  })

  test('is never cut: one row more than a report takes is refused', async () => {
    const rows = (count: number) => `gross_wages\n${'1\n'.repeat(count)}`
    await expect(read(rows(MAX_ROWS + 1))).rejects.toThrow('more than 50000 rows')
    expect(await read(rows(MAX_ROWS))).toHaveLength(MAX_ROWS)
  })
})

describe('a cell with an amount', () => {
  test.each([
    ['1000.505', 1000.505],
    ['0', 0],
    ['-5', -5],
    ['00012.50', 12.5],
    ['9007199254740991', 9007199254740991],
  ])('%s is the number that JSON writes the same', (text, number) => {
    expect(exactNumber(text)).toBe(number)
  })

  test.each([
    '$1,000.50',
    '1.000,50',
    '1e3',
    '12.',
    '.5',
    'n/a',
    '(5)',
    '0x10',
    'Infinity',
    '9007199254740993',
    '0.1234567890123456789',
  ])('%s stays text, for the service to judge', (text) => {
    expect(exactNumber(text)).toBe(text)
  })
})
