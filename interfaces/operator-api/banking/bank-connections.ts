import { z } from 'zod'
import { listAllConnections } from '../../../application/banking/linking/operator-connections.ts'
import { bankConnection, CONNECTION_STATUSES } from '../../../domain/banking/linking/bank-connection.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

const Connection = z
  .object({
    connection_id: id(),
    ...owner,
    employer_id: id().nullable(),
    carrier_id: id().nullable(),
    client_id: z.string().optional().describe('The key that linked it'),
    status: z
      .enum(CONNECTION_STATUSES)
      .describe('`login_required`: the user has to log in at the bank again'),
    provider: z.string().describe('The bank link'),
    item_id: z.string().describe('Its id at the bank link'),
    institution_name: z.string().nullable(),
    accounts: z
      .array(
        z.object({
          bank_account_id: id(),
          type: z.string(),
          mask: z.string().nullable().describe('The last digits of its number'),
        }),
      )
      .readonly(),
    linked_at: shownTime().describe('When its user logged in at the bank first'),
    updated_at: shownTime(),
  })
  .meta({ id: 'OperatorBankConnection' })

export const bankConnectionEndpoints = [
  endpoint({
    operation: 'listBankConnections',
    route: 'GET /bank-connections',
    summary: 'List links to accounts at banks, newest first',
    description: 'Neither who linked one nor what opens it is shown.',
    ...listOf(Connection, {
      ...scope,
      employer_id: narrowing(id()),
      carrier_id: narrowing(id()),
      status: narrowing(word(...CONNECTION_STATUSES)),
    }),
    columns: 'connection_id linked_at environment status bank:institution_name employer_id carrier_id',
    handle: handleList(listAllConnections),
  }),
  endpoint({
    operation: 'showBankConnection',
    route: 'GET /bank-connections/{connection_id}',
    summary: 'Show a link to accounts at a bank',
    ...ofOne('connection_id', 'bank connection'),
    answers: { 200: Connection },
    handle: ({ host, params }) => loaded(host, bankConnection, params.connection_id, 'bank connection'),
  }),
]
