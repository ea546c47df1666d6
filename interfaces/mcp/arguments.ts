import { z } from 'zod'
import { isIdempotencyKey } from '../../application/commands/keyed-call.ts'
import { isRowTooLarge, MAX_ROW_BYTES } from '../../application/commands/row-size.ts'
import { inTimeSlices } from '../../application/commands/time-slices.ts'
import { MAX_ROWS } from '../../application/payroll/submit-payroll.ts'
import { MAX_AMOUNT } from '../../domain/payroll/row-validation.ts'
import { type Fault, naming } from '../endpoints/faults.ts'
import { checkClosed } from '../endpoints/unknown-fields.ts'
import { INVALID_PARAMS, invalidParams, isObject, RpcError } from './json-rpc.ts'

/**
 * The arguments of the tools, as `tools/list` shows them and as they are checked. Messages are written for agents and
 * say what to send. What is left out is missing; null is a wrong value.
 */

/** What names a policy, for messages that ask for another one. */
export const POLICY = 'a policy_id that list_employer_policies returns for this employer'

/** A text that is not blank. @param what to send. */
function text(what: string) {
  return z
    .string({
      error: ({ input }) =>
        isMissing(input) ? `is required: send ${what} as a string` : `must be a string: send ${what}`,
    })
    .refine(isNotBlank, `is empty: send ${what}`)
}

/** The same that may be left out. */
function optionalText(what: string, description: string) {
  return z
    .string(`must be a string: send ${what}, or leave it out`)
    .refine(isNotBlank, `is empty: send ${what}`)
    .describe(description)
    .optional()
}

/** False where it is left out. */
function flag(description: string) {
  return z
    .boolean('must be a boolean: send true or false without quotes')
    .describe(description)
    .default(false)
}

const employer_id = text('the identifier of the employer').describe(
  'Identifier of the employer (24 hexadecimal characters) that this credential may act for.',
)
const policy_id = text(POLICY).describe(
  "Identifier of one of the employer's policies, as returned by list_employer_policies.",
)

const amount = z.number().min(0).max(MAX_AMOUNT)
const date = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}$/)
  .meta({ format: 'date' })

/** For the description alone: the domain checks rows, and tells of each what is wrong with it. */
const PayrollRow = z
  .object({
    employee_first_name: z.string().describe('First name of the employee.'),
    employee_last_name: z.string().describe('Last name of the employee.'),
    class_code: z
      .string()
      .describe(
        'Workers\' compensation class code as a string, for example "8810"; one of the policy\'s class codes.',
      ),
    state: z
      .string()
      .describe('Two-letter state abbreviation, for example "CA"; one of the policy\'s states.'),
    gross_wages: amount.describe(
      'Gross wages of the period in dollars, overtime included. Wins over hours x rate when both are sent.',
    ),
    overtime: amount.describe('Overtime wages in dollars, as part of gross_wages.'),
    hours: amount.describe('Hours worked; send together with rate instead of gross_wages.'),
    rate: amount.describe('Hourly rate in dollars; send together with hours.'),
    check_date: date.describe('Pay date, YYYY-MM-DD.'),
    pay_period_start: date.describe('First day of the pay period, YYYY-MM-DD.'),
    pay_period_end: date.describe('Last day of the pay period, YYYY-MM-DD.'),
    ssn: z
      .string()
      .describe(
        'Optional national identifier of the employee; checked and stored encrypted by submit_payroll_data, ignored by validate_payroll_submission, never returned.',
      ),
  })
  .partial()
  .describe(
    'Pay of one employee for one period. Send gross_wages, or hours together with rate. class_code and state may be left out when the policy has exactly one of them.',
  )

const rows = z
  .array(z.unknown(), {
    error: ({ input }) =>
      isMissing(input)
        ? 'is required: send an array of payroll row objects'
        : 'must be an array of payroll row objects',
  })
  .min(1, 'is empty: send at least one payroll row')
  .max(MAX_ROWS, {
    error: ({ input }) => `has ${(input as unknown[]).length} elements: send at most ${MAX_ROWS} per call`,
  })
  .meta({ description: 'The payroll rows, one per employee and period.', items: PayrollRow })

const KEY = 'must be a string of 1 to 255 visible ASCII characters, for example a UUID'

export const ListEmployerPolicies = z.object({
  employer_id,
  include_expired: flag('Also list policies whose term has ended.'),
})

export const GetExpectedFields = z.object({
  employer_id,
  policy_id: optionalText(
    POLICY,
    'Identifier of one policy; left out, all active policies of the employer are described.',
  ),
})

export const ValidatePayrollSubmission = z.object({ employer_id, policy_id, rows })

export const SubmitPayrollData = z.object({
  employer_id,
  policy_id,
  rows,
  dry_run: flag('True only validates and stores nothing. Sandbox credentials always get a dry run.'),
  idempotency_key: z
    .string(KEY)
    .min(1, KEY)
    .max(255, KEY)
    .refine(isIdempotencyKey, KEY)
    .describe(
      'Any unique string, for example a UUID. A retry with the same key and arguments returns the first result and never reports the payroll twice. Left out, the HTTP header Idempotency-Key counts, if there is one.',
    )
    .optional(),
})

const ofFile = {
  submission_id: optionalText(
    'the submission_id of submit_payroll_data',
    'Identifier returned by submit_payroll_data. Send submission_id or file_id; at least one is required.',
  ),
  file_id: optionalText(
    'the file_id of a payroll file',
    'Identifier of the payroll file (or the report_id of a large core API report). Send submission_id or file_id; at least one is required.',
  ),
}
/** For the description: the lookup itself says which is missing. */
const ONE_ID = { anyOf: [{ required: ['submission_id'] }, { required: ['file_id'] }] }

export const FileLookup = z.object(ofFile).meta(ONE_ID)

const ROW = `must be a whole number from 0 to ${MAX_ROWS} without quotes: send the row_number of the last row that you have, or leave it out`

export const GetValidationErrors = z
  .object({
    ...ofFile,
    after_row: z
      .int(ROW)
      .min(0, ROW)
      .max(MAX_ROWS, ROW)
      .describe('Only rows after this row_number: where has_more is true, that of the last row of errors.')
      .optional(),
  })
  .meta(ONE_ID)

/** The JSON Schema of a tool's arguments. */
export function jsonSchemaOf(input: z.ZodObject): Readonly<Record<string, unknown>> {
  const schema = schemaOf(input)
  return { ...schema, required: schema.required ?? [], additionalProperties: false }
}

function schemaOf(schema: z.ZodType): z.core.JSONSchema.BaseSchema {
  const { $schema: _, ...shown } = z.toJSONSchema(schema, {
    io: 'input',
    override({ zodSchema, jsonSchema }) {
      const { items } = z.globalRegistry.get(zodSchema) ?? {}
      if (items instanceof z.ZodType) jsonSchema.items = schemaOf(items)
    },
  })
  return shown
}

/**
 * Checks the arguments of a call, all but what is in the rows.
 * @param unkept where a name was sent that is not among the given: no object can keep it.
 * @throws RpcError -32602 that names the first argument at fault; too many rows are HTTP 413.
 */
export function checkArguments<Input extends z.ZodObject>(
  input: Input,
  given: Readonly<Record<string, unknown>>,
  unkept: string | undefined,
): z.output<Input> {
  const unknown: Fault[] = unkept
    ? [{ field: unkept, message: 'is a name that is not kept: leave it out', kind: 'unknown' }]
    : []
  const checked = checkClosed(input, given, 'argument')
  if ('value' in checked && unknown.length === 0) return checked.value
  const faults = [...unknown, ...('faults' in checked ? checked.faults : [])]
  const { field, message, kind } = faults[0]!
  const isTooMany = kind === 'too_big' && Array.isArray(given[field])
  throw new RpcError(INVALID_PARAMS, `${field} ${message}`, naming(faults), isTooMany ? 413 : 200)
}

/** Rows that are objects of moderate size. @throws RpcError -32602 that names the first one that is not. */
export async function payrollRows(
  rows: readonly unknown[],
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const refused = (message: string) => invalidParams('rows', message)
  await inTimeSlices(rows, (row, index) => {
    if (!isObject(row)) throw refused(`rows[${index}] must be an object, for example {"gross_wages": 1000}`)
    if (isRowTooLarge(row)) {
      throw refused(`rows[${index}] is larger than ${MAX_ROW_BYTES / 1024} KiB: shorten it`)
    }
  })
  return rows as readonly Record<string, unknown>[]
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null
}

function isNotBlank(value: string): boolean {
  return value.trim() !== ''
}
