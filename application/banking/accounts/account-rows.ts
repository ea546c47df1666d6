import type { Expression, ExpressionBuilder, SqlBool } from 'kysely'
import { type KeyScope, keyScope } from '../../queries/pages.ts'
import { inIfGiven, type Parameter, sql } from '../../queries/statement.ts'
import type { ReadModels } from '../../queries/table.ts'

/** Tables of what belongs to an employer, a carrier, both or neither. */
type AccountTable = 'bank_accounts' | 'ach_accounts' | 'bank_connections' | 'bank_transactions'

/** What a list of accounts, or the like, is narrowed to by its key. */
export interface AccountScope extends KeyScope {
  readonly clientId: string
}

export function accountScope(
  client: Parameters<typeof keyScope>[0] & { readonly client_id: string },
): AccountScope {
  return { ...keyScope(client), clientId: client.client_id }
}

/**
 * Holds for accounts, or the like, within the scope of a key: those of its employers and carriers; of an employer without a named
 * carrier where it has a policy of one of them; and those of nobody that it has created itself, or where it is for all.
 */
export function isAccountWithinKey<Table extends AccountTable>(
  builder: ExpressionBuilder<ReadModels, Table>,
  table: Table,
  $: Parameter<AccountScope>,
): Expression<SqlBool> {
  const eb = builder as unknown as ExpressionBuilder<ReadModels, 'bank_accounts'>
  const isInsured = eb.exists(
    eb
      .selectFrom('policies')
      .select('policies.policy_id')
      .whereRef('policies.employer_id', '=', `${table}.employer_id` as 'bank_accounts.employer_id')
      .where((of) => inIfGiven(of, 'policies.carrier_id', $('carrierIds'))),
  )
  const isAll = (ids: Expression<readonly string[] | null>) =>
    eb(eb.cast<readonly string[] | null>(ids, sql`text[]`), 'is', null)
  const isForAll = eb.and([isAll($('carrierIds')), isAll($('employerIds'))])
  // an ACH account always has an owner
  const isReached =
    table === 'ach_accounts' ? isForAll : eb.or([isForAll, eb('client_id', '=', $('clientId'))])
  return eb.and([
    eb('tenant_id', '=', $('tenantId')),
    eb('environment', '=', $('environment')),
    eb.or([
      inIfGiven(eb, 'carrier_id', $('carrierIds')),
      eb.and([eb('carrier_id', 'is', null), eb.or([eb('employer_id', 'is', null), isInsured])]),
    ]),
    eb.or([eb('employer_id', 'is', null), inIfGiven(eb, 'employer_id', $('employerIds'))]),
    eb.or([eb('employer_id', 'is not', null), eb('carrier_id', 'is not', null), isReached]),
  ])
}
