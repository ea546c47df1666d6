/** What a request that names employer, carrier and policy is refused with, as `namedPolicy` does; by status. */
export const POLICY_REFUSALS = {
  400: ['carrier_id_required', 'policy_mismatch'],
  403: ['carrier_out_of_scope', 'employer_out_of_scope', 'policy_out_of_scope'],
  404: ['carrier_not_found', 'employer_not_found', 'policy_not_found'],
} as const
