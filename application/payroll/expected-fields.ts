import type { Employer } from '../../domain/parties/employer.ts'
import type { Policy } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import { legalName } from '../parties/legal-names.ts'
import { policiesOf } from '../policies/list-employer-policies.ts'

/** One field of a payroll row, as a policy expects it. */
export interface FieldDescriptor {
  readonly name: string
  readonly type: 'string' | 'number'
  readonly description: string
  /** The only values that are accepted, where there is such a set. */
  readonly valid_values?: readonly string[]
  /** What the system fills in when the row leaves the field out. */
  readonly auto_value?: string
}

const GROSS_WAGES: FieldDescriptor = {
  name: 'gross_wages',
  type: 'number',
  description: 'Gross wages for the period, in dollars. Alternative: hours together with rate.',
}

const ALWAYS_OPTIONAL: readonly FieldDescriptor[] = [
  { name: 'employee_first_name', type: 'string', description: 'First name of the employee' },
  { name: 'employee_last_name', type: 'string', description: 'Last name of the employee' },
  {
    name: 'overtime',
    type: 'number',
    description: 'Overtime wages, in dollars, as part of gross_wages',
  },
  { name: 'hours', type: 'number', description: 'Hours worked; with rate the alternative to gross_wages' },
  { name: 'rate', type: 'number', description: 'Hourly rate, in dollars; used with hours' },
  { name: 'check_date', type: 'string', description: 'Pay date, YYYY-MM-DD' },
  { name: 'pay_period_start', type: 'string', description: 'First day of the pay period, YYYY-MM-DD' },
  { name: 'pay_period_end', type: 'string', description: 'Last day of the pay period, YYYY-MM-DD' },
]

/**
 * The fields that an employer's policies expect of payroll rows.
 * @param policyId the one policy to describe, known to exist; null describes all active ones.
 */
export async function describeExpectedFields(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'clock' | 'personalData'>,
  employer: Employer,
  policyId: string | null,
) {
  const { employer_id } = employer
  const find = async () =>
    (await policiesOf(app, employer_id)).filter((policy) =>
      policyId === null ? policy.status === 'active' : policy.policy_id === policyId,
    )
  let described = await find()
  if (policyId !== null && described.length === 0) {
    await app.readModels.reached(['policies'], await app.log.head())
    described = await find()
  }
  return {
    employer_id,
    employer_name: await legalName(app, employer),
    policies: described.map((policy) => ({
      policy_id: policy.policy_id,
      policy_number: policy.policy_number,
      carrier: policy.carrier_name,
      status: policy.status,
      effective_date: policy.effective_date,
      expiration_date: policy.expiration_date,
      class_codes: policy.class_codes,
      states: policy.states,
      locations: policy.locations,
      payroll_frequency: policy.payroll_frequency,
      fields: fieldsOf(policy),
    })),
  }
}

/** Which fields a policy requires: a class code or state that it has only one of is filled in. */
function fieldsOf(policy: Pick<Policy, 'class_codes' | 'states'>): {
  readonly required: readonly FieldDescriptor[]
  readonly optional: readonly FieldDescriptor[]
} {
  const required = [GROSS_WAGES]
  const optional: FieldDescriptor[] = []
  const closed = [
    { name: 'class_code', what: "Workers' compensation class code", values: policy.class_codes },
    { name: 'state', what: '2-letter state abbreviation', values: policy.states },
  ]
  for (const { name, what, values } of closed) {
    const field = { name, type: 'string' } as const
    const [only] = values
    if (only === undefined) {
      required.push({ ...field, description: `${what}; the policy records none, so any is accepted` })
    } else if (values.length === 1) {
      const description = `${what}; filled in with ${only} when left out`
      optional.push({ ...field, description, valid_values: values, auto_value: only })
    } else {
      required.push({ ...field, description: `${what}; one of valid_values`, valid_values: values })
    }
  }
  return { required, optional: [...optional, ...ALWAYS_OPTIONAL] }
}
