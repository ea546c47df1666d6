import { type Policy, type PolicyTerms, statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../application.ts'
import type { Statement } from '../ports/read-database.ts'

/** A policy as the read model shows it, with the status that it has today. */
export interface ListedPolicy
  extends Pick<PolicyTerms, 'class_codes' | 'states' | 'locations' | 'payroll_frequency'> {
  readonly policy_id: string
  readonly policy_number: string
  /** Empty when the carrier is not known. */
  readonly carrier_name: string
  readonly status: Policy['status'] | 'expired'
  readonly effective_date: string
  readonly expiration_date: string
  readonly fee_count: number
}

const POLICIES_OF_EMPLOYER: Statement = {
  name: 'policies-of-employer',
  text: `
    SELECT policy.policy_id, policy.policy_number, coalesce(carrier.name, '') AS carrier_name, policy.status,
           policy.effective_date, policy.expiration_date, policy.class_codes, policy.states,
           policy.locations, policy.payroll_frequency, policy.fee_count
    FROM read_model.policies AS policy
    LEFT JOIN read_model.carriers AS carrier ON carrier.carrier_id = policy.carrier_id
    WHERE policy.employer_id = $1
    ORDER BY policy.seq`,
}

type PolicyRow = Omit<ListedPolicy, 'status'> & Pick<Policy, 'status'>

/** All policies of an employer, in the order in which they were issued. */
export async function policiesOf(
  app: Pick<Application, 'read' | 'clock'>,
  employerId: string,
): Promise<readonly ListedPolicy[]> {
  const now = app.clock.now()
  const rows = await app.read.query<PolicyRow>(POLICIES_OF_EMPLOYER, [employerId])
  return rows.map((row) => ({ ...row, status: statusOn(row, now) }))
}

/**
 * The active policies of an employer, with `includeExpired` those whose term has ended as well;
 * never those in progress or cancelled.
 */
export async function listEmployerPolicies(
  app: Pick<Application, 'read' | 'clock'>,
  employerId: string,
  includeExpired: boolean,
) {
  const listed = (await policiesOf(app, employerId)).filter(
    ({ status }) => status === 'active' || (includeExpired && status === 'expired'),
  )
  return {
    employer_id: employerId,
    policy_count: listed.length,
    policies: listed.map((policy) => ({
      policy_id: policy.policy_id,
      policy_number: policy.policy_number,
      carrier_name: policy.carrier_name,
      status: policy.status,
      effective_date: policy.effective_date,
      expiration_date: policy.expiration_date,
      fee_count: policy.fee_count,
    })),
  }
}
