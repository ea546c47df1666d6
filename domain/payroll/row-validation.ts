import { compare, type Decimal, decimal, multiply } from '../kernel/money.ts'
import type { CanonicalRow, RowReason } from './payroll-row.ts'
import { showValue } from './payroll-row.ts'

/** The terms of a policy that payroll rows are held against. */
export interface PayrollTerms {
  /** Valid class codes; empty when the policy records none, then any code is accepted. */
  readonly class_codes: readonly string[]
  /** Valid 2-letter states; empty when the policy records none. */
  readonly states: readonly string[]
  readonly effective_date: string
  readonly expiration_date: string
}

/** What the rules say of one row. A row without errors is green, else red. */
export interface RowVerdict {
  readonly errors: readonly RowReason[]
  readonly warnings: readonly RowReason[]
}

/** Highest amount of one field in one row, in dollars: 10,000,000.00. */
export const MAX_AMOUNT = 10_000_000

/**
 * The row rules. Dry runs, phase 1 and the predictions of both are this one function.
 * One error per offending field.
 */
export function validateRow(row: CanonicalRow, terms: PayrollTerms): RowVerdict {
  const errors: RowReason[] = [...(row.malformed ?? [])]
  const warnings: RowReason[] = []
  const flawed = (field: string) => errors.some((reason) => reason.field === field)

  for (const field of ['gross_wages', 'overtime', 'hours', 'rate'] as const) {
    const value = row[field]
    if (value === undefined || flawed(field)) continue
    if (value < 0) errors.push({ field, code: 'negative', value: showValue(value) })
    else if (value > MAX_AMOUNT) errors.push({ field, code: 'too_large', value: showValue(value) })
  }
  wageForms(row, flawed, errors, warnings)
  closedSet('class_code', row.class_code, row.class_code, terms.class_codes, flawed, errors)
  closedSet('state', row.state, row.state_as_sent ?? row.state, terms.states, flawed, errors)

  if (row.pay_period_start && row.pay_period_end && row.pay_period_end < row.pay_period_start) {
    errors.push({ field: 'pay_period_end', code: 'period_ends_before_start', value: row.pay_period_end })
  }
  if (row.check_date && (row.check_date < terms.effective_date || row.check_date > terms.expiration_date)) {
    warnings.push({ field: 'check_date', code: 'outside_policy_term', value: row.check_date })
  }
  if (row.name !== 'full' && !flawed('employee_first_name') && !flawed('employee_last_name')) {
    const field = row.name === 'no_last' ? 'employee_last_name' : 'employee_first_name'
    warnings.push({ field, code: 'missing_name' })
  }
  for (const field of row.unknown ?? []) warnings.push({ field, code: 'unknown_field' })
  return { errors, warnings }
}

/** `gross_wages`, or `hours` together with `rate`; gross wages win where both are given. */
function wageForms(
  row: CanonicalRow,
  flawed: (field: string) => boolean,
  errors: RowReason[],
  warnings: RowReason[],
): void {
  const hours = row.hours !== undefined || flawed('hours')
  const rate = row.rate !== undefined || flawed('rate')
  if (row.gross_wages !== undefined || flawed('gross_wages')) {
    const product = hoursTimesRate(row)
    const gross = row.gross_wages === undefined ? null : decimal(row.gross_wages)
    if (product && gross && compare(product, gross) !== 0) {
      warnings.push({ field: 'gross_wages', code: 'wage_forms_differ', value: showValue(row.gross_wages) })
    }
    return
  }
  if (!hours && !rate) errors.push({ field: 'gross_wages', code: 'missing_wage' })
  else if (!rate) errors.push({ field: 'rate', code: 'missing_rate' })
  else if (!hours) errors.push({ field: 'hours', code: 'missing_hours' })
  else {
    const product = hoursTimesRate(row)
    if (product && !flawed('hours') && !flawed('rate') && compare(product, decimal(MAX_AMOUNT)!) > 0) {
      errors.push({ field: 'gross_wages', code: 'too_large' })
    }
  }
}

/** Wages from hours and rate, exact dollars; null when one of them is missing. */
export function hoursTimesRate(row: CanonicalRow): Decimal | null {
  if (row.hours === undefined || row.rate === undefined) return null
  return multiply(decimal(row.hours)!, decimal(row.rate)!)
}

function closedSet(
  field: 'class_code' | 'state',
  value: string | undefined,
  asSent: string | undefined,
  valid: readonly string[],
  flawed: (field: string) => boolean,
  errors: RowReason[],
): void {
  if (flawed(field)) return
  if (value === undefined) {
    if (valid.length !== 1) errors.push({ field, code: 'missing_value' })
  } else if (valid.length > 0 && !valid.includes(value)) {
    errors.push({ field, code: 'unknown_value', value: showValue(asSent) })
  }
}

/** The class code of a green row: the given one, or the policy's only one. */
export function resolvedClassCode(row: CanonicalRow, terms: PayrollTerms): string {
  return row.class_code ?? terms.class_codes[0] ?? ''
}

/** The state of a green row: the given one, or the policy's only one. */
export function resolvedState(row: CanonicalRow, terms: PayrollTerms): string {
  return row.state ?? terms.states[0] ?? ''
}

/** Fields that may come as numbers as well, as far as these are exact. */
const IDENTIFIERS: ReadonlySet<string> = new Set(['employee_id', 'ssn'])

/** A reason in sentences: what is wrong, and what to send instead. */
export function describeReason(
  reason: RowReason,
  terms: Pick<PayrollTerms, 'class_codes' | 'states'>,
): { message: string; suggestion: string } {
  const { field } = reason
  const value = reason.value === undefined ? '' : ` ${quoted(reason.value)}`
  const valid = field === 'class_code' ? terms.class_codes : field === 'state' ? terms.states : []
  const list = listed(valid)
  const label = field === 'class_code' ? 'class code' : field
  switch (reason.code) {
    case 'not_a_string':
      return {
        message: IDENTIFIERS.has(field)
          ? `${field} must be a string, or a whole number of at most 2^53 - 1`
          : `${field} must be a string`,
        suggestion:
          field === 'class_code'
            ? 'Send the class code as a string, for example "8810"'
            : `Send ${field} as text`,
      }
    case 'not_a_number':
      return {
        message: `${field} must be a number, not${value}${readings(reason.value)}`,
        suggestion: `Send ${field} as a JSON number, without quotes, currency signs or separators`,
      }
    case 'not_finite':
      return { message: `${field} is not a finite number`, suggestion: `Send ${field} as a plain number` }
    case 'negative':
      return { message: `${field} must not be negative`, suggestion: `Send ${field} as 0 or more` }
    case 'too_large':
      return {
        message: `${field} must not exceed 10,000,000.00`,
        suggestion: `Check the amount: wages are in dollars, not cents`,
      }
    case 'not_a_date':
      return {
        message: `${field} must be an existing date in the form YYYY-MM-DD, not${value}`,
        suggestion: `Send ${field} as YYYY-MM-DD`,
      }
    case 'missing_wage':
      return {
        message: 'a wage is required: gross_wages, or hours together with rate',
        suggestion: 'Add gross_wages in dollars, or both hours and rate',
      }
    case 'missing_rate':
      return {
        message: 'rate is required with hours when gross_wages is left out',
        suggestion: 'Add rate in dollars per hour, or send gross_wages',
      }
    case 'missing_hours':
      return {
        message: 'hours is required with rate when gross_wages is left out',
        suggestion: 'Add hours, or send gross_wages',
      }
    case 'missing_value':
      return {
        message: `${field} is required; valid values: ${list}`,
        suggestion: valid.length > 0 ? `Add ${field}, one of: ${list}` : `Add ${field}`,
      }
    case 'unknown_value':
      return {
        message: `unknown ${label}${value}; valid values: ${list}`,
        suggestion: `Use one of: ${list}`,
      }
    case 'totals_row':
      return {
        message: `${field}${value} is the sum of rows before it: a totals row is nobody's wage`,
        suggestion: 'Leave totals rows out; where the row is a person, send the name',
      }
    case 'not_nine_digits':
      return {
        message: `${field} must have nine digits`,
        suggestion: `Send the whole ${field} as text, with the zeros in front, or leave it out`,
      }
    case 'lost_characters':
      return {
        message: `${field} holds U+FFFD, which stands for characters that were lost when it was read`,
        suggestion: `Read the source in its own encoding, and send ${field} in UTF-8`,
      }
    case 'period_ends_before_start':
      return {
        message: 'pay_period_end lies before pay_period_start',
        suggestion: 'Swap or correct pay_period_start and pay_period_end',
      }
    case 'wage_forms_differ':
      return {
        message: `gross_wages${value} differs from hours x rate; gross_wages is used`,
        suggestion: 'Send either gross_wages or hours with rate',
      }
    case 'outside_policy_term':
      return {
        message: `check_date${value} lies outside the policy term`,
        suggestion: 'Check the date, or report against the policy in force on it',
      }
    case 'missing_name':
      return {
        message: `${field} is missing`,
        suggestion: 'Send employee_first_name and employee_last_name',
      }
    case 'unknown_field':
      return { message: `${field} is not a payroll field and is ignored`, suggestion: `Remove ${field}` }
  }
}

/** A text with one separator and three digits after it: thousands to some, a fraction to others. */
const THOUSANDS_OR_FRACTION = /^\D*?(-?\d+)[.,](\d{3})\D*$/

function readings(value: string | undefined): string {
  const [, whole, rest] = THOUSANDS_OR_FRACTION.exec(value ?? '') ?? []
  return whole === undefined ? '' : `, which may mean ${whole}${rest} or ${whole}.${rest}`
}

/** Valid values that a message lists at the most. */
const LISTED_VALUES = 50

const lists = new WeakMap<readonly string[], string>()

/** Valid values in a message. All messages about one policy share the text, however many rows are red. */
function listed(valid: readonly string[]): string {
  let list = lists.get(valid)
  if (list === undefined) {
    const more = valid.length - LISTED_VALUES
    list = valid.length > 0 ? valid.slice(0, LISTED_VALUES).join(', ') : 'any that has the form of one'
    if (more > 0) list += ` and ${more} more (get_expected_fields lists all)`
    lists.set(valid, list)
  }
  return list
}

function quoted(value: string): string {
  return `"${value}"`
}
