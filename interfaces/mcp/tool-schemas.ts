import { MAX_ROWS } from '../../application/payroll/submit-payroll.ts'
import { MAX_AMOUNT } from '../../domain/payroll/row-validation.ts'

/** The JSON Schemas of the tools' arguments, written for the agents that read them. */

const employerId = {
  type: 'string',
  description: 'Identifier of the employer (24 hexadecimal characters) that this credential may act for.',
}
const amount = { type: 'number', minimum: 0, maximum: MAX_AMOUNT }
const date = { type: 'string', format: 'date', pattern: '^\\d{4}-\\d{2}-\\d{2}$' }

const payrollRow = {
  type: 'object',
  description:
    'Pay of one employee for one period. Send gross_wages, or hours together with rate. class_code and state may be left out when the policy has exactly one of them.',
  properties: {
    employee_first_name: { type: 'string', description: 'First name of the employee.' },
    employee_last_name: { type: 'string', description: 'Last name of the employee.' },
    class_code: {
      type: 'string',
      description:
        'Workers\' compensation class code as a string, for example "8810"; one of the policy\'s class codes.',
    },
    state: {
      type: 'string',
      description: 'Two-letter state abbreviation, for example "CA"; one of the policy\'s states.',
    },
    gross_wages: {
      ...amount,
      description:
        'Gross wages of the period in dollars, overtime included. Wins over hours x rate when both are sent.',
    },
    overtime: { ...amount, description: 'Overtime wages in dollars, as part of gross_wages.' },
    hours: { ...amount, description: 'Hours worked; send together with rate instead of gross_wages.' },
    rate: { ...amount, description: 'Hourly rate in dollars; send together with hours.' },
    check_date: { ...date, description: 'Pay date, YYYY-MM-DD.' },
    pay_period_start: { ...date, description: 'First day of the pay period, YYYY-MM-DD.' },
    pay_period_end: { ...date, description: 'Last day of the pay period, YYYY-MM-DD.' },
    ssn: {
      type: 'string',
      description:
        'Optional national identifier of the employee; stored encrypted by submit_payroll_data, ignored by dry runs, never returned.',
    },
  },
}

const rows = {
  type: 'array',
  description: 'The payroll rows, one per employee and period.',
  minItems: 1,
  maxItems: MAX_ROWS,
  items: payrollRow,
}

const policyId = {
  type: 'string',
  description: "Identifier of one of the employer's policies, as returned by list_employer_policies.",
}
const submissionId = {
  type: 'string',
  description:
    'Identifier returned by submit_payroll_data. Send submission_id or file_id; at least one is required.',
}
const fileId = {
  type: 'string',
  description:
    'Identifier of the payroll file (or the report_id of a large core API report). Send submission_id or file_id; at least one is required.',
}

export const listEmployerPoliciesInput = {
  type: 'object',
  properties: {
    employer_id: employerId,
    include_expired: {
      type: 'boolean',
      default: false,
      description: 'Also list policies whose term has ended.',
    },
  },
  required: ['employer_id'],
}

export const getExpectedFieldsInput = {
  type: 'object',
  properties: {
    employer_id: employerId,
    policy_id: {
      type: 'string',
      description: 'Identifier of one policy; left out, all active policies of the employer are described.',
    },
  },
  required: ['employer_id'],
}

export const validatePayrollSubmissionInput = {
  type: 'object',
  properties: { employer_id: employerId, policy_id: policyId, rows },
  required: ['employer_id', 'policy_id', 'rows'],
}

export const submitPayrollDataInput = {
  type: 'object',
  properties: {
    employer_id: employerId,
    policy_id: policyId,
    rows,
    dry_run: {
      type: 'boolean',
      default: false,
      description: 'True only validates and stores nothing. Sandbox credentials always get a dry run.',
    },
    idempotency_key: {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      description:
        'Any unique string, for example a UUID. A retry with the same key and arguments returns the first result and never reports the payroll twice. Left out, the HTTP header Idempotency-Key counts, if there is one.',
    },
  },
  required: ['employer_id', 'policy_id', 'rows'],
}

export const fileLookupInput = {
  type: 'object',
  properties: { submission_id: submissionId, file_id: fileId },
  required: [],
}
