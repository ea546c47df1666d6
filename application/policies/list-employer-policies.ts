import { statusOn } from '../../domain/policies/policy.ts'
import type { Application } from '../commands/application.ts'
import type { ResultOf } from '../ports/read-database.ts'
import { type Parameter, statement } from '../queries/statement.ts'

const POLICIES_OF_EMPLOYER = statement('policies-of-employer', (db, $: Parameter<{ employerId: string }>) =>
  db
    .selectFrom('policies as policy')
    .leftJoin('carriers as carrier', 'carrier.carrier_id', 'policy.carrier_id')
    .select(['policy.policy_id', 'policy.policy_number', 'carrier.name as carrier_name'])
    .select(['policy.status', 'policy.effective_date', 'policy.expiration_date'])
    .select(['policy.class_codes', 'policy.states', 'policy.locations'])
    .select(['policy.payroll_frequency', 'policy.fee_count'])
    .where('policy.employer_id', '=', $('employerId'))
    .orderBy('policy.seq'),
)
type PolicyRow = ResultOf<typeof POLICIES_OF_EMPLOYER>

/** A policy as the read model shows it, with the status that it has today. */
export interface ListedPolicy extends Omit<PolicyRow, 'carrier_name' | 'status'> {
  /** Empty when the carrier is not known. */
  readonly carrier_name: string
  readonly status: PolicyRow['status'] | 'expired'
}

/** All policies of an employer, in the order in which they were issued. */
export async function policiesOf(
  app: Pick<Application, 'read' | 'clock'>,
  employerId: string,
): Promise<readonly ListedPolicy[]> {
  const now = app.clock.now()
  const rows = await app.read.query(POLICIES_OF_EMPLOYER, { employerId })
  return rows.map((row) => ({
    ...row,
    carrier_name: row.carrier_name ?? '',
    status: statusOn(row, now),
  }))
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
