import { createHash } from 'node:crypto'
import { type ApiClient, apiClient } from '../../domain/access/api-client.ts'
import { type InboundConnection, inboundConnection } from '../../domain/access/inbound-connection.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import { employer } from '../../domain/parties/employer.ts'
import type { Application } from '../application.ts'
import { type CommandContext, createdId } from '../command-handling/command-context.ts'
import { secretGone } from './already-created.ts'
import { unknownTenant } from './parties.ts'

export interface NewApiClient {
  readonly tenantId: string
  readonly name: string
  readonly environment: Environment
  readonly products: ApiClient['products']
  readonly carrierIds: 'all' | readonly string[]
  readonly employerIds: 'all' | readonly string[]
  readonly requestSigning: ApiClient['request_signing']
}

/** A key pair with its secret, which is shown this once and kept only as a hash. */
export interface IssuedApiClient {
  readonly client: ApiClient
  readonly clientSecret: string
}

/** Issues a key pair for the REST APIs, scoped to products, carriers and employers of one tenant. */
export async function issueApiClient(
  app: Application,
  input: NewApiClient,
  context: CommandContext,
): Promise<IssuedApiClient | Rejection> {
  const unknown =
    (await unknownTenant(app, input.tenantId)) ??
    (await unknownCarrier(app, input)) ??
    (await unknownEmployer(app, input))
  if (unknown) return unknown
  const clientId = `service_${word(input.environment)}_cli_${derivedHex(context.commandId, 'api-client', 32)}`
  const clientSecret = newClientSecret(app, input.environment)
  const outcome = await app.commands.execute(
    apiClient,
    clientId,
    {
      type: 'Issue',
      data: {
        client_id: clientId,
        tenant_id: input.tenantId,
        name: input.name,
        environment: input.environment,
        products: [...input.products],
        carrier_ids: input.carrierIds === 'all' ? 'all' : [...new Set(input.carrierIds)],
        employer_ids: input.employerIds === 'all' ? 'all' : [...new Set(input.employerIds)],
        request_signing: input.requestSigning,
        secret_hash: sha256(clientSecret),
      },
    },
    { ...context, tenantId: input.tenantId, environment: input.environment },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.state!.secret_hash !== sha256(clientSecret)) return secretGone('client', clientId)
  return { client: outcome.state!, clientSecret }
}

/**
 * Gives a client a new secret; the old one is refused from the next request on.
 * @returns a conflict when an earlier attempt under the same command did: its secret is gone.
 */
export async function rotateApiClient(
  app: Pick<Application, 'commands' | 'randomness'>,
  clientId: string,
  context: CommandContext,
): Promise<IssuedApiClient | Rejection> {
  const { state } = await app.commands.load(apiClient, clientId)
  if (!state) return noSuchClient()
  const clientSecret = newClientSecret(app, state.environment)
  const outcome = await app.commands.execute(
    apiClient,
    clientId,
    { type: 'RotateSecret', secretHash: sha256(clientSecret) },
    { ...context, tenantId: state.tenant_id, environment: state.environment },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.state!.secret_hash !== sha256(clientSecret)) return secretGone('client', clientId, 'rotated')
  return { client: outcome.state!, clientSecret }
}

/** Switches a client off for good. Doing it again changes nothing. */
export async function deactivateApiClient(
  app: Application,
  clientId: string,
  context: CommandContext,
): Promise<ApiClient | Rejection> {
  const { state } = await app.commands.load(apiClient, clientId)
  if (!state) return noSuchClient()
  const outcome = await app.commands.execute(
    apiClient,
    clientId,
    { type: 'Deactivate' },
    { ...context, tenantId: state.tenant_id, environment: state.environment },
  )
  return isRejection(outcome) ? outcome : outcome.state!
}

/** A connection with its secret, which is shown this once and kept in the vault. */
export interface OpenedConnection {
  readonly connection: InboundConnection
  readonly secret: string
}

/** Opens a connection for signed inbound payroll. The secret is in the vault before the event names it. */
export async function openInboundConnection(
  app: Application,
  input: { readonly tenantId: string; readonly environment: Environment },
  context: CommandContext,
): Promise<OpenedConnection | Rejection> {
  const unknown = await unknownTenant(app, input.tenantId)
  if (unknown) return unknown
  const connectionId = createdId(context, inboundConnection)
  const secret = `whin_${app.randomness.hex(32)}`
  const secretRef = `inbound-connection/${connectionId}/${app.randomness.hex(8)}`
  await app.vault.put(secretRef, secret)
  const outcome = await app.commands.execute(
    inboundConnection,
    connectionId,
    {
      type: 'Open',
      data: {
        connection_id: connectionId,
        tenant_id: input.tenantId,
        environment: input.environment,
        secret_ref: secretRef,
      },
    },
    { ...context, tenantId: input.tenantId, environment: input.environment },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.state!.secret_ref !== secretRef) return secretGone('connection', connectionId)
  return { connection: outcome.state!, secret }
}

/** Closes a connection for good. Doing it again changes nothing. */
export async function deactivateInboundConnection(
  app: Application,
  connectionId: string,
  context: CommandContext,
): Promise<InboundConnection | Rejection> {
  const { state } = await app.commands.load(inboundConnection, connectionId)
  if (!state)
    return reject('not_found', 'connection_not_found', 'No such inbound connection', 'connection_id')
  const outcome = await app.commands.execute(
    inboundConnection,
    connectionId,
    { type: 'Deactivate' },
    { ...context, tenantId: state.tenant_id, environment: state.environment },
  )
  return isRejection(outcome) ? outcome : outcome.state!
}

async function unknownCarrier(app: Application, input: NewApiClient): Promise<Rejection | null> {
  if (input.carrierIds === 'all') return null
  for (const id of input.carrierIds) {
    const { state } = await app.commands.load(carrier, id)
    if (state?.tenant_id === input.tenantId) continue
    return reject(
      'not_found',
      'carrier_not_found',
      `carrier_ids: the tenant has no carrier ${id}`,
      'carrier_ids',
    )
  }
  return null
}

async function unknownEmployer(app: Application, input: NewApiClient): Promise<Rejection | null> {
  if (input.employerIds === 'all') return null
  for (const id of input.employerIds) {
    const { state } = await app.commands.load(employer, id)
    if (state?.tenant_id === input.tenantId && state.environment === input.environment) continue
    return reject(
      'not_found',
      'employer_not_found',
      `employer_ids: the tenant has no ${input.environment} employer ${id}`,
      'employer_ids',
    )
  }
  return null
}

function noSuchClient(): Rejection {
  return reject('not_found', 'client_not_found', 'No such API client', 'client_id')
}

function newClientSecret(app: Pick<Application, 'randomness'>, environment: Environment): string {
  return `service_${word(environment)}_sec_${app.randomness.hex(32)}`
}

/** How ids and secrets spell their environment. */
function word(environment: Environment): 'live' | 'test' {
  return environment === 'live' ? 'live' : 'test'
}

function derivedHex(commandId: string, what: string, digits: number): string {
  return sha256(`${commandId}/${what}`).slice(0, digits)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
