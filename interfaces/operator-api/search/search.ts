import { z } from 'zod'
import { search } from '../../../application/search/search.ts'
import { MAX_SEARCH } from '../../../application/search/terms.ts'
import { text } from '../../endpoints/fields.ts'
import { endpoint } from '../host/api.ts'

const Hit = z
  .object({
    kind: z.string().describe('What it is, for example `employer`, `payment_link` or `debit`'),
    id: z.string(),
    label: z.string().describe('What it is called or how it stands; nothing personal'),
  })
  .meta({ id: 'SearchHit' })

export const searchEndpoints = [
  endpoint({
    operation: 'search',
    route: 'GET /search',
    summary: 'Find what a text names',
    description:
      'An id of anything, a FEIN, a policy number, a legal name or another name from any of its words on, an email address, ' +
      'the name of a file, the trace number of an entry, an idempotency key, an id of a provider. At most 10 of a kind ' +
      'and 50 in all. No character has a meaning of its own.',
    query: z.object({ q: text(MAX_SEARCH).describe('What is looked for') }),
    answers: { 200: z.array(Hit).readonly() },
    command: { name: 'search', operands: ['q'] },
    columns: 'kind id label',
    handle: ({ host: { app }, query }) => search(app, query.q),
  }),
]
