import { z } from 'zod'
import { listDebitCollections } from '../../../application/operations/list-kept-things.ts'
import { type DebitCollection, debitCollection } from '../../../domain/banking/debits/debit-collection.ts'
import { id, ofOne } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { noSuch } from '../../endpoints/not-found.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

const Collection = z
  .object({
    collection_id: id(),
    ...owner,
    employer_id: id(),
    ach_account_id: id().describe('The account that is debited'),
    amount_cents: z.int().describe('Of all its debits'),
    debits: z
      .array(
        z.object({
          transaction_id: id().describe('Of the debit, which may be there already'),
          policy_id: id(),
          carrier_id: id(),
          amount_cents: z.int(),
        }),
      )
      .readonly()
      .describe('One of each policy that was named'),
    accepted_at: shownTime().describe('From when on its debits are made'),
  })
  .meta({ id: 'OperatorDebitCollection' })

export const debitCollectionEndpoints = [
  endpoint({
    operation: 'listDebitCollections',
    route: 'GET /debit-collections',
    summary: 'List collections of several debits that were accepted by one call, newest first',
    ...listOf(Collection, { ...scope, employer_id: narrowing(id()) }),
    columns: 'collection_id accepted_at environment amount_cents employer_id',
    handle: handleList(listDebitCollections, shown),
  }),
  endpoint({
    operation: 'showDebitCollection',
    route: 'GET /debit-collections/{collection_id}',
    summary: 'Show a collection of several debits that was accepted by one call',
    ...ofOne('collection_id', 'debit collection'),
    answers: { 200: Collection },
    async handle({ host, params }) {
      const found = await loaded(host, debitCollection, params.collection_id, 'debit collection')
      if (found === 'refused') throw noSuch('debit collection')
      return shown(found)
    },
  }),
]

function shown({ bank_account_id, entries, ...collection }: DebitCollection) {
  return {
    ...collection,
    ach_account_id: bank_account_id,
    amount_cents: entries.reduce((sum, { amount_cents }) => sum + amount_cents, 0),
    debits: entries,
  }
}
