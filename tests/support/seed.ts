import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expectDescribed } from './descriptions.ts'

/** The addresses and the token that seeding needs of a running service. */
export interface SeedableService {
  readonly mcpUrl: string
  readonly coreUrl: string
  readonly opsUrl: string
  readonly operatorToken: string
  /** What its processes wrote so far, by line; shown when a call fails for a reason of the service's own. */
  readonly output?: readonly string[] | (() => Promise<readonly string[]>)
}

/** What a seeded tenant is made of. Every part can be overridden, field by field. */
interface SeedOptions {
  readonly environment?: 'live' | 'sandbox'
  readonly tenant?: Record<string, unknown>
  readonly carrier?: Record<string, unknown>
  readonly payrollCompany?: Record<string, unknown>
  readonly employer?: Record<string, unknown>
  readonly policy?: Record<string, unknown>
  readonly apiClient?: Record<string, unknown>
  readonly agent?: Record<string, unknown>
}

/** A tenant with one of everything that payroll reporting needs. */
export interface SeededTenant {
  readonly tenantId: string
  readonly carrierId: string
  readonly carrierName: string
  readonly payrollCompanyId: string
  readonly employerId: string
  readonly employerName: string
  /** As it was sent, `XX-XXXXXXX` unless overridden. */
  readonly fein: string
  readonly policyId: string
  readonly policyNumber: string
  readonly clientId: string
  readonly clientSecret: string
  /** Headers of core API requests. */
  readonly clientHeaders: Record<string, string>
  readonly credentialId: string
  readonly apiKey: string
}

/** An HTTP answer with its parsed body. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // tests read the members that they check
  readonly body: ReturnType<typeof JSON.parse>
}

/**
 * Sends a request; objects are sent as JSON, strings and buffers as they are.
 * @throws Error for an answer that is not as the host's description says.
 */
export async function send(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = options
  const raw = typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(url, {
    method,
    headers: body === undefined ? headers : { 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const answer = { status: response.status, headers: response.headers, text, body: parsed(text) }
  expectDescribed(method, url, answer)
  return answer
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Asks the operator API as an operator, whatever it answers. */
export function askOperator(
  service: Pick<SeedableService, 'opsUrl' | 'operatorToken'>,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return send(`${service.opsUrl}/ops/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${service.operatorToken}`, ...headers },
    body,
  })
}

/** Calls the operator API and returns `data`; a read comes back when it is told to. @throws Error when it refuses. */
export async function operate(
  service: SeedableService,
  method: string,
  path: string,
  // a busy machine may take longer than the service waits unless it is told
  body: unknown = path === '/drain' ? { timeout_seconds: 150 } : undefined,
  headers: Record<string, string> = {},
): Promise<ReturnType<typeof JSON.parse>> {
  const ask = () => askOperator(service, method, path, body, headers)
  const isRepeatable = method === 'GET' || KEY in headers
  const answer = await (isRepeatable ? untilServed(ask) : ask())
  if (answer.body?.ok === true) return answer.body.data
  const said = answer.status >= 500 ? await lastWarnings(service) : []
  throw new Error([`${method} ${path}: ${answer.status} ${answer.text}`, ...said].join('\n'))
}

const KEY = 'Idempotency-Key'
/** How long what a busy service does not serve is asked for again, in milliseconds. */
const PATIENCE_MS = 240_000

/** Asks again when it is told to, with `Retry-After`; of what can be repeated. */
export async function untilServed(ask: () => Promise<Answer>): Promise<Answer> {
  for (const deadline = performance.now() + PATIENCE_MS; ; ) {
    const answer = await ask()
    const seconds = answer.headers.get('retry-after')
    if (answer.status !== 503 || seconds === null || performance.now() > deadline) return answer
    await delay(Number(seconds) * 1000)
  }
}

/** Creates something through the operator API, once however often that is asked for. */
function create(
  service: SeedableService,
  path: string,
  body: unknown,
): Promise<ReturnType<typeof JSON.parse>> {
  return operate(service, 'POST', path, body, { [KEY]: randomUUID() })
}

const WARNING = /"level":"(warn|error)"/
async function lastWarnings({ output = [] }: SeedableService): Promise<readonly string[]> {
  const lines = typeof output === 'function' ? await output() : output
  return lines.filter((line) => WARNING.test(line)).slice(-10)
}

/** A FEIN that no other seeded employer has. */
export function newFein(): string {
  return `${randomInt(10, 99)}-${String(randomInt(0, 10_000_000)).padStart(7, '0')}`
}

/** A policy number that no other seeded policy has. */
export function newPolicyNumber(): string {
  return `WC-${randomBytes(6).toString('hex').toUpperCase()}`
}

/** Terms of a policy: two class codes, two states, rates for all four, two fees, a long term. */
export function policyDefaults(): Record<string, unknown> {
  const rates = ['8810', '5403'].flatMap((class_code) =>
    ['CA', 'NV'].map((state) => ({ class_code, state, rate_per_100: class_code === '8810' ? '2.50' : '10' })),
  )
  return {
    policy_number: newPolicyNumber(),
    status: 'active',
    effective_date: '2020-01-01',
    expiration_date: '2099-12-31',
    class_codes: ['8810', '5403'],
    states: ['CA', 'NV'],
    locations: [{ id: 'LOC-1', state: 'CA' }],
    rates,
    payroll_frequency: 'WEEKLY',
    fees: [
      { label: 'Expense constant', amount_cents: 16_000 },
      { label: 'Terrorism', amount_cents: 2_500 },
    ],
    billing_type: 'PAY_AS_YOU_GO',
    overtime_exclusion: false,
  }
}

/** Creates a tenant, carrier, payroll company, employer, policy, API client and agent credential. */
export async function seedTenant(service: SeedableService, options: SeedOptions = {}): Promise<SeededTenant> {
  const environment = options.environment ?? 'live'
  const { tenant_id: tenantId } = await create(service, '/tenants', {
    name: 'Seeded Tenant',
    ...options.tenant,
  })
  const carrierName = String(options.carrier?.name ?? 'Seeded Mutual')
  const [{ carrier_id: carrierId }, { payroll_company_id: payrollCompanyId }, client] = await Promise.all([
    create(service, '/carriers', {
      tenant_id: tenantId,
      name: carrierName,
      settlement_type: null,
      ...options.carrier,
    }),
    create(service, '/payroll-companies', {
      tenant_id: tenantId,
      name: 'Seeded Payroll',
      ...options.payrollCompany,
    }),
    create(service, '/api-clients', {
      tenant_id: tenantId,
      name: 'Seeded Client',
      environment,
      products: ['all'],
      ...options.apiClient,
    }),
  ])
  const { client_id: clientId, client_secret: clientSecret } = client
  const [employer, agent] = await Promise.all([
    seedEmployer(service, { tenantId, payrollCompanyId, environment }, options.employer),
    seedAgent(service, { entity_type: 'payroll_company', entity_id: payrollCompanyId, ...options.agent }),
  ])
  const policy = await seedPolicy(service, { employerId: employer.employerId, carrierId }, options.policy)
  return {
    tenantId,
    carrierId,
    carrierName,
    payrollCompanyId,
    ...employer,
    ...policy,
    clientId,
    clientSecret,
    clientHeaders: { 'X-Client-ID': clientId, 'X-Client-Secret': clientSecret },
    ...agent,
  }
}

/** Creates a further carrier of a tenant, whose money nobody tells of. @returns its id. */
export async function seedCarrier(service: SeedableService, tenantId: string): Promise<string> {
  const body = { tenant_id: tenantId, name: 'Second Mutual', settlement_type: null }
  return (await create(service, '/carriers', body)).carrier_id
}

/** Creates an employer, linked to the payroll company unless overridden. */
export async function seedEmployer(
  service: SeedableService,
  owner: { tenantId: string; payrollCompanyId?: string; environment?: 'live' | 'sandbox' },
  overrides: Record<string, unknown> = {},
): Promise<Pick<SeededTenant, 'employerId' | 'employerName' | 'fein'>> {
  const employer = {
    tenant_id: owner.tenantId,
    environment: owner.environment ?? 'live',
    legal_name: 'Seeded Bakery LLC',
    fein: newFein(),
    address: { line1: '1 Main St', city: 'Reno', state: 'NV', zip: '89501' },
    contact_email: 'payroll@bakery.example',
    payroll_company_ids: owner.payrollCompanyId === undefined ? [] : [owner.payrollCompanyId],
    ...overrides,
  }
  const { employer_id: employerId } = await create(service, '/employers', employer)
  return { employerId, employerName: employer.legal_name, fein: employer.fein }
}

/** Creates a policy with {@link policyDefaults}. */
export async function seedPolicy(
  service: SeedableService,
  owner: { employerId: string; carrierId: string },
  overrides: Record<string, unknown> = {},
): Promise<Pick<SeededTenant, 'policyId' | 'policyNumber'>> {
  const { policy_id: policyId, policy_number: policyNumber } = await create(service, '/policies', {
    employer_id: owner.employerId,
    carrier_id: owner.carrierId,
    ...policyDefaults(),
    ...overrides,
  })
  return { policyId, policyNumber }
}

/** Creates an agent credential through the admin routes of the tool-server host. */
export async function seedAgent(
  service: SeedableService,
  body: Record<string, unknown>,
): Promise<Pick<SeededTenant, 'credentialId' | 'apiKey'>> {
  const headers = { Authorization: `Bearer ${service.operatorToken}`, [KEY]: randomUUID() }
  const answer = await untilServed(() =>
    send(`${service.mcpUrl}/api/v1/agents`, {
      method: 'POST',
      headers,
      body: { agent_name: 'Seeded Agent', sandbox: false, created_by: 'tests', ...body },
    }),
  )
  if (answer.status !== 201) throw new Error(`POST /api/v1/agents: ${answer.status} ${answer.text}`)
  return { credentialId: answer.body.credential_id, apiKey: answer.body.api_key }
}

/** Sends one JSON-RPC message (or anything else) to the tool server. */
export function sendRpc(
  service: SeedableService,
  apiKey: string | null,
  message: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const authorization: Record<string, string> = apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` }
  return send(`${service.mcpUrl}/mcp`, {
    method: 'POST',
    headers: { ...authorization, ...headers },
    body: message,
  })
}

/** What a tool call came to: its structured result, or the JSON-RPC error. */
interface ToolOutcome {
  readonly result?: ReturnType<typeof JSON.parse>
  readonly error?: { code: number; message: string; data?: { field?: string } }
}

/** Calls a tool and parses its text. */
export async function callTool(
  service: SeedableService,
  apiKey: string,
  name: string,
  given: unknown,
): Promise<ToolOutcome> {
  const { body } = await sendRpc(service, apiKey, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: given },
  })
  return body.error ? { error: body.error } : { result: JSON.parse(body.result.content[0].text) }
}

/** A payroll row that {@link policyDefaults} accepts. */
export function payrollRow(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    employee_first_name: 'Ada',
    employee_last_name: 'Baker',
    class_code: '8810',
    state: 'CA',
    gross_wages: 1000.5,
    ...overrides,
  }
}
