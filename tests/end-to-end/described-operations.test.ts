import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { FAULT_POINTS } from '../../application/ports/faults.ts'
import type { Operation, Parameter } from '../../interfaces/endpoints/openapi.ts'
import type { JsonSchema } from '../../interfaces/endpoints/schemas.ts'
import { report, serviceTime, sign } from '../support/core.ts'
import type { DescribedApi } from '../support/described-hosts.ts'
import { DescribedValues, type Known } from '../support/described-values.ts'
import { descriptionOf, faultsIn, operationOf, validatorOf } from '../support/descriptions.ts'
import { newPartner, type Partner, registerWebhook } from '../support/partners.ts'
import { enableCheckout, newSession, tokenOf } from '../support/payment-sessions.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

/**
 * Drives every operation with what its description allows and with what it nearly allows: what it allows is never
 * refused for its form, what it forbids always is. That answers are as described, is checked with every call.
 */

/** Requests of each kind for each operation. */
const RUNS = 12

/** Refusals with 400 of what has the right form: rules that a schema cannot say, by operation. */
const RULES: Readonly<Record<string, RegExp>> = {
  reportPayroll: /^pay_period\.end_date lies before/,
  pushPayroll: /^pay_period\.end_date lies before/,
  issuePolicy: /^expiration_date must lie after|^rates|^class_codes|^states|^locations/,
  changePolicy: /^rates|^class_codes|^states|^locations/,
  setCheckout:
    /^(embed_origins\[\d+\] must be an https origin|web_address must be a host|link_format must contain|logo_url must be)/,
  advanceClock:
    /^seconds (or to is required|and to cannot be given together)|^(seconds|to) must be a time (that exists|before the year)/,
  redriveWork: /^(process_manager|kind|key) is required/,
  discardWork: /^(process_manager|kind|key) is required/,
  injectFault: /^mode is required/,
  showStreamState: /^as_of and revision cannot be given together/,
  erase: /is required|cannot be given together/,
  createPaymentLink:
    /^premium_cents |^fee_cents |^metadata |^fee_breakdown |^customer\.phone is required where|^(total_installments|down_payment_months) |^policy_id names|^after_completion_url must be an http/,
  createPaymentSession:
    /^(amount|premium|fee)_cents |^fee_breakdown |^The total must be|^(deliver|total_installments|down_payment_(cents|percent)) is not for the mode embedded|^down_payment_(cents|percent) (needs|must)|^deliver\.sms_to is required|^policy_id names/,
  reissuePaymentSession: /^deliver\.sms_to is required|^deliver is not for/,
  arrangeBankDebit: /^routing_number /,
  createSubscription: /^policy_id names|^payment_method_id /,
  recordLegacyCollection: /^period_end must not lie before|^carrier_id is not the carrier/,
  exchangePublicToken: /^public_token is none/,
  createAchDebit:
    /^effective_date must be an existing date|^metadata |^(policy_id|carrier_id|bank_account_id) /,
  createAchCollection:
    /totalInDollars must be|^policyCollections(\[\d+\]\.policyId)? |idempotencyKey|^bankAccountId /,
  takeInPolicy: /^employer\.fein |^policy\.effective_date /,
  checkoutFinancing:
    /^(amount|premium|fee)_cents |^fee_breakdown |^The total must be|^insured\.business_name must be the name|^policy\.\w+ must be the \w+ of|^policy_id names|^The recipient of the invitation/,
  simulateCompletion: /^Completion can be simulated/,
  refundPaymentLink: /^amount_cents /,
  changeBankAccount: /^The body must have at least one of/,
  createAchAccount: /must not hold a number of the account$/,
  changeAchAccount: /^The body must have at least one of|must not hold a number of the account$/,
  registerWebhook: /^url /,
  changeWebhook: /^url( |, events or status is required)/,
}

let service: RunningService
let tenant: SeededTenant
let connection: { connection_id: string; secret: string }
let partner: Partner
/** Sells by sessions, for which there is no sandbox. */
let seller: Partner
let known: Known

beforeAll(async () => {
  service = await startService()
  tenant = await seedTenant(service)
  connection = await operate(service, 'POST', '/inbound-connections', {
    tenant_id: tenant.tenantId,
    environment: 'live',
  })
  // operators switch off the client that they know of, and only the sandbox has everything
  const payer = await seedTenant(service, { environment: 'sandbox' })
  partner = await newPartner(service, payer.tenantId, {
    environment: 'sandbox',
    carrier_ids: [payer.carrierId],
  })
  const sold = await seedTenant(service)
  await enableCheckout(service, sold)
  seller = await newPartner(service, sold.tenantId, { carrier_ids: [sold.carrierId] })
  const session = await newSession(service, sold)
  const webhook = await registerWebhook(partner, 'https://127.0.0.1:64999/')
  const { body } = await report(service, tenant)
  known = {
    tenant_id: [tenant.tenantId],
    carrier_id: [tenant.carrierId, payer.carrierId, sold.carrierId],
    payroll_company_id: [tenant.payrollCompanyId],
    employer_id: [tenant.employerId, payer.employerId, sold.employerId],
    policy_id: [tenant.policyId, payer.policyId, sold.policyId],
    payment_session_id: [session.id],
    token: [tokenOf(session)],
    client_id: [tenant.clientId],
    connection_id: [connection.connection_id],
    file_id: [body.file_id],
    employer_fein: [tenant.fein],
    policy_number: [tenant.policyNumber],
    id: [webhook.id],
    url: ['https://127.0.0.1:64999/hooks', 'HTTPS://localhost:64999/hooks'],
  }
})
afterAll(() => service?.stop())
// what one operation injects must not hold up the next ones, each for as long as a provider may take
afterEach(async () => {
  for (const point of FAULT_POINTS) await operate(service, 'POST', '/faults', { point, times: 0 })
})

/** One request, before it is signed. */
interface Call {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly key: string | null
  readonly body: unknown
}

describe.each<DescribedApi>(['core', 'operator', 'payments'])('the %s API', (api) => {
  const { paths } = descriptionOf(api)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [method.toUpperCase(), path, operation] as const),
  )

  test.each(operations)('%s %s', async (method, path, operation) => {
    const values = new DescribedValues(descriptionOf(api).components.schemas!, known)
    const { pointer } = operationOf(api, method, path)!
    for (const kind of ['fitting', 'near'] as const) {
      await fc.assert(
        fc.asyncProperty(callsOf(operation, path, values, kind), async (call) => {
          const fault = faultOf(api, pointer, operation, call)
          const answer = await sendTo(api, method, call)
          const told = `${JSON.stringify(call).slice(0, 2000)} is answered ${answer.status} ${answer.text}`
          expect(answer.status, told).not.toBe(500)
          // financing is not for the key that sells, whatever else is wrong with the request
          if (fault !== null && isFinanced(call)) expect([400, 403], told).toContain(answer.status)
          else if (fault !== null) expect(answer.status, `${fault}, but ${told}`).toBe(400)
          else if (answer.status === 400) {
            const rule = RULES[operation.operationId.replace(/V\d$/, '')] ?? /^(?!)/
            expect(answer.body.message, `allowed, but ${told}`).toMatch(rule)
          }
        }),
        { numRuns: RUNS },
      )
    }
  })
})

function isFinanced({ path, body }: Call): boolean {
  const { billing_method } = (body ?? {}) as { readonly billing_method?: unknown }
  return path === '/api/v1/payment-sessions' && billing_method === 'PREMIUM_FINANCE'
}

/** Requests of an operation with values of one kind. */
function callsOf(
  operation: Operation,
  path: string,
  values: DescribedValues,
  kind: 'fitting' | 'near',
): fc.Arbitrary<Call> {
  const parameters = operation.parameters.filter((one): one is Parameter => 'name' in one)
  const inPath = parameters.filter((one) => one.in === 'path')
  const inQuery = parameters.filter((one) => one.in === 'query')
  const schema = bodySchemaOf(operation)
  return fc.record({
    path: fc
      .record(Object.fromEntries(inPath.map(({ name }) => [name, partOf(name, kind)])))
      .map((parts) =>
        path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name]))),
      ),
    query: fc.record(
      Object.fromEntries(
        inQuery.map(({ name, schema }) => [name, values[kind](schema, name).map((value) => String(value))]),
      ),
      { requiredKeys: inQuery.filter(({ required }) => required).map(({ name }) => name) },
    ),
    key: takesKey(operation)
      ? fc.oneof(fc.constant(null), kind === 'near' ? KEYS : fc.uuid())
      : fc.constant(null),
    body: schema ? values[kind](schema) : fc.constant(undefined),
  })
}

/** Keys on both sides of what is allowed. */
const KEYS = fc.constantFrom('', 'two words', 'x'.repeat(255), 'x'.repeat(256))

function takesKey({ parameters }: Operation): boolean {
  return parameters.some((one) => '$ref' in one && one.$ref.endsWith('/Idempotency-Key'))
}

function bodySchemaOf({ requestBody }: Operation): JsonSchema | undefined {
  return requestBody?.content['application/json']?.schema
}

/** A part of a path: what exists, what may, and any text; the last two are not looked for where a body is refused first. */
function partOf(name: string, kind: 'fitting' | 'near'): fc.Arbitrary<unknown> {
  const existing = known[name] ? [fc.constantFrom(...known[name])] : []
  if (kind === 'near' && existing.length > 0) return existing[0]!
  const id = fc.stringMatching(/^[0-9a-f]{24}$/)
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
    .filter((one) => !/^\.*$/.test(one))
  return fc.oneof(...existing, id, text)
}

/** What of a request its description forbids; null: nothing. */
function faultOf(api: DescribedApi, pointer: string, operation: Operation, call: Call): string | null {
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

async function sendTo(api: DescribedApi, method: string, call: Call): Promise<Answer> {
  const host = { core: service.coreUrl, operator: service.opsUrl, payments: service.paymentsUrl }[api]
  const query = new URLSearchParams(call.query)
  const body = call.body === undefined ? undefined : JSON.stringify(call.body)
  return send(`${host}${call.path}${query.size > 0 ? `?${query}` : ''}`, {
    method,
    ...(body === undefined ? {} : { body }),
    headers: {
      ...(await credentialsFor(api, call.path, body ?? '')),
      ...(call.key === null ? {} : { 'Idempotency-Key': call.key }),
    },
  })
}

async function credentialsFor(
  api: DescribedApi,
  path: string,
  body: string,
): Promise<Record<string, string>> {
  if (api === 'operator') return { Authorization: `Bearer ${service.operatorToken}` }
  if (api === 'payments') {
    const isSold = path.startsWith('/api/v1/payment-sessions') && !path.includes('/financing')
    const { clientId, clientSecret } = isSold ? seller : partner
    return { 'X-Client-ID': clientId, 'X-Client-Secret': clientSecret }
  }
  if (!path.includes('/webhook/inbound/')) return tenant.clientHeaders
  const now = String(await serviceTime(service))
  return { 'X-Webhook-Timestamp': now, 'X-Webhook-Signature': sign(connection.secret, now, body) }
}
