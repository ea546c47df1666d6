import { z } from 'zod'
import { listTenants } from '../../../application/access/list-directory.ts'
import * as tenants from '../../../application/access/tenants.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import { create, created } from '../../endpoints/creations.ts'
import { id, ofOne, text } from '../../endpoints/fields.ts'
import { listed, listOf } from '../../endpoints/lists.ts'
import { endpoint, keyed, loaded } from '../host/api.ts'

const Tenant = z.object({ tenant_id: id(), name: z.string() }).meta({ id: 'Tenant' })

export const tenantEndpoints = [
  endpoint({
    operation: 'registerTenant',
    route: 'POST /tenants',
    summary: 'Register a tenant: one partner account',
    body: z.object({ name: text() }),
    ...created(Tenant),
    handle: (call) =>
      create(keyed(call), 'POST /tenants', {
        create: (context) => tenants.register(call.host.app, call.body, context),
        show: (one) => one,
        repeated: tenant,
      }),
  }),
  endpoint({
    operation: 'listTenants',
    route: 'GET /tenants',
    summary: 'List tenants, newest first',
    ...listOf(Tenant),
    columns: 'tenant_id name',
    handle: ({ host: { app }, query }) => listed(query, (wanted) => listTenants(app, {}, wanted)),
  }),
  endpoint({
    operation: 'showTenant',
    route: 'GET /tenants/{tenant_id}',
    summary: 'Show a tenant',
    ...ofOne('tenant_id', 'tenant'),
    answers: { 200: Tenant },
    handle: ({ host, params }) => loaded(host, tenant, params.tenant_id, 'tenant'),
  }),
]
