import type { Rejection } from '../../domain/kernel/rejection.ts'
import { type Carrier, carrier } from '../../domain/parties/carrier.ts'
import { unknownTenant } from '../access/tenants.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { readable, within } from '../commands/verbs.ts'

/** Registers a carrier of a tenant. */
export async function register(
  app: Application,
  { tenant_id, name, settlement_type }: Omit<Carrier, 'carrier_id'>,
  context: CommandContext,
): Promise<Carrier | Rejection> {
  const unknown = await unknownTenant(app, tenant_id)
  if (unknown) return unknown
  const carrier_id = createdId(context, carrier)
  const command = { type: 'Register', data: { carrier_id, tenant_id, name, settlement_type } } as const
  const outcome = await app.commands.create(carrier, carrier_id, command, within(context, { tenant_id }))
  return readable(app, carrier, outcome)
}
