import { type InboundConnection, inboundConnection } from '../../domain/access/inbound-connection.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { secretGone } from '../commands/secret-gone.ts'
import { changed, within } from '../commands/verbs.ts'

/** A connection with its secret, which is shown this once and kept in the vault. */
export interface OpenedConnection {
  readonly connection: InboundConnection
  readonly secret: string
}

/** Opens a connection for signed inbound payroll of a tenant that is known. The secret is in the vault before the event names it. */
export async function open(
  app: Application,
  { tenant_id, environment }: Pick<InboundConnection, 'tenant_id' | 'environment'>,
  context: CommandContext,
): Promise<OpenedConnection | Rejection> {
  const connection_id = createdId(context, inboundConnection)
  const secret = `whin_${app.randomness.hex(32)}`
  const secret_ref = `inbound-connection/${connection_id}/${app.randomness.hex(8)}`
  await app.vault.put(secret_ref, secret)
  const owned = { tenant_id, environment }
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
