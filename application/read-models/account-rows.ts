import type { Expression, ExpressionBuilder, SqlBool } from 'kysely'
import type { ReadModels } from './index.ts'
import type { KeyScope } from './pages.ts'
import { inIfGiven, type Parameter } from './statement.ts'

/** Tables of what belongs to an employer, a carrier, both or nobody. */
type AccountTable = 'bank_accounts' | 'ach_accounts' | 'bank_connections' | 'bank_transactions'

/**
 * Holds for accounts, or the like, within the scope of a key: those of its employers and carriers; of an employer without a named
 * carrier where it has a policy of one of them; and those of nobody.
 */
export function isAccountWithinKey<Table extends AccountTable>(
  builder: ExpressionBuilder<ReadModels, Table>,
  table: Table,
  $: Parameter<KeyScope>,
): Expression<SqlBool> {
  const eb = builder as unknown as ExpressionBuilder<ReadModels, 'bank_accounts'>
  const isInsured = eb.exists(
    eb
      .selectFrom('policies')
      .select('policies.policy_id')
      .whereRef('policies.employer_id', '=', `${table}.employer_id` as 'bank_accounts.employer_id')
      .where((of) => inIfGiven(of, 'policies.carrier_id', $('carrierIds'))),
  )
  return eb.and([
    eb('tenant_id', '=', $('tenantId')),
    eb('environment', '=', $('environment')),
    eb.or([
      inIfGiven(eb, 'carrier_id', $('carrierIds')),
      eb.and([eb('carrier_id', 'is', null), eb.or([eb('employer_id', 'is', null), isInsured])]),
    ]),
    eb.or([eb('employer_id', 'is', null), inIfGiven(eb, 'employer_id', $('employerIds'))]),
  ])
}
