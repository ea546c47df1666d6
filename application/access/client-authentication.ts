import { createHash, timingSafeEqual } from 'node:crypto'
import { type ApiClient, apiClient } from '../../domain/access/api-client.ts'
import type { Application } from '../commands/application.ts'

/** Why a partner's key pair was refused. */
export type ClientRefusal = 'invalid_client_id' | 'invalid_client_secret'

const CLIENT_ID = /^service_(?:live|test)_cli_[0-9a-f]{32}$/

/** True for a client id of the issued form; anything else names no client and is not looked up. */
export function isClientId(value: string): boolean {
  return CLIENT_ID.test(value)
}

/**
 * The active API client that a key pair belongs to, from the log and never from a read model, so
 * that a deactivated key or a rotated secret is refused by the very next request.
 */
export async function authenticateClient(
  app: Pick<Application, 'commands'>,
  clientId: string,
  clientSecret: string,
): Promise<ApiClient | ClientRefusal> {
  if (!isClientId(clientId)) return 'invalid_client_id'
  const { state: client } = await app.commands.load(apiClient, clientId)
  if (client?.status !== 'active') return 'invalid_client_id'
  const presented = createHash('sha256').update(clientSecret).digest()
  const known = Buffer.from(client.secret_hash, 'hex')
  return presented.length === known.length && timingSafeEqual(presented, known)
    ? client
    : 'invalid_client_secret'
}

/** Whether a client may call at all. */
export async function isClientActive(
  { commands }: Pick<Application, 'commands'>,
  clientId: string,
): Promise<boolean> {
  return (await commands.load(apiClient, clientId)).state?.status === 'active'
}
