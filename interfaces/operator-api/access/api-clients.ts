import { z } from 'zod'
import * as apiClients from '../../../application/access/api-clients.ts'
import { isClientId } from '../../../application/access/client-authentication.ts'
import { listApiClients } from '../../../application/access/list-directory.ts'
import { apiClient } from '../../../domain/access/api-client.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { create, once, REPEATED } from '../../endpoints/creations.ts'
import { id, ofOne, text, withDefault, word, wrongType } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { contextOf, endpoint, keyed, loaded, type OperatorHost } from '../host/api.ts'
import { handleList, scope as ofTenant } from '../host/lists.ts'
import { allOrIds, environment } from '../host/values.ts'

const product = word('payroll', 'payments', 'all')
const scope = z.union([z.literal('all'), z.array(id())])

const ApiClient = z
  .object({
    client_id: z.string(),
    tenant_id: id(),
    name: z.string(),
    environment: z.enum(['live', 'sandbox']),
    products: z.array(product),
    carrier_ids: scope,
    employer_ids: scope,
    request_signing: z.enum(['off', 'required']),
    status: z.enum(['active', 'deactivated']),
  })
  .meta({ id: 'ApiClient' })
const ApiClientWithSecret = ApiClient.extend({
  client_secret: z.string().describe('Shown this once'),
}).meta({ id: 'ApiClientWithSecret' })

const products = withDefault(
  z.union(
    [
      z.literal('all').transform(() => ['all' as const]),
      z
        .array(product)
        .min(1)
        .max(2000)
        .transform((all) => [...new Set(all)]),
    ],
    wrongType('must be an array'),
  ),
  ['all'],
)

const one = ofOne('client_id', 'API client', isClientId)

export const apiClientEndpoints = [
  endpoint({
    operation: 'issueApiClient',
    route: 'POST /api-clients',
    summary: 'Issue a key pair for the REST APIs; the secret is shown once',
    body: z.object({
      tenant_id: id(),
      name: text(),
      environment: environment(),
      products: products.describe('What the key pair opens'),
      carrier_ids: allOrIds().describe('Carriers of the tenant that it may act for'),
      employer_ids: allOrIds().describe('Employers of the tenant that it may act for'),
      request_signing: withDefault(word('off', 'required'), 'off'),
    }),
    idempotent: REPEATED.secret,
    answers: { 201: ApiClientWithSecret },
    errors: { 404: 'There is no such tenant, or it has no such carrier or employer' },
    refuses: {
      404: ['carrier_not_found', 'employer_not_found', 'tenant_not_found'],
      409: ['already_created'],
    },
    handle(call) {
      const { host, body: input } = call
      return create(keyed(call), 'POST /api-clients', {
        prepare: () => apiClients.refuseIssue(host.app, input),
        create: (context) => apiClients.issue(host.app, input, context),
        idOf: ({ client }) => client.client_id,
        show: withSecret,
        repeated: null,
      })
    },
  }),
  endpoint({
    operation: 'listApiClients',
    route: 'GET /api-clients',
    summary: 'List key pairs without their secrets, newest first',
    ...listOf(ApiClient, { ...ofTenant, status: narrowing(word('active', 'deactivated')) }),
    columns: 'client_id name environment products status tenant_id',
    handle: handleList(listApiClients),
  }),
  endpoint({
    operation: 'showApiClient',
    route: 'GET /api-clients/{client_id}',
    summary: 'Show a key pair without its secret',
    ...one,
    answers: { 200: ApiClient },
    handle: ({ host, params }) => clientOf(host, params.client_id),
  }),
  endpoint({
    operation: 'deactivateApiClient',
    route: 'POST /api-clients/{client_id}/deactivate',
    summary: 'Switch a key pair off for good',
    ...one,
    answers: { 200: ApiClient },
    async handle(call) {
      const { client_id } = await clientOf(call.host, call.params.client_id)
      return apiClients.deactivate(call.host.app, client_id, contextOf(call))
    },
  }),
  endpoint({
    operation: 'rotateApiClient',
    route: 'POST /api-clients/{client_id}/rotate',
    summary: 'Give a key pair a new secret, shown once; the old one ends at once',
    ...one,
    idempotent: REPEATED.secret,
    answers: { 200: ApiClientWithSecret },
    errors: { ...one.errors, 409: 'The key pair is switched off' },
    refuses: { 409: ['already_created', 'client_deactivated'] },
    async handle(call) {
      const { client_id } = await clientOf(call.host, call.params.client_id)
      return once(keyed(call), { verb: 'rotate', secretOf: client_id }, async (context) => {
        const rotated = await apiClients.rotate(call.host.app, client_id, context)
        return isRejection(rotated) ? rotated : withSecret(rotated)
      })
    },
  }),
]

function clientOf(host: OperatorHost, id: string) {
  return loaded(host, apiClient, id, 'API client', isClientId)
}

function withSecret({ client, clientSecret }: apiClients.IssuedApiClient) {
  return { ...client, client_secret: clientSecret }
}
