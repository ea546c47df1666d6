import { type Tenant, tenant } from '../../domain/access/tenant.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Reads } from '../commands/command-handler.ts'
import { readable, within } from '../commands/verbs.ts'

/** Registers a tenant. */
export async function register(
  app: Application,
  { name }: { readonly name: string },
  context: CommandContext,
): Promise<Tenant | Rejection> {
  const data = { tenant_id: createdId(context, tenant), name }
  const { tenant_id } = data
  const command = { type: 'Register', data } as const
  return readable(app, tenant, await app.commands.create(tenant, tenant_id, command, within(context, data)))
}

/** Rejects a tenant id that names nothing. */
export async function unknownTenant({ commands }: Reads, tenantId: string): Promise<Rejection | null> {
  if ((await commands.load(tenant, tenantId)).state) return null
  return reject('not_found', 'tenant_not_found', 'tenant_id: no such tenant', 'tenant_id')
}
