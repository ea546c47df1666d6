import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import {
  amountOf,
  describeColumns,
  MAX_ROWS,
  type PayrollCsv,
  type PayrollRecord,
  readPayrollCsv,
} from '../../../interfaces/cli/payroll-csv.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const directory = temporaryDirectory()

async function readWhole(text: string | Buffer): Promise<PayrollCsv> {
  const file = join(directory, 'rows.csv')
  await writeFile(file, text)
  return readPayrollCsv(file, Readable.from([]))
}
const read = async (text: string | Buffer): Promise<readonly PayrollRecord[]> =>
  (await readWhole(text)).records
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')

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

  test.each(['sep=;\r\n', '"sep=;"\n', 'SEP=;\n'])('may name its separator first, as %j', async (first) => {
    expect(await read(`${first}Name;Gross;Note, if any\nAda;1,5;x\n`)).toEqual([
      { name: 'Ada', gross_wages: 1.5, 'Note, if any': 'x' },
    ])
    await expect(read(`${first}Name;Gross\nAda;1;2\n`)).rejects.toThrow(/line 3/)
    expect(await read(utf16(`${first}Name;Gross\nAda;1\n`))).toEqual([{ name: 'Ada', gross_wages: 1 }])
  })

  test('passes a column on by whatever name it has', async () => {
    const { columns, records } = await readWhole('Name,Gross,__proto__\nAda,1,x\n')
    expect(describeColumns(columns).unknown).toBe('"__proto__"')
    expect(JSON.stringify(records)).toBe('[{"name":"Ada","gross_wages":1,"__proto__":"x"}]')
  })

  test.each([
    ['Employee,Regular Hours,Gross', '"Employee" as name, "Gross" as gross_wages', '"Regular Hours"'],
    [
      'Last name,First name,SSN,Work state,Gross earnings,Check date',
      '"Last name" as last_name, "First name" as first_name, "SSN" as ssn, "Work state" as state, ' +
        '"Gross earnings" as gross_wages, "Check date" as check_date',
      'none',
    ],
    [
      "File #;Payroll Name;Worker's Comp Code;Worked In State;Gross Pay;Pay Date",
      '"File #" as employee_id, "Payroll Name" as name, "Worker\'s Comp Code" as class_code, ' +
        '"Worked In State" as state, "Gross Pay" as gross_wages, "Pay Date" as check_date',
      'none',
    ],
    [
      'Emp #\tEmployee Name\tFirst Name\tWC Code\tTotal Hours\tHourly Rate\tPeriod Beginning\tPeriod Ending',
      '"Emp #" as employee_id, "First Name" as first_name, "WC Code" as class_code, "Total Hours" as hours_worked, ' +
        '"Hourly Rate" as rate, "Period Beginning" as pay_period_start, "Period Ending" as pay_period_end',
      '"Employee Name"',
    ],
  ])('says which columns of an export it understood, and which not: %s', async (header, known, unknown) => {
    const { columns } = await readWhole(`${header}\n${header.replaceAll(/[^,;\t]+/g, 'x')}\n`)
    expect(describeColumns(columns)).toEqual({ known, unknown })
  })

  test('leaves empty cells and empty lines out', async () => {
    const records = await read('first_name,gross_wages,overtime\r\nAda,100,\r\n\r\n,,\r\nBen,,5\r\n')
    expect(records).toEqual([
      { first_name: 'Ada', gross_wages: 100 },
      { first_name: 'Ben', overtime: 5 },
    ])
  })

  test.each([
    ['commas', 'name,gross\nPeña,"1,720.50"\n'],
    ['semicolons and decimal commas', 'name;gross\nPeña;1.720,50\n'],
    ['tabs', 'name\tgross\nPeña\t1720.50\n'],
    ['a header that ends otherwise than its rows', 'name,gross\r\nPeña,1720.50\n'],
    ['line ends of old', 'name,gross\rPeña,1720.50\r'],
    ['a byte order mark', '\ufeffname,gross\nPeña,1720.50\n'],
    ['UTF-16', utf16('name\tgross\r\nPeña\t1720.50\r\n')],
    ['UTF-16 the other way round', utf16('name\tgross\r\nPeña\t1720.50\r\n').swap16()],
  ])('is read with %s', async (_, text) => {
    expect(await read(text)).toEqual([{ name: 'Peña', gross_wages: 1720.5 }])
  })

  test('is read with quotes and line breaks in cells', async () => {
    const records = await read('first_name,last_name,gross\n"Ada ""The"" ","Ba\nker",1\n')
    expect(records).toEqual([{ first_name: 'Ada "The"', last_name: 'Ba\nker', gross_wages: 1 }])
  })

  test('is read from standard input under the name -', async () => {
    const { records } = await readPayrollCsv(
      '-',
      Readable.from([Buffer.from('gross_wages\n1'), Buffer.from('2\n')]),
    )
    expect(records).toEqual([{ gross_wages: 12 }])
  })

  test.each([
    ['first_name,first_name\na,b\n', 'both mean first_name'],
    ['hours,hours_worked\n1,2\n', 'the columns "hours" and "hours_worked" both mean hours_worked'],
    ['first_name,\na,b\n', 'column 2 has no name'],
    ['gross\n', 'no rows below its header'],
    ['', 'no header row'],
    ['first_name,gross\nAda\n', 'line 2'],
    ['gross\n"Ada\n', 'line'],
    [
      'Employee,Regular Hours\nAnn Lee,40\n',
      'no column names a wage (gross_wages, or hours_worked with rate), or the header row is missing; ' +
        'understood: "Employee" as name; not understood: "Regular Hours"',
    ],
    ['Ann Lee,40,1720\nBen Oak,40,1305\n', 'understood: none; not understood: "Ann Lee", "40", "1720"'],
    [
      'Ann Lee,123-45-6789,ann@lee.example,8810\n',
      'not understood: "Ann Lee", "(masked)", "(masked)", "8810"',
    ],
    ['name,hours\nAnn,40\n', 'no column names a wage'],
    [Buffer.from('name,gross\nAda,1\nPe\xf1a,2\n', 'latin1'), 'line 3 is not in UTF-8'],
    [Buffer.from('name,gross\r\nAda,1\r\n', 'utf16le'), 'line 1 is not in UTF-8'],
    [Buffer.concat([utf16('name\tgross\nAda\t1\n'), Buffer.of(0)]), 'line 3 is not in UTF-8'],
    ['name,gross\nPe\ufffda,2\n', 'line 2 holds U+FFFD'],
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
    ['1000.5055', 1000.5055],
    ['0', 0],
    ['-5', -5],
    ['00012.50', 12.5],
    ['9007199254740991', 9007199254740991],
    ['$1,000.50', 1000.5],
    ['1.000,50', 1000.5],
    ['1,720,000', 1720000],
    ["1'720.5 USD", 1720.5],
    ['1 720', 1720],
    ['($5.00)', -5],
    ['- $5.25', -5.25],
    ['1,720.00-', -1720],
    ['1,720.505', 1720.505],
  ])('%s is the number that it writes', (text, number) => {
    expect(amountOf(text, 'gross_wages', ',')).toBe(number)
  })

  test.each([
    ['1720,50', ';', 1720.5],
    ['1720,50', '\t', 1720.5],
    ['1720.50', ';', 1720.5],
  ])('%s in a file separated by %j is %d', (text, delimiter, number) => {
    expect(amountOf(text, 'gross_wages', delimiter)).toBe(number)
  })

  test.each([
    '1,720',
    '1.720',
    '$1,720',
    '1000.505',
    '1720,50',
    '1,72,000.00',
    '1,720.000.00',
    '1e3',
    '12.',
    '.5',
    'n/a',
    '-(5)',
    '(5',
    '--5',
    '0x10',
    'Infinity',
    '9007199254740993',
    '0.1234567890123456789',
  ])('%s stays text, for the service to judge', (text) => {
    expect(amountOf(text, 'gross_wages', ',')).toBe(text)
  })

  test('with three decimals is a number of hours or a rate', () => {
    expect(amountOf('37.125', 'hours_worked', ',')).toBe(37.125)
    expect(amountOf('37,125', 'hours_worked', ',')).toBe('37,125')
    expect(amountOf('18.125', 'rate', ';')).toBe('18.125')
  })
})
