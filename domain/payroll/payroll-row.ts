import { z } from 'zod'
import { isCalendarDate } from '../kernel/calendar.ts'
import { sealContext, sealed } from '../kernel/sealed.ts'

/**
 * One payroll row in the canonical form: what every source (tool, report, inbound webhook) is
 * normalized to before it is stored. The person is kept apart, sealed under that person's
 * data key.
 */

/** The person of a row: sealed JSON of a {@link Person}, the same text in every event of the row. */
export const rowPerson = (rowNumberField: string) =>
  sealed({
    subject: 'person',
    boundTo: ({ data, holder }) =>
      sealContext(
        `payrollFile-${data.file_id}`,
        'PayrollRowsRecorded',
        `rows.${holder[rowNumberField]}.person`,
      ),
  })

/** Why a row is red, or what is doubtful about it, in machine words; `describeReason` puts it in sentences. */
export const rowReason = z.object({
  field: z.string(),
  code: z.enum([
    'not_a_string',
    'not_a_number',
    'not_finite',
    'negative',
    'too_large',
    'not_a_date',
    'missing_wage',
    'missing_rate',
    'missing_hours',
    'missing_value',
    'unknown_value',
    'totals_row',
    'not_nine_digits',
    'lost_characters',
    'period_ends_before_start',
    'wage_forms_differ',
    'outside_policy_term',
    'missing_name',
    'unknown_field',
  ]),
  /** The offending value, shortened; masked where it may be a person's identifier, or name in an amount or date. */
  value: z.string().optional(),
})
export type RowReason = z.output<typeof rowReason>

export const canonicalRow = z.object({
  /** 1-based position in the submitted rows. */
  n: z.number().int().positive(),
  /** Absent when the row names nobody. */
  person: rowPerson('n').optional(),
  /** `full` when first and last name are there; else what is missing. */
  name: z.enum(['full', 'no_first', 'no_last', 'none']),
  class_code: z.string().optional(),
  /** Trimmed and upper-cased. */
  state: z.string().optional(),
  /** The state as it was sent, where that was something else. */
  state_as_sent: z.string().optional(),
  /** Dollars. */
  gross_wages: z.number().optional(),
  /** Dollars; inside gross wages. */
  overtime: z.number().optional(),
  hours: z.number().optional(),
  /** Dollars per hour. */
  rate: z.number().optional(),
  check_date: z.string().optional(),
  pay_period_start: z.string().optional(),
  pay_period_end: z.string().optional(),
  /** Fields whose value could not be taken over, found while normalizing. */
  malformed: z.array(rowReason).optional(),
  /** Names of fields that no rule knows; their values are kept sealed with the person. */
  unknown: z.array(z.string()).optional(),
})
export type CanonicalRow = z.output<typeof canonicalRow>

/** The personal part of a row, before sealing. */
export interface Person {
  first_name?: string
  last_name?: string
  ssn?: string
  employee_id?: string
  /** Whatever else the row carried, as it came. */
  other?: Record<string, unknown>
}

/** A row split into the part that rules work on and the person. */
export interface NormalizedRow {
  readonly row: CanonicalRow
  readonly person: Person | null
  /** What identifies the person within the employer, best identifier first; null when nothing does. */
  readonly identity: string | null
}

/** How the fields of one source map to the canonical ones: names by preference, the first that is present counts. */
export interface RowVocabulary {
  readonly first_name: readonly string[]
  readonly last_name: readonly string[]
  /** Whole names, for rows without either of the two. */
  readonly full_name: readonly string[]
  readonly hours: readonly string[]
  /** Whether a field that no rule knows is worth a warning (tools), or expected (flexible reports). */
  readonly warnsOfUnknownFields: boolean
}

export const TOOL_ROWS: RowVocabulary = {
  first_name: ['employee_first_name'],
  last_name: ['employee_last_name'],
  full_name: [],
  hours: ['hours'],
  warnsOfUnknownFields: true,
}

export const REPORT_RECORDS: RowVocabulary = {
  first_name: ['first_name', 'employee_first_name'],
  last_name: ['last_name', 'employee_last_name'],
  full_name: ['name', 'employee_name', 'full_name'],
  hours: ['hours_worked', 'hours'],
  warnsOfUnknownFields: false,
}

/** What a policy knows of the codes that rows carry. */
export interface PolicyCodes {
  readonly class_codes: readonly string[]
  readonly states: readonly string[]
}

const NO_CODES: PolicyCodes = { class_codes: [], states: [] }

const MAX_UNKNOWN_FIELDS = 20
/** Social security numbers, with or without their hyphens, and email addresses. */
const IDENTIFIER_LIKE = /\d{3}[- ]?\d{2}[- ]?\d{4}|\S@\S/
const SSN_DIGITS = 9
const MASKED = '(masked)'

/** What a mistyped amount or date is made of. */
const NUMBER_OR_DATE_LIKE = /^[\d\s.,$€£%+\-/:TZ()]{1,40}$/
/** What digits of telephone and national numbers are grouped by. */
const GROUPING = /[\s.()+\-/]/g
/** Characters of a value in a message at the most. */
const SHOWN_CHARACTERS = 40

/**
 * A value as it may be shown in messages: short, and masked where it looks like a person's identifier.
 * What stands inside an array or object is not shown: anything may. Halves of surrogate pairs, which
 * the database takes in no text, are replaced.
 */
export function showValue(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? '[…]' : '{…}'
  const text = String(value).replace(/\p{Surrogate}/gu, '\ufffd')
  if (IDENTIFIER_LIKE.test(text)) return MASKED
  if (text.length <= SHOWN_CHARACTERS) return text
  // enough to find as many characters in, were all of them of two units
  const characters = [...text.slice(0, 2 * SHOWN_CHARACTERS + 2)]
  return characters.length > SHOWN_CHARACTERS
    ? `${characters.slice(0, SHOWN_CHARACTERS - 1).join('')}…`
    : text
}

/**
 * The value of an amount or a date as it may be shown: masked as well where it does not look like a
 * mistyped number or date, since a name may have got into the wrong column.
 */
function showNumberOrDate(value: unknown): string {
  const looksPersonal =
    typeof value === 'string' &&
    (!NUMBER_OR_DATE_LIKE.test(value) || /^\d{9,11}$/.test(value.replace(GROUPING, '')))
  return looksPersonal ? MASKED : showValue(value)
}

/**
 * A reason as whoever sent the row just now reads it: what is no class code or state is named, by the rules of
 * {@link showValue}. It may be a name in the wrong column: what is stored of a reason has it masked.
 * @param person of the row, with which the value is kept.
 */
export function namingValue(reason: RowReason, person: Person | null): RowReason {
  const kept = reason.code === 'unknown_value' && reason.value === MASKED && person?.other?.[reason.field]
  return typeof kept === 'string' ? { ...reason, value: showValue(kept) } : reason
}

/** Digits, with a suffix of two at the most (`8810`, `8810-01`, `7380 F`). */
const CLASS_CODE_LIKE = /^\s*\d{1,6}(?:[-./ ]?[A-Z0-9]{1,2})?\s*$/i
/** Two letters as codes are written; with a capital and a small one they are a name. */
const STATE_LIKE = /^\s*(?:[A-Z]{2}|[a-z]{2})\s*$/

/** Whether a text sent as a code is one of the policy's, or looks like one; a name may have got into the wrong column. */
function isCodeLike(field: 'class_code' | 'state', text: string, codes: PolicyCodes): boolean {
  return field === 'class_code'
    ? CLASS_CODE_LIKE.test(text) || codes.class_codes.includes(text)
    : STATE_LIKE.test(text) || codes.states.includes(text.trim().toUpperCase())
}

/** Stands where characters could not be read; two names that differ there read as one. */
export const LOST = '\ufffd'

/**
 * Normalizes one submitted row. Nothing is refused here: what cannot be taken over is noted in
 * `malformed` and becomes an error of phase 1. A null value counts as left out.
 * @param raw the row as parsed from JSON.
 * @param n its 1-based position.
 * @param codes of the policy: they count as codes, whatever they look like.
 */
export function normalizeRow(
  raw: Record<string, unknown>,
  n: number,
  vocabulary: RowVocabulary,
  codes: PolicyCodes = NO_CODES,
): NormalizedRow {
  const malformed: RowReason[] = []
  const other: Record<string, unknown> = {}
  const unknown: string[] = []
  const row: CanonicalRow = { n, name: 'none' }
  const person: Person = {}

  const present = (names: readonly string[]): string =>
    names.find((name) => raw[name] !== undefined && raw[name] !== null) ?? names[0]!
  const code = (field: 'class_code' | 'state'): string | undefined => {
    const value = raw[field]
    if (value === undefined || value === null) return undefined
    if (typeof value !== 'string') malformed.push({ field, code: 'not_a_string', value: showValue(value) })
    else if (value.trim() === '') return undefined
    // what may be a person's and got into the wrong column is kept with the person
    else if (showValue(value) === MASKED || !isCodeLike(field, value, codes))
      malformed.push({ field, code: 'unknown_value', value: MASKED })
    else return value
    other[field] = value
    return undefined
  }
  const amount = (key: string, field: 'gross_wages' | 'overtime' | 'hours' | 'rate'): void => {
    const value = raw[key]
    if (value === undefined || value === null) return
    if (typeof value !== 'number') {
      malformed.push({ field, code: 'not_a_number', value: showNumberOrDate(value) })
      other[key] = value
    } else if (!Number.isFinite(value)) {
      malformed.push({ field, code: 'not_finite' })
    } else {
      row[field] = value
    }
  }
  const date = (field: 'check_date' | 'pay_period_start' | 'pay_period_end'): void => {
    const value = raw[field]
    if (value === undefined || value === null) return
    if (isCalendarDate(value)) row[field] = value
    else {
      malformed.push({ field, code: 'not_a_date', value: showNumberOrDate(value) })
      other[field] = value
    }
  }
  const personal = (key: string, field: string, as: 'first_name' | 'last_name' | 'ssn' | 'employee_id') => {
    const value = raw[key]
    if (value === undefined || value === null) return
    if (typeof value === 'string') {
      if (value.includes(LOST)) {
        malformed.push({ field, code: 'lost_characters' })
        other[key] = value
      } else if (value.trim() !== '') person[as] = value.trim()
    } else if (
      Number.isSafeInteger(value) &&
      (as === 'employee_id' || (as === 'ssn' && Number(value) >= 0))
    ) {
      person[as] = String(value)
    } else {
      // no text, or a number that a reader has rounded: two people may have become one
      malformed.push({ field, code: 'not_a_string' })
      other[key] = value
    }
  }

  personal(present(vocabulary.first_name), 'employee_first_name', 'first_name')
  personal(present(vocabulary.last_name), 'employee_last_name', 'last_name')
  const wholeName =
    person.first_name === undefined && person.last_name === undefined
      ? vocabulary.full_name.find((name) => typeof raw[name] === 'string' && raw[name].trim() !== '')
      : undefined
  if (wholeName !== undefined) {
    personal(wholeName, 'employee_first_name', 'first_name')
    const { first_name: whole = '' } = person
    delete person.first_name
    Object.assign(person, partsOfName(whole))
  }
  personal('ssn', 'ssn', 'ssn')
  if (person.ssn !== undefined && digitsOf(person.ssn).length !== SSN_DIGITS) {
    malformed.push({ field: 'ssn', code: 'not_nine_digits' })
  }
  personal('employee_id', 'employee_id', 'employee_id')
  const classCode = code('class_code')
  if (classCode !== undefined) row.class_code = classCode
  const state = code('state')
  if (state !== undefined) {
    row.state = state.trim().toUpperCase()
    if (row.state !== state) row.state_as_sent = state
  }
  amount('gross_wages', 'gross_wages')
  amount('overtime', 'overtime')
  amount(present(vocabulary.hours), 'hours')
  amount('rate', 'rate')
  date('check_date')
  date('pay_period_start')
  date('pay_period_end')

  const known = knownFields(vocabulary)
  for (const key of Object.keys(raw)) {
    if (known.has(key) || key === wholeName) continue
    other[key] = raw[key]
    if (unknown.length < MAX_UNKNOWN_FIELDS) unknown.push(showValue(key))
  }

  const missingFirst = person.first_name === undefined
  const missingLast = person.last_name === undefined
  row.name = missingFirst ? (missingLast ? 'none' : 'no_first') : missingLast ? 'no_last' : 'full'
  if (malformed.length > 0) row.malformed = malformed
  if (unknown.length > 0 && vocabulary.warnsOfUnknownFields) row.unknown = unknown
  if (Object.keys(other).length > 0) person.other = other
  return { row, person: Object.keys(person).length > 0 ? person : null, identity: identityOf(person) }
}

const knownByVocabulary = new WeakMap<RowVocabulary, ReadonlySet<string>>()

function knownFields(vocabulary: RowVocabulary): ReadonlySet<string> {
  let known = knownByVocabulary.get(vocabulary)
  if (!known) {
    known = new Set([
      ...vocabulary.first_name,
      ...vocabulary.last_name,
      ...vocabulary.hours,
      'ssn',
      'employee_id',
      'class_code',
      'state',
      'gross_wages',
      'overtime',
      'rate',
      'check_date',
      'pay_period_start',
      'pay_period_end',
    ])
    knownByVocabulary.set(vocabulary, known)
  }
  return known
}

/** `Lee, Ann B` and `Ann B Lee` are the first name `Ann B` and the last name `Lee`; a single word is a first name. */
function partsOfName(name: string): Pick<Person, 'first_name' | 'last_name'> {
  const [comma, space] = [name.indexOf(','), name.search(/\s\S+$/u)]
  const [first, last] =
    comma >= 0
      ? [name.slice(comma + 1).trim(), name.slice(0, comma).trim()]
      : space < 0
        ? [name, '']
        : [name.slice(0, space).trim(), name.slice(space + 1)]
  return { ...(first && { first_name: first }), ...(last && { last_name: last }) }
}

/** Employee id, else a whole social security number, else name, in Unicode's composed form. */
function identityOf(person: Person): string | null {
  if (person.employee_id !== undefined) return `employee_id:${person.employee_id}`
  // what stands in for a number ("N/A", all zeros) or is masked in part would make different people one
  const digits = digitsOf(person.ssn ?? '')
  if (digits.length === SSN_DIGITS && Number(digits) !== 0) return `ssn:${digits}`
  if (person.first_name === undefined && person.last_name === undefined) return null
  return `name:${person.first_name ?? ''} ${person.last_name ?? ''}`.toLowerCase().normalize('NFC')
}

function digitsOf(text: string): string {
  return text.replace(/\D/g, '')
}
