import type { Operation } from '../../interfaces/endpoints/openapi.ts'
import type { JsonSchema } from '../../interfaces/endpoints/schemas.ts'
import { serviceTime, sign } from './core.ts'
import type { DescribedApi } from './described-hosts.ts'
import { descriptionOf, faultsIn, validatorOf } from './descriptions.ts'
import { newPartner, type Partner } from './partners.ts'
import { enableCheckout } from './payment-sessions.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from './seed.ts'
import type { ServiceAddresses } from './service.ts'

/** One request, before it is signed. */
export interface Call {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly key: string | null
  readonly body: unknown
}

/** An operation of an API, and where its description has it. */
export interface Described {
  readonly api: DescribedApi
  readonly method: string
  readonly path: string
  readonly operation: Operation
  /** JSON pointer. */
  readonly pointer: string
}

/** All operations of an API, by method and path. */
export function operationsOf(api: DescribedApi): readonly (readonly [string, Described])[] {
  return Object.entries(descriptionOf(api).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([verb, operation]) => {
      const method = verb.toUpperCase()
      const pointer = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${verb}`
      return [`${method} ${path}`, { api, method, path, operation, pointer }] as const
    }),
  )
}

/** Whether an operation is done once for an `Idempotency-Key`. */
export function takesKey({ parameters }: Operation): boolean {
  return parameters.some((one) => '$ref' in one && one.$ref.endsWith('/Idempotency-Key'))
}

/** What an operation takes as its body. */
export function bodySchemaOf({ requestBody }: Operation): JsonSchema | undefined {
  return requestBody?.content['application/json']?.schema
}

/** What of a request its description forbids; null: nothing. */
export function faultOf({ api, operation, pointer }: Described, call: Call): string | null {
  if (call.key !== null && !/^[!-~]{1,255}$/.test(call.key)) return 'no Idempotency-Key'
  for (const [index, parameter] of operation.parameters.entries()) {
    if (!('name' in parameter) || parameter.in !== 'query') continue
    const text = call.query[parameter.name]
    if (text === undefined) continue
    const validate = validatorOf(api, `${pointer}/parameters/${index}/schema`)
    if (!validate(readAs(text, parameter.schema))) return `${parameter.name}: ${faultsIn(validate)}`
  }
  if (!bodySchemaOf(operation)) return null
  const validate = validatorOf(api, `${pointer}/requestBody/content/application~1json/schema`)
  return validate(call.body) ? null : faultsIn(validate)
}

/** The value that a text in a query stands for. */
function readAs(text: string, { type }: JsonSchema): unknown {
  if (type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** Those who may ask for everything. */
export interface Callers {
  readonly service: ServiceAddresses
  /** Has one of everything, for real money. */
  readonly tenant: SeededTenant
  readonly connection: { readonly connection_id: string; readonly secret: string }
  /** Tries things out: only the sandbox has everything. */
  readonly payer: SeededTenant
  readonly partner: Partner
  /** Sells by sessions, for which there is no sandbox. */
  readonly sold: SeededTenant
  readonly seller: Partner
}

/** Callers of all APIs of a service. */
export async function newCallers(service: ServiceAddresses): Promise<Callers> {
  const tenant = await seedTenant(service)
  const asked = { tenant_id: tenant.tenantId, environment: 'live' }
  const connection = await operate(service, 'POST', '/inbound-connections', asked)
  // operators switch off the client that they know of
  const payer = await seedTenant(service, { environment: 'sandbox' })
  const inSandbox = { environment: 'sandbox', carrier_ids: [payer.carrierId] }
  const partner = await newPartner(service, payer.tenantId, inSandbox)
  const sold = await seedTenant(service)
  await enableCheckout(service, sold)
  const seller = await newPartner(service, sold.tenantId, { carrier_ids: [sold.carrierId] })
  return { service, tenant, connection, payer, partner, sold, seller }
}

/** Sends a request with what its caller shows of himself. */
export async function sendTo(
  callers: Callers,
  { api, method }: Pick<Described, 'api' | 'method'>,
  call: Call,
): Promise<Answer> {
  const { coreUrl, opsUrl, paymentsUrl } = callers.service
  const host = { core: coreUrl, operator: opsUrl, payments: paymentsUrl }[api]
  const query = new URLSearchParams(call.query)
  const body = call.body === undefined ? undefined : JSON.stringify(call.body)
  return send(`${host}${call.path}${query.size > 0 ? `?${query}` : ''}`, {
    method,
    ...(body === undefined ? {} : { body }),
    headers: {
      ...(await credentialsFor(callers, api, call.path, body ?? '')),
      ...(call.key === null ? {} : { 'Idempotency-Key': call.key }),
    },
  })
}

async function credentialsFor(
  { service, tenant, connection, partner, seller }: Callers,
  api: DescribedApi,
  path: string,
  body: string,
): Promise<Record<string, string>> {
  if (api === 'operator') return { Authorization: `Bearer ${service.operatorToken}` }
  if (api === 'payments') {
    const isFinanced = path.includes('/financing') || body.includes('"PREMIUM_FINANCE"')
    const isSold = path.startsWith('/api/v1/payment-sessions') && !isFinanced
    const { clientId, clientSecret } = isSold ? seller : partner
    return { 'X-Client-ID': clientId, 'X-Client-Secret': clientSecret }
  }
  if (!path.includes('/webhook/inbound/')) return tenant.clientHeaders
  const now = String(await serviceTime(service))
  return { 'X-Webhook-Timestamp': now, 'X-Webhook-Signature': sign(connection.secret, now, body) }
}
