import { createHash } from 'node:crypto'
import { type ApiClient, apiClient } from '../../domain/access/api-client.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import { employer } from '../../domain/parties/employer.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { secretGone } from '../commands/secret-gone.ts'
import { changed } from '../commands/verbs.ts'
import { unknownTenant } from './tenants.ts'

export type NewApiClient = Pick<
  ApiClient,
  'tenant_id' | 'name' | 'environment' | 'products' | 'carrier_ids' | 'employer_ids' | 'request_signing'
>

/** A key pair with its secret, which is shown this once and kept only as a hash. */
export interface IssuedApiClient {
  readonly client: ApiClient
  readonly clientSecret: string
}

/** Why a key pair is not issued, null when it may be: its tenant, carriers and employers must be known. */
export async function refuseIssue(app: Application, input: NewApiClient): Promise<Rejection | null> {
  return (await unknownTenant(app, input.tenant_id)) ?? (await outOfScope(app, input))
}

/** Issues a key pair for the REST APIs, scoped to products, carriers and employers of one tenant, which are known. */
export async function issue(
  app: Application,
  input: NewApiClient,
  context: CommandContext,
): Promise<IssuedApiClient | Rejection> {
  const clientId = `service_${word(input.environment)}_cli_${sha256(`${context.commandId}/${apiClient.category}`).slice(0, 32)}`
  const clientSecret = newClientSecret(app, input.environment)
  const outcome = await app.commands.execute(
    apiClient,
    clientId,
    {
      type: 'Issue',
      data: {
        ...input,
        client_id: clientId,
        carrier_ids: input.carrier_ids === 'all' ? 'all' : [...new Set(input.carrier_ids)],
        employer_ids: input.employer_ids === 'all' ? 'all' : [...new Set(input.employer_ids)],
        secret_hash: sha256(clientSecret),
      },
    },
    { ...context, tenantId: input.tenant_id, environment: input.environment },
  )
  if (isRejection(outcome)) return outcome
  if (outcome.state!.secret_hash !== sha256(clientSecret)) return secretGone('client', clientId)
  return { client: outcome.state!, clientSecret }
}

/**
 * Gives a client a new secret; the old one is refused from the next request on.
 * @returns a conflict when an earlier attempt under the same command did: its secret is gone.
 */
export async function rotate(
  app: Pick<Application, 'commands' | 'readModels' | 'randomness'>,
  clientId: string,
  context: CommandContext,
): Promise<IssuedApiClient | Rejection> {
  const { state } = await app.commands.load(apiClient, clientId)
  if (!state) return reject('not_found', 'client_not_found', 'No such API client', 'client_id')
  const clientSecret = newClientSecret(app, state.environment)
  const secretHash = sha256(clientSecret)
  const client = await changed(app, apiClient, clientId, { type: 'RotateSecret', secretHash }, context)
  if (isRejection(client)) return client
  if (client.secret_hash !== secretHash) return secretGone('client', clientId, 'rotated')
  return { client, clientSecret }
}

/** Switches a client off for good. Doing it again changes nothing. */
export function deactivate(
  app: Application,
  clientId: string,
  context: CommandContext,
): Promise<ApiClient | Rejection> {
  return changed(app, apiClient, clientId, { type: 'Deactivate' }, context)
}

/** Rejects a scope of which one id names nothing of the tenant. */
async function outOfScope(app: Application, input: NewApiClient): Promise<Rejection | null> {
  const { tenant_id: tenantId, environment, carrier_ids: carrierIds, employer_ids: employerIds } = input
  const [carriers, employers] = await Promise.all([
    app.commands.loadAll(carrier, listed(carrierIds)),
    app.commands.loadAll(employer, listed(employerIds)),
  ])
  const noCarrier = carriers.findIndex(({ state }) => state?.tenant_id !== tenantId)
  if (noCarrier >= 0) {
    const why = `carrier_ids: the tenant has no carrier ${carrierIds[noCarrier]}`
    return reject('not_found', 'carrier_not_found', why, 'carrier_ids')
  }
  const noEmployer = employers.findIndex(
    ({ state }) => state?.tenant_id !== tenantId || state.environment !== environment,
  )
  if (noEmployer < 0) return null
  const why = `employer_ids: the tenant has no ${environment} employer ${employerIds[noEmployer]}`
  return reject('not_found', 'employer_not_found', why, 'employer_ids')
}

function listed(ids: 'all' | readonly string[]): readonly string[] {
  return ids === 'all' ? [] : ids
}

function newClientSecret(app: Pick<Application, 'randomness'>, environment: Environment): string {
  return `service_${word(environment)}_sec_${app.randomness.hex(32)}`
}

/** How ids and secrets spell their environment. */
function word(environment: Environment): 'live' | 'test' {
  return environment === 'live' ? 'live' : 'test'
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
