import { type InboundConnection, inboundConnection } from '../../domain/access/inbound-connection.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import { type CommandContext, createdId } from '../command-handling/command-context.ts'
import { changed, within } from '../command-handling/verbs.ts'
import { secretGone } from '../idempotency/secret-gone.ts'
import { unknownTenant } from '../parties/tenants.ts'

/** A connection with its secret, which is shown this once and kept in the vault. */
export interface OpenedConnection {
  readonly connection: InboundConnection
  readonly secret: string
}

/** Why a connection would not be opened, null when it would: its tenant must be known. */
export function refuseOpening(
  app: Application,
  { tenantId }: { readonly tenantId: string },
): Promise<Rejection | null> {
  return unknownTenant(app, tenantId)
}

/** Opens a connection for signed inbound payroll. The secret is in the vault before the event names it. */
export async function open(
  app: Application,
  input: { readonly tenantId: string; readonly environment: Environment },
  context: CommandContext,
): Promise<OpenedConnection | Rejection> {
  const refusal = await refuseOpening(app, input)
  if (refusal) return refusal
  const connection_id = createdId(context, inboundConnection)
  const secret = `whin_${app.randomness.hex(32)}`
  const secret_ref = `inbound-connection/${connection_id}/${app.randomness.hex(8)}`
  await app.vault.put(secret_ref, secret)
  const owned = { tenant_id: input.tenantId, environment: input.environment }
  const outcome = await app.commands.execute(
    inboundConnection,
    connection_id,
    { type: 'Open', data: { connection_id, ...owned, secret_ref } },
    within(context, owned),
  )
  if (isRejection(outcome)) return outcome
  if (outcome.state!.secret_ref !== secret_ref) return secretGone('connection', connection_id)
  return { connection: outcome.state!, secret }
}

/** Closes a connection for good. Doing it again changes nothing. */
export function deactivate(
  app: Application,
  connectionId: string,
  context: CommandContext,
): Promise<InboundConnection | Rejection> {
  return changed(app, inboundConnection, connectionId, { type: 'Deactivate' }, context)
}
