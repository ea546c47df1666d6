import { z } from 'zod'
import * as carriers from '../../../application/parties/carriers.ts'
import { listCarriers } from '../../../application/parties/list-carriers.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { create, created } from '../../endpoints/creations.ts'
import { id, ofOne, optional, text, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { endpoint, keyed, loaded } from '../host/api.ts'
import { handleList } from '../host/lists.ts'

const Carrier = z
  .object({
    carrier_id: id(),
    tenant_id: id(),
    name: z.string(),
    settlement_type: word('fbo', 'direct').nullable(),
  })
  .meta({ id: 'Carrier' })

export const carrierEndpoints = [
  endpoint({
    operation: 'registerCarrier',
    route: 'POST /carriers',
    summary: 'Register a carrier: an insurer of a tenant',
    body: z.object({
      tenant_id: id(),
      name: text(),
      settlement_type: optional(word('fbo', 'direct')).describe(
        'How collected premium reaches the carrier: by matched credits (`fbo`) or by reports of the processor (`direct`)',
      ),
    }),
    ...created(Carrier),
    errors: { 404: 'There is no such tenant' },
    refuses: { 404: ['tenant_not_found'] },
    handle: (call) =>
      create(keyed(call), 'POST /carriers', {
        create: (context) => carriers.register(call.host.app, call.body, context),
        show: (one) => one,
        repeated: carrier,
      }),
  }),
  endpoint({
    operation: 'listCarriers',
    route: 'GET /carriers',
    summary: 'List carriers, newest first',
    ...listOf(Carrier, { tenant_id: narrowing(id()) }),
    columns: 'carrier_id name settlement:settlement_type tenant_id',
    handle: handleList(listCarriers),
  }),
  endpoint({
    operation: 'showCarrier',
    route: 'GET /carriers/{carrier_id}',
    summary: 'Show a carrier',
    ...ofOne('carrier_id', 'carrier'),
    answers: { 200: Carrier },
    handle: ({ host, params }) => loaded(host, carrier, params.carrier_id, 'carrier'),
  }),
]
