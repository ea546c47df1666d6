import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FAULT_POINTS } from '../../../application/ports/faults.ts'
import type { Operation, Parameter } from '../../../interfaces/endpoints/openapi.ts'
import { report } from '../../support/core.ts'
import {
  bodySchemaOf,
  type Call,
  type Callers,
  type Described,
  faultOf,
  newCallers,
  operationsOf,
  sendTo,
  takesKey,
} from '../../support/described-calls.ts'
import type { DescribedApi } from '../../support/described-hosts.ts'
import { DescribedValues, type Known } from '../../support/described-values.ts'
import { descriptionOf } from '../../support/descriptions.ts'
import { runs } from '../../support/generated.ts'
import { registerWebhook } from '../../support/partners.ts'
import { newSession, tokenOf } from '../../support/payment-sessions.ts'
import { operate } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

/**
 * Drives every operation with what its description allows: it is never refused for its form. That answers are as
 * described, is checked with every call; what is forbidden, is in `described-refusals.test.ts`.
 */

/** Requests for each operation. */
const RUNS = runs(3, 40)

/** Refusals with 400 of what has the right form: rules that a schema cannot say, by operation. */
const RULES: Readonly<Record<string, RegExp>> = {
  reportPayroll: /^pay_period\.end_date lies before/,
  pushPayroll: /^pay_period\.end_date lies before/,
  issuePolicy: /^expiration_date must lie after|^rates|^class_codes|^states|^locations/,
  changePolicy: /^rates|^class_codes|^states|^locations|cannot be changed$/,
  changeEmployer: /cannot be changed$/,
  setCheckout:
    /^(embed_origins\[\d+\] must be an https origin|web_address must be a host|link_format must contain|logo_url must be)|cannot be changed$/,
  setFinancing: /cannot be changed$/,
  advanceClock:
    /^(seconds is required: send seconds or to|to cannot be given together with seconds)|^(seconds|to) must be a time (that exists|before the year)/,
  listDeadLetters: /^reader must be one of/,
  redriveWork: /^(process_manager|kind|key) is required|^process_manager must be one of/,
  discardWork: /^(process_manager|kind|key) is required|^process_manager must be one of/,
  injectFault: /^mode is required/,
  showStreamState: /^revision cannot be given together with as_of/,
  showStory:
    /^(position cannot be given together with as_of|since_position cannot be given together with since|tree_size must be the size of a checkpoint)/,
  listEvents:
    /^(to must not lie before|to_time must not be earlier|tree_size must be the size of a checkpoint)/,
  listBankTransactions: /^date_to must not lie before/,
  summarizeBankTransactions: /^date_to must not lie before/,
  listAchTransactions: /^to_date must not lie before/,
  listStreamEvents: /^(to_time must not be earlier|tree_size must be the size of a checkpoint)/,
  cosignCheckpoint: /^cosignature /,
  createOperator: /^expires_at must be in the future/,
  rotateOperator: /^expires_at must be in the future/,
  resendTenantWebhookEvents: /^event_id is required, or from and to|^to must not lie before/,
  erase: /is required|cannot be given together|^bank_account_id names no account/,
  exportSubject: /is required|cannot be given together|^bank_account_id names no account|^recipient must be/,
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
  changeBankAccount: /^\w+ is required: send at least one of |cannot be changed$/,
  createAchAccount: /must not hold a number of the account$/,
  changeAchAccount:
    /^\w+ is required: send at least one of |cannot be changed$|must not hold a number of the account$/,
  registerWebhook: /^url /,
  resendWebhookEvents: /^to must not lie before/,
  changeWebhook: /^url |cannot be changed$/,
}

let service: RunningService
let callers: Callers
let known: Known

beforeAll(async () => {
  service = await startService()
  callers = await newCallers(service)
  const { tenant, connection, payer, partner, sold } = callers
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
    process_manager: ['payroll-pipeline'],
    reader: ['employers'],
    url: ['https://127.0.0.1:64999/hooks', 'HTTPS://localhost:64999/hooks'],
  }
})
afterAll(() => service?.stop())

describe.each<DescribedApi>(['core', 'operator', 'payments'])('the %s API', (api) => {
  test.each(operationsOf(api))('%s', async (_name, described) => {
    const { operationId } = described.operation
    const values = new DescribedValues(descriptionOf(api).components.schemas!, known)
    await fc.assert(
      fc.asyncProperty(callsOf(described, values), async (call) => {
        const fault = faultOf(described, call)
        const answer = await sendTo(callers, described, call)
        const told = `${JSON.stringify(call).slice(0, 2000)} is answered ${answer.status} ${answer.text}`
        expect(answer.status, told).not.toBe(500)
        if (fault !== null) expect(answer.status, `${fault}, but ${told}`).toBe(400)
        else if (answer.status === 400) {
          const rule = RULES[operationId.replace(/V\d$/, '')] ?? /^(?!)/
          expect(answer.body.message, `allowed, but ${told}`).toMatch(rule)
        }
      }),
      RUNS,
    )
    // what it injects must not hold up the next ones, each for as long as a provider may take
    if (operationId !== 'injectFault') return
    for (const point of FAULT_POINTS) await operate(service, 'POST', '/faults', { point, times: 0 })
  })
})

describe.each<DescribedApi>(['core', 'operator', 'payments'])('the example of the %s API', (api) => {
  const shown = operationsOf(api).filter(([, { operation }]) => exampleOf(operation) !== undefined)
  test.each(shown)('for %s has the right form', async (_name, described) => {
    const { path, operation } = described
    const parts = (name: string) => String(known[name]?.[0] ?? '0'.repeat(24))
    const call: Call = {
      path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts(name))),
      query: {},
      key: null,
      body: withIds(exampleOf(operation)),
    }
    const { status, body, text } = await sendTo(callers, described, call)
    const told = `${JSON.stringify(call)} is answered ${status} ${text}`
    expect(status, told).not.toBe(500)
    // a public token that serves once cannot stand in an example
    if (body.code !== 'public_token_refused') expect(status, told).not.toBe(400)
  })
})

function exampleOf({ requestBody }: Operation): unknown {
  return requestBody?.content['application/json']?.example
}

/** An example with the ids of what there is, and an address that the tests reach. */
function withIds(example: unknown): unknown {
  return JSON.parse(JSON.stringify(example), (name, value) =>
    /(_id|Id|^url)$/.test(name) ? (known[snake(name)]?.[0] ?? value) : value,
  )
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Requests of an operation. */
function callsOf({ path, operation }: Described, values: DescribedValues): fc.Arbitrary<Call> {
  const parameters = operation.parameters.filter((one): one is Parameter => 'name' in one)
  const inPath = parameters.filter((one) => one.in === 'path')
  const inQuery = parameters.filter((one) => one.in === 'query')
  const schema = bodySchemaOf(operation)
  return fc.record({
    path: fc
      .record(Object.fromEntries(inPath.map(({ name }) => [name, partOf(name)])))
      .map((parts) =>
        path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name]))),
      ),
    query: fc.record(
      Object.fromEntries(
        inQuery.map(({ name, schema }) => [name, values.fitting(schema, name).map((value) => String(value))]),
      ),
      { requiredKeys: inQuery.filter(({ required }) => required).map(({ name }) => name) },
    ),
    key: takesKey(operation) ? fc.option(fc.uuid()) : fc.constant(null),
    body: schema ? values.fitting(schema) : fc.constant(undefined),
  })
}

/** A part of a path: what exists, what may, and any text. */
function partOf(name: string): fc.Arbitrary<unknown> {
  const existing = known[name] ? [fc.constantFrom(...known[name])] : []
  const id = fc.stringMatching(/^[0-9a-f]{24}$/)
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
    .filter((one) => !/^\.*$/.test(one))
  return fc.oneof(...existing, id, text)
}
