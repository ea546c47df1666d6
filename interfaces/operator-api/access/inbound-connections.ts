import { z } from 'zod'
import * as inboundConnections from '../../../application/access/inbound-connections.ts'
import { listInboundConnections } from '../../../application/access/list-directory.ts'
import { unknownTenant } from '../../../application/access/tenants.ts'
import { inboundConnection } from '../../../domain/access/inbound-connection.ts'
import { create, REPEATED } from '../../endpoints/creations.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { contextOf, endpoint, keyed, loaded, type OperatorHost } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { environment, owner } from '../host/values.ts'

const InboundConnection = z
  .object({
    connection_id: id(),
    ...owner,
    status: z.enum(['active', 'deactivated']),
  })
  .meta({ id: 'InboundConnection' })
const InboundConnectionWithSecret = InboundConnection.extend({
  secret: z.string().describe('Signs what the partner pushes; shown this once'),
}).meta({ id: 'InboundConnectionWithSecret' })

const one = ofOne('connection_id', 'inbound connection')

export const inboundConnectionEndpoints = [
  endpoint({
    operation: 'openInboundConnection',
    route: 'POST /inbound-connections',
    summary: 'Open a connection for signed payroll of a partner; the secret is shown once',
    body: z.object({ tenant_id: id(), environment: environment() }),
    idempotent: REPEATED.secret,
    answers: { 201: InboundConnectionWithSecret },
    errors: { 404: 'There is no such tenant' },
    refuses: { 404: ['tenant_not_found'], 409: ['already_created'] },
    handle(call) {
      const { host, body } = call
      return create(keyed(call), 'POST /inbound-connections', {
        prepare: () => unknownTenant(host.app, body.tenant_id),
        create: (context) => inboundConnections.open(host.app, body, context),
        idOf: ({ connection }) => connection.connection_id,
        show: ({ connection, secret }) => ({ ...connection, secret }),
        repeated: null,
      })
    },
  }),
  endpoint({
    operation: 'listInboundConnections',
    route: 'GET /inbound-connections',
    summary: 'List inbound connections without their secrets, newest first',
    ...listOf(InboundConnection, { ...scope, status: narrowing(word('active', 'deactivated')) }),
    columns: 'connection_id environment status tenant_id',
    handle: handleList(listInboundConnections),
  }),
  endpoint({
    operation: 'showInboundConnection',
    route: 'GET /inbound-connections/{connection_id}',
    summary: 'Show an inbound connection without its secret',
    ...one,
    answers: { 200: InboundConnection },
    handle: ({ host, params }) => connectionOf(host, params.connection_id),
  }),
  endpoint({
    operation: 'deactivateInboundConnection',
    route: 'POST /inbound-connections/{connection_id}/deactivate',
    summary: 'Close an inbound connection for good',
    ...one,
    answers: { 200: InboundConnection },
    async handle(call) {
      const { connection_id } = await connectionOf(call.host, call.params.connection_id)
      return inboundConnections.deactivate(call.host.app, connection_id, contextOf(call))
    },
  }),
]

function connectionOf(host: OperatorHost, id: string) {
  return loaded(host, inboundConnection, id, 'inbound connection')
}
