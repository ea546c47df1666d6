import { z } from 'zod'
import * as inboundConnections from '../../application/access/inbound-connections.ts'
import { inboundConnection } from '../../domain/access/inbound-connection.ts'
import { create, REPEATED } from '../endpoints/creations.ts'
import { id, idOf } from '../endpoints/fields.ts'
import { contextOf, endpoint, keyed, loaded, type OperatorHost, operator } from './api.ts'
import { environment } from './values.ts'

const InboundConnection = z
  .object({
    connection_id: id(),
    tenant_id: id(),
    environment: z.enum(['live', 'sandbox']),
    status: z.enum(['active', 'deactivated']),
  })
  .meta({ id: 'InboundConnection' })
const InboundConnectionWithSecret = InboundConnection.extend({
  secret: z.string().describe('Signs what the partner pushes; shown this once'),
}).meta({ id: 'InboundConnectionWithSecret' })

const params = z.object({ connection_id: idOf('inbound connection') })
const NONE = { 404: 'There is no such inbound connection' } as const

export const inboundConnectionEndpoints = [
  endpoint({
    operation: 'openInboundConnection',
    method: 'POST',
    path: '/inbound-connections',
    summary: 'Open a connection for signed payroll of a partner; the secret is shown once',
    access: operator,
    body: z.object({ tenant_id: id(), environment: environment() }),
    idempotent: REPEATED.secret,
    answers: { 201: InboundConnectionWithSecret },
    errors: { 404: 'There is no such tenant' },
    command: { name: 'inbound-connections create' },
    handle(call) {
      const { tenant_id: tenantId, environment } = call.body
      return create(keyed(call), 'POST /inbound-connections', {
        refuse: () => inboundConnections.refuseOpening(call.host.app, { tenantId }),
        create: (context) => inboundConnections.open(call.host.app, { tenantId, environment }, context),
        idOf: ({ connection }) => connection.connection_id,
        show: ({ connection, secret }) => ({ ...connection, secret }),
        repeated: null,
      })
    },
  }),
  endpoint({
    operation: 'showInboundConnection',
    method: 'GET',
    path: '/inbound-connections/{connection_id}',
    summary: 'Show an inbound connection without its secret',
    access: operator,
    params,
    answers: { 200: InboundConnection },
    errors: NONE,
    command: { name: 'inbound-connections show' },
    handle: ({ host, params }) => connectionOf(host, params.connection_id),
  }),
  endpoint({
    operation: 'deactivateInboundConnection',
    method: 'POST',
    path: '/inbound-connections/{connection_id}/deactivate',
    summary: 'Close an inbound connection for good',
    access: operator,
    params,
    answers: { 200: InboundConnection },
    errors: NONE,
    command: { name: 'inbound-connections deactivate' },
    async handle(call) {
      const { connection_id } = await connectionOf(call.host, call.params.connection_id)
      return inboundConnections.deactivate(call.host.app, connection_id, contextOf(call))
    },
  }),
]

function connectionOf(host: OperatorHost, id: string) {
  return loaded(host, inboundConnection, id, 'inbound connection')
}
