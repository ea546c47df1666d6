import * as apiClients from '../../application/access/api-clients.ts'
import { isClientId } from '../../application/access/client-authentication.ts'
import * as inboundConnections from '../../application/access/inbound-connections.ts'
import { type ApiClient, apiClient } from '../../domain/access/api-client.ts'
import { type InboundConnection, inboundConnection } from '../../domain/access/inbound-connection.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import type { Route } from '../http/server.ts'
import type { Fields } from './fields.ts'
import { accepted, creation, handOut, notFound, type OperatorHost, operation } from './operations.ts'
import { ENVIRONMENTS } from './party-routes.ts'

const PRODUCTS = ['payroll', 'payments', 'all'] as const

/** Credentials of partners: API clients and inbound connections. Secrets are shown once. */
export function accessRoutes(host: OperatorHost): readonly Route[] {
  const { app } = host
  return [
    creation(host, {
      path: '/api-clients',
      parse: (fields) => ({
        tenantId: fields.id('tenant_id'),
        name: fields.text('name'),
        environment: fields.word('environment', ENVIRONMENTS, 'live'),
        products: productsOf(fields),
        carrierIds: fields.scope('carrier_ids'),
        employerIds: fields.scope('employer_ids'),
        requestSigning: fields.word('request_signing', ['off', 'required'], 'off'),
      }),
      refuse: (input) => apiClients.refuseIssue(app, input),
      create: (input, context) => apiClients.issue(app, input, context),
      idOf: ({ client }) => client.client_id,
      show: ({ client, clientSecret }) => ({ ...withoutHash(client), client_secret: clientSecret }),
      repeated: { by: null },
    }),
    operation(host, 'GET', '/api-clients/:client_id', async (call) => ({
      data: withoutHash(await clientOf(call.parameter('client_id'))),
    })),
    operation(host, 'POST', '/api-clients/:client_id/deactivate', async (call) => {
      const { client_id } = await clientOf(call.parameter('client_id'))
      return { data: withoutHash(accepted(await apiClients.deactivate(app, client_id, call.context()))) }
    }),
    operation(host, 'POST', '/api-clients/:client_id/rotate', async (call) => {
      const { client_id } = await clientOf(call.parameter('client_id'))
      return handOut(host, call, { verb: 'rotate', id: client_id }, async (context) => {
        const rotated = await apiClients.rotate(app, client_id, context)
        if (isRejection(rotated)) return rotated
        return { ...withoutHash(rotated.client), client_secret: rotated.clientSecret }
      })
    }),

    creation(host, {
      path: '/inbound-connections',
      parse: (fields) => ({
        tenantId: fields.id('tenant_id'),
        environment: fields.word('environment', ENVIRONMENTS, 'live'),
      }),
      refuse: (input) => inboundConnections.refuseOpening(app, input),
      create: (input, context) => inboundConnections.open(app, input, context),
      idOf: ({ connection }) => connection.connection_id,
      show: ({ connection, secret }) => ({ ...withoutRef(connection), secret }),
      repeated: { by: null },
    }),
    operation(host, 'GET', '/inbound-connections/:connection_id', async (call) => ({
      data: withoutRef(await connectionOf(call.parameter('connection_id'))),
    })),
    operation(host, 'POST', '/inbound-connections/:connection_id/deactivate', async (call) => {
      const { connection_id } = await connectionOf(call.parameter('connection_id'))
      const changed = await inboundConnections.deactivate(app, connection_id, call.context())
      return { data: withoutRef(accepted(changed)) }
    }),
  ]

  async function clientOf(id: string): Promise<ApiClient> {
    const found = isClientId(id) ? (await app.commands.load(apiClient, id)).state : null
    if (!found) throw notFound('There is no such API client')
    return found
  }

  async function connectionOf(id: string): Promise<InboundConnection> {
    const found = isId(id) ? (await app.commands.load(inboundConnection, id)).state : null
    if (!found) throw notFound('There is no such inbound connection')
    return found
  }
}

function productsOf(fields: Fields): ApiClient['products'] {
  if (fields.raw('products') === null || fields.raw('products') === 'all') return ['all']
  const products = fields.texts('products').map((value, index) => {
    const product = PRODUCTS.find((one) => one === value)
    return product ?? fields.fail(`products[${index}]`, `must be one of ${PRODUCTS.join(', ')}`)
  })
  return products.length > 0 ? products : fields.fail('products', 'must not be empty')
}

function withoutHash({ secret_hash: _hash, ...shown }: ApiClient): Omit<ApiClient, 'secret_hash'> {
  return shown
}

function withoutRef({
  secret_ref: _ref,
  ...shown
}: InboundConnection): Omit<InboundConnection, 'secret_ref'> {
  return shown
}
