import { describe, expect, test } from 'vitest'
import {
  namingValue,
  normalizeRow,
  REPORT_RECORDS,
  showValue,
  TOOL_ROWS,
} from '../../../domain/payroll/payroll-row.ts'
import { describeReason, type PayrollTerms, validateRow } from '../../../domain/payroll/row-validation.ts'
import { TERMS } from '../../support/payroll.ts'

const VALID = { employee_first_name: 'Ann', employee_last_name: 'Lee', class_code: '8810', state: 'CA' }

function judge(raw: Record<string, unknown>, terms: PayrollTerms = TERMS, vocabulary = TOOL_ROWS) {
  return validateRow(normalizeRow(raw, 1, vocabulary).row, terms)
}
const errorsOf = (raw: Record<string, unknown>, terms?: PayrollTerms) =>
  judge(raw, terms).errors.map(({ field, code }) => `${field} ${code}`)
const warningsOf = (raw: Record<string, unknown>) =>
  judge(raw).warnings.map(({ field, code }) => `${field} ${code}`)
const paid = (fields: Record<string, unknown>) => ({ ...VALID, gross_wages: 100, ...fields })

describe('wages', () => {
  test.each([
    ['gross wages alone', { gross_wages: 100 }, []],
    ['no wages at all is green', { gross_wages: 0 }, []],
    ['hours with rate', { hours: 40, rate: 25.5 }, []],
    ['neither form', {}, ['gross_wages missing_wage']],
    ['hours without rate', { hours: 40 }, ['rate missing_rate']],
    ['rate without hours', { rate: 25 }, ['hours missing_hours']],
    ['null counts as left out', { gross_wages: null }, ['gross_wages missing_wage']],
    ['a number in quotes', { gross_wages: '100' }, ['gross_wages not_a_number']],
    ['hours in quotes, one error for one field', { hours: '40', rate: 25 }, ['hours not_a_number']],
    ['infinite', { gross_wages: Number.POSITIVE_INFINITY }, ['gross_wages not_finite']],
    ['not a number', { gross_wages: Number.NaN }, ['gross_wages not_finite']],
    ['negative', { gross_wages: -1 }, ['gross_wages negative']],
    ['negative hours', { hours: -1, rate: 1 }, ['hours negative']],
    ['ten millions', { gross_wages: 10_000_000 }, []],
    ['a cent above ten millions', { gross_wages: 10_000_000.01 }, ['gross_wages too_large']],
    ['a product above ten millions', { hours: 5_000, rate: 5_000 }, ['gross_wages too_large']],
  ])('%s', (_, fields, errors) => {
    expect(errorsOf({ ...VALID, ...fields })).toEqual(errors)
  })

  test('overtime is optional, and held to the same bounds', () => {
    expect(errorsOf(paid({ overtime: 20 }))).toEqual([])
    expect(errorsOf(paid({ overtime: 'x' }))).toEqual(['overtime not_a_number'])
    expect(errorsOf(paid({ overtime: -0.01 }))).toEqual(['overtime negative'])
  })

  test('gross wages win over hours and rate; a product that differs is a warning', () => {
    expect(judge(paid({ hours: 1, rate: 50 }))).toEqual({
      errors: [],
      warnings: [{ field: 'gross_wages', code: 'wage_forms_differ', value: '100' }],
    })
    // exact, not 0.1 * 3 = 0.30000000000000004
    expect(warningsOf({ ...VALID, gross_wages: 0.3, hours: 3, rate: 0.1 })).toEqual([])
  })
})

describe('class codes and states', () => {
  const one: PayrollTerms = { ...TERMS, class_codes: ['8810'], states: ['CA'] }

  test.each([
    ['an unknown class code', { class_code: '9999' }, ['class_code unknown_value']],
    ['an unknown state', { state: 'ZZ' }, ['state unknown_value']],
    ['a class code as a number', { class_code: 8810 }, ['class_code not_a_string']],
    ['a state in lower case, padded', { state: ' ca ' }, []],
    ['class codes differ in case and form', { class_code: '08810' }, ['class_code unknown_value']],
    [
      'left out with several valid ones',
      { class_code: undefined, state: '' },
      ['class_code missing_value', 'state missing_value'],
    ],
  ])('%s', (_, fields, errors) => {
    expect(errorsOf(paid(fields))).toEqual(errors)
  })

  test('left out, the only valid one is meant; another one is still an error', () => {
    expect(errorsOf({ gross_wages: 1 }, one)).toEqual([])
    expect(errorsOf({ gross_wages: 1, class_code: '5606', state: 'NV' }, one)).toEqual([
      'class_code unknown_value',
      'state unknown_value',
    ])
    expect(errorsOf({ gross_wages: 1, state: 'CA' }, { ...one, class_codes: [] })).toEqual([
      'class_code missing_value',
    ])
  })

  test('the sentence names the value and lists the valid ones', () => {
    const [error] = judge(paid({ class_code: '9999' })).errors
    const { message, suggestion } = describeReason(error!, TERMS)
    for (const part of ['9999', '8810', '5606']) expect(message).toContain(part)
    expect(suggestion).toContain('8810')
  })
})

describe('dates and names', () => {
  test.each([
    [
      'dates that exist',
      { check_date: '2026-02-28', pay_period_start: '2026-02-01', pay_period_end: '2026-02-01' },
      [],
    ],
    ['another notation', { check_date: '08/01/2026' }, ['check_date not_a_date']],
    ['a month that does not exist', { pay_period_start: '2026-13-01' }, ['pay_period_start not_a_date']],
    ['a day that does not exist', { check_date: '2026-02-30' }, ['check_date not_a_date']],
    [
      'a period that ends before it starts',
      { pay_period_start: '2026-02-02', pay_period_end: '2026-02-01' },
      ['pay_period_end period_ends_before_start'],
    ],
  ])('%s', (_, fields, errors) => {
    expect(errorsOf(paid(fields))).toEqual(errors)
  })

  test('a check date outside the policy term is a warning', () => {
    expect(warningsOf(paid({ check_date: '2025-12-31' }))).toEqual(['check_date outside_policy_term'])
    expect(warningsOf(paid({ check_date: '2026-01-01' }))).toEqual([])
    expect(warningsOf(paid({ check_date: '2026-12-31' }))).toEqual([])
    expect(warningsOf(paid({ check_date: '2027-01-01' }))).toEqual(['check_date outside_policy_term'])
  })

  test('a missing name and unknown fields are warnings', () => {
    const anonymous = { class_code: '8810', state: 'CA', gross_wages: 1 }
    expect(warningsOf(anonymous)).toEqual(['employee_first_name missing_name'])
    expect(warningsOf({ ...anonymous, employee_first_name: 'Ann' })).toEqual([
      'employee_last_name missing_name',
    ])
    expect(warningsOf(paid({ shoe_size: 43 }))).toEqual(['shoe_size unknown_field'])
    expect(errorsOf(paid({ shoe_size: 43 }))).toEqual([])
  })

  test('flexible records name their fields differently, and further fields are expected in them', () => {
    const record = {
      first_name: 'Ann',
      last_name: 'Lee',
      hours_worked: 40,
      rate: 10,
      class_code: '8810',
      state: 'CA',
    }
    expect(judge({ ...record, department: 'x' }, TERMS, REPORT_RECORDS)).toEqual({ errors: [], warnings: [] })
  })

  test('flexible records may name them as the tools do', () => {
    const record = { employee_first_name: 'Ann', employee_last_name: 'Lee', hours: 40, rate: 10 }
    const raw = { ...record, class_code: '8810', state: 'CA' }
    expect(judge(raw, TERMS, REPORT_RECORDS)).toEqual({ errors: [], warnings: [] })
    const { row } = normalizeRow({ ...raw, hours_worked: 8 }, 1, REPORT_RECORDS)
    expect(row.hours).toBe(8)
  })

  test('an unknown value is quoted as it was sent; class codes are compared to the letter, states are not', () => {
    expect(errorsOf(paid({ state: ' ca ' }))).toEqual([])
    const [reason] = judge(paid({ state: 'zz ' })).errors
    expect(describeReason(reason!, TERMS).message).toContain('"zz "')
    expect(errorsOf(paid({ class_code: ' 8810' }))).toEqual(['class_code unknown_value'])
  })

  test('no message quotes a name or an identifier', () => {
    const raw = paid({ employee_first_name: 7, ssn: 'garbage', class_code: '123-45-6789', '987654321': 1 })
    const { errors, warnings } = judge(raw)
    const said = JSON.stringify([...errors, ...warnings].map((reason) => describeReason(reason, TERMS)))
    for (const secret of ['garbage', '123-45-6789', '987654321', '7']) {
      expect(said.replaceAll('8810', '')).not.toContain(secret)
    }
  })

  test.each([
    ['class_code', '123-45-6789'],
    ['class_code', 'ann@example.com'],
    ['state', '123456789'],
    ['check_date', '123 45 6789'],
    ['gross_wages', '123-45-6789'],
    ['gross_wages', 'Ann Lee'],
    ['rate', ' 12.50 Ann Lee '],
    ['check_date', 'Ann Lee'],
    ['pay_period_end', 'Ann Lee'],
    ['overtime', '123.45.6789'],
    ['hours', '+1 (555) 123-6789'],
    ['hours', { of: 'Ann Lee' }],
    ['class_code', ['Ann Lee']],
    ['class_code', 'Ann Lee'],
    ['state', 'Ann Lee'],
    ['class_code', 'Lee6789'],
    ['state', 'Lee6789'],
  ])(
    'a name or an identifier in the wrong column is one error and kept with the person alone: %s %j',
    (field, value) => {
      const { row, person } = normalizeRow(paid({ [field]: value }), 1, TOOL_ROWS)
      const { errors } = validateRow(row, TERMS)
      expect(errors.map((reason) => reason.field)).toEqual([field])
      expect(person?.other).toEqual({ [field]: value })
      const stored = JSON.stringify([row, errors, describeReason(errors[0]!, TERMS)])
      for (const part of ['6789', 'ann@example.com', 'Ann Lee']) expect(stored).not.toContain(part)
    },
  )

  test.each([
    ['gross_wages', '$1,234.50'],
    ['gross_wages', '(100.00)'],
    ['gross_wages', true],
    ['rate', '12,5 €'],
    ['check_date', '08/01/2026'],
    ['check_date', '2026-08-01T00:00:00Z'],
    ['check_date', 20260801],
    ['class_code', '9999'],
    ['state', 'ZZ'],
  ])('what looks mistyped is quoted: %s %j', (field, value) => {
    const [error] = judge(paid({ [field]: value })).errors
    expect(describeReason(error!, TERMS).message).toContain(`"${value}"`)
  })

  test.each([
    ['class_code', 'Lee'],
    ['class_code', 'LEE'],
    ['state', 'Lee'],
    ['state', 'Li'],
  ])('what may be a name is not quoted, whatever the policy: %s %j', (field, value) => {
    for (const terms of [TERMS, { ...TERMS, class_codes: [], states: [] }]) {
      const { row, person } = normalizeRow(paid({ [field]: value }), 1, TOOL_ROWS, terms)
      const { errors } = validateRow(row, terms)
      expect(errors).toEqual([{ field, code: 'unknown_value', value: '(masked)' }])
      expect(person?.other).toEqual({ [field]: value })
    }
  })

  test.each([
    ['class_code', 'INVALID', '"INVALID"'],
    ['state', 'California', '"California"'],
    ['class_code', `${'x'.repeat(39)}yz`, `"${'x'.repeat(39)}…"`],
    ['class_code', '123-45-6789', '"(masked)"'],
  ])(
    'what is no code is named to whoever sent it, and masked in what is stored: %s %j',
    (field, value, named) => {
      const { row, person } = normalizeRow(paid({ [field]: value }), 1, TOOL_ROWS)
      const [error] = validateRow(row, TERMS).errors
      expect(describeReason(namingValue(error!, person), TERMS).message).toContain(named)
      expect(describeReason(error!, TERMS).message).toContain('"(masked)"')
    },
  )

  test('a code of the policy counts, whatever it looks like', () => {
    const codes = { class_codes: ['CLERICAL'], states: ['CANADA'] }
    const { row } = normalizeRow(paid({ class_code: 'CLERICAL', state: 'Canada' }), 1, TOOL_ROWS, codes)
    expect(validateRow(row, { ...TERMS, ...codes }).errors).toEqual([])
  })

  test.each(['1,720', '1.720', '$1,720'])('an amount with two readings names both: %s', (gross_wages) => {
    const [error] = judge(paid({ gross_wages })).errors
    expect(describeReason(error!, TERMS).message).toMatch(/, which may mean 1720 or 1\.720$/)
  })

  test('a long value is cut between characters, never inside one', () => {
    expect(showValue(`${'x'.repeat(38)}😀zz`)).toBe(`${'x'.repeat(38)}😀…`)
    expect(showValue('😀'.repeat(40))).toBe('😀'.repeat(40))
  })
})

describe('who a row is about', () => {
  const named = { employee_first_name: 'Ann', employee_last_name: 'Lee' }
  const identityOf = (fields: Record<string, unknown>) => normalizeRow(fields, 1, TOOL_ROWS).identity

  test.each([
    [{ employee_id: 'E-7', ssn: '123-45-6789', ...named }, 'employee_id:E-7'],
    [{ ssn: '123-45-6789', ...named }, 'ssn:123456789'],
    [{ ssn: ' 123 45 6789 ' }, 'ssn:123456789'],
    [named, 'name:ann lee'],
    [{}, null],
  ])('is told by employee id, else social security number, else name: %j', (fields, identity) => {
    expect(identityOf(fields)).toBe(identity)
  })

  test.each(['N/A', 'pending', '***-**-1234', '1234567890', '12345678', 12345678, 0, '000-00-0000'])(
    'is not told by %j in place of a social security number, an error where it has not nine digits',
    (ssn) => {
      expect(identityOf({ ssn })).toBe(null)
      expect(identityOf({ ssn, ...named })).toBe('name:ann lee')
      expect(identityOf({ ssn, ...named })).not.toBe(identityOf({ ssn, employee_first_name: 'Bob' }))
      expect(errorsOf(paid({ ssn }))).toEqual(ssn === '000-00-0000' ? [] : ['ssn not_nine_digits'])
    },
  )

  test('is told by one name, however its accents are composed', () => {
    const composed = { employee_first_name: 'Jos\u00e9', employee_last_name: 'Pe\u00f1a' }
    const decomposed = { employee_first_name: 'Jose\u0301', employee_last_name: 'Pen\u0303a' }
    expect(identityOf(decomposed)).toBe(identityOf(composed))
  })

  test.each(['employee_first_name', 'employee_last_name', 'employee_id', 'ssn'])(
    'is not told by a %s of which characters were lost: two people would be one',
    (field) => {
      const raw = paid({
        employee_first_name: undefined,
        employee_last_name: undefined,
        [field]: 'Pe\ufffda',
      })
      expect(identityOf(raw)).toBe(null)
      expect(errorsOf(raw)).toEqual([`${field} lost_characters`])
    },
  )

  test.each([
    [{ name: 'Ann B Lee' }, { first_name: 'Ann B', last_name: 'Lee' }],
    [{ employee_name: 'Lee, Ann B' }, { first_name: 'Ann B', last_name: 'Lee' }],
    [{ full_name: ' Ann ' }, { first_name: 'Ann' }],
    [{ name: 'Lee,' }, { last_name: 'Lee' }],
    [
      { name: 'Ann Lee', last_name: 'Oak' },
      { last_name: 'Oak', other: { name: 'Ann Lee' } },
    ],
  ])('is told in reports by the whole name where its parts are missing: %j', (raw, person) => {
    expect(normalizeRow(raw, 1, REPORT_RECORDS).person).toEqual(person)
  })

  test('numbers identify as the same digits in texts do', () => {
    expect(identityOf({ employee_id: 1007, ...named })).toBe(identityOf({ employee_id: '1007' }))
    expect(identityOf({ ssn: 123456789 })).toBe(identityOf({ ssn: '123-45-6789' }))
    const { person } = normalizeRow({ ssn: 123456789, employee_id: 7 }, 1, TOOL_ROWS)
    expect(person).toEqual({ ssn: '123456789', employee_id: '7' })
    for (const ssn of [12345678.5, -123456789, true, ['123456789']]) expect(identityOf({ ssn })).toBe(null)
    expect(identityOf({ employee_id: Number.MAX_SAFE_INTEGER })).toBe('employee_id:9007199254740991')
    expect(identityOf({ employee_id: -7 })).toBe('employee_id:-7')
  })

  describe.each(['employee_id', 'ssn'])('%s as a number that is no safe integer', (field) => {
    // as texts: a source file, too, rounds what it reads
    test.each([
      '9007199254740992',
      '9007199254740993',
      '9007199254740992.0',
      '-9007199254740993',
      '1e16',
      '123456789012345678901234567890',
      '1e400',
      '-1e400',
      '0.1',
      '5e-324',
    ])('%s is refused by name and identifies nobody', (number) => {
      const raw = JSON.parse(`{"${field}":${number},"gross_wages":1,"class_code":"8810","state":"CA"}`)
      for (const vocabulary of [TOOL_ROWS, REPORT_RECORDS]) {
        expect(normalizeRow(raw, 1, vocabulary).identity).toBe(null)
        expect(normalizeRow({ ...raw, ...named }, 1, TOOL_ROWS).identity).toBe('name:ann lee')
        const { errors } = validateRow(normalizeRow(raw, 1, vocabulary).row, TERMS)
        expect(errors.map((reason) => reason.field)).toEqual([field])
        const { message, suggestion } = describeReason(errors[0]!, TERMS)
        expect(message).toBe(`${field} must be a string, or a whole number of at most 2^53 - 1`)
        expect(suggestion).toContain(field)
      }
    })
  })

  test.each(
    ['employee_id', 'ssn'].flatMap((field) => [{ x: 1 }, ['E-7'], true].map((value) => [field, value])),
  )('%s as %j is refused by name and identifies nobody', (field, value) => {
    const raw = paid({ [field as string]: value })
    for (const vocabulary of [TOOL_ROWS, REPORT_RECORDS]) {
      const { row, person } = normalizeRow(raw, 1, vocabulary)
      expect(validateRow(row, TERMS).errors).toEqual([{ field, code: 'not_a_string' }])
      expect(person?.other).toMatchObject({ [field as string]: value })
    }
    expect(identityOf(raw)).toBe(identityOf(paid({})))
  })

  test('an employee id that is no number decides as ever: a text of any digits identifies', () => {
    expect(identityOf({ employee_id: '9007199254740993' })).toBe('employee_id:9007199254740993')
    expect(identityOf({ employee_id: '9007199254740992' })).toBe('employee_id:9007199254740992')
  })
})
