import { z } from 'zod'
import * as tenants from '../../application/parties/tenants.ts'
import { tenant } from '../../domain/parties/tenant.ts'
import { create, created, REPEATED } from '../endpoints/creations.ts'
import { id, idOf, text } from '../endpoints/fields.ts'
import { endpoint, keyed, loaded, operator } from './api.ts'

const Tenant = z.object({ tenant_id: id(), name: z.string() }).meta({ id: 'Tenant' })

export const tenantEndpoints = [
  endpoint({
    operation: 'registerTenant',
    method: 'POST',
    path: '/tenants',
    summary: 'Register a tenant: one partner account',
    access: operator,
    body: z.object({ name: text() }),
    idempotent: REPEATED.answered,
    answers: created(Tenant),
    command: { name: 'tenants create' },
    handle: (call) =>
      create(keyed(call), 'POST /tenants', {
        create: (context) => tenants.register(call.host.app, call.body, context),
        idOf: ({ tenant_id }) => tenant_id,
        show: (one) => one,
        repeated: tenant,
      }),
  }),
  endpoint({
    operation: 'showTenant',
    method: 'GET',
    path: '/tenants/{tenant_id}',
    summary: 'Show a tenant',
    access: operator,
    params: z.object({ tenant_id: idOf('tenant') }),
    answers: { 200: Tenant },
    errors: { 404: 'There is no such tenant' },
    command: { name: 'tenants show' },
    handle: ({ host, params }) => loaded(host, tenant, params.tenant_id, 'tenant'),
  }),
]
