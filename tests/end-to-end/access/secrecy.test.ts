import { randomBytes, randomInt } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_FAULTS } from '../../../application/ports/faults.ts'
import { openDatabase, SERVICE_ROLE } from '../../../infrastructure/database/database.ts'
import { SimulatedBankLink } from '../../../infrastructure/providers/bank-link/simulated.ts'
import { employeeRecord, reportBody, serviceTime, sign } from '../../support/core.ts'
import { installationName, isLogInEventStore } from '../../support/installation.ts'
import { filesBelow, type LeakFinder, leakFinder, leaksInFiles, leaksInRows } from '../../support/leaks.ts'
import { readTestLog } from '../../support/log.ts'
import { type Answer, newPolicyNumber, payrollRow, policyDefaults, send } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

/** The files that hold a secret each, by what they are for. */
const SECRET_FILES = ['operator-token', 'master-key', 'postgres-password']
/** Whether the service keeps its data and secrets in a directory of its own. */
const isEmbedded = installationName === 'embedded'

const letters = Array.from(randomBytes(12), (byte) => String.fromCharCode(97 + (byte % 26))).join('')
const number = (digits: number) => String(randomInt(10 ** (digits - 1), 10 ** digits))
const socialSecurityNumber = () => `${number(3)}-${number(2)}-${number(4)}`

const soleProprietor = socialSecurityNumber()
const nine = soleProprietor.replaceAll('-', '')

/** Values that occur nowhere else, by what they are. */
const personal = {
  ssn: socialSecurityNumber(),
  misplacedSsn: socialSecurityNumber(),
  firstName: `Fi${letters}`,
  lastName: `La${letters}`,
  employeeId: `Id${letters}`,
  phone: `Ph${letters}`,
  nested: `Ne${letters}`,
  fullName: `Fu ${letters}`,
  note: `No${letters}`,
  dirtyName: `Di${letters}`,
  fein: `${number(2)}-${number(7)}`,
  otherFein: `${number(2)}-${number(7)}`,
  soleProprietor,
  soleFein: `${nine.slice(0, 2)}-${nine.slice(2)}`,
  soleName: `Sn${letters}`,
  misplacedName: `Mi${letters}`,
  userId: `Ui${letters}`,
  ownerFirst: `Of${letters}`,
  ownerLast: `Ol${letters}`,
  ownerBirth: `Ob${letters}`,
  ownerTitle: `Ot${letters}`,
  contactName: `Cn${letters}`,
  contactEmail: `em${letters}@bakery.example`,
  changedEmail: `ch${letters}@bakery.example`,
  address: `Ad${letters} Street`,
  payerName: `Pa${letters} Company`,
  payerEmail: `pa${letters}@payer.example`,
  payerPhone: `+1${number(10)}`,
  accountHolder: `Ah${letters} Account`,
  accountNumber: number(14),
  accountBank: `Ab${letters} Bank`,
  achAccountNumber: number(14),
  achRoutingNumber: number(9),
  key: `key-${letters}`,
  wrongApiKey: `mcp_${randomBytes(32).toString('hex')}`,
  wrongSecret: `Wr${letters}`,
  wrongToken: `op_${randomBytes(32).toString('hex')}`,
}
/** Not personal, and stored as it is: proves that the search finds what is there. */
const legalName = `Lg${letters} LLC`

const dataDir = temporaryDirectory()
let service: RunningService
let client: pg.Client
let secrets: Record<string, string> = {}
let finder: LeakFinder
/** Every answer, by what it answers. */
const answers: { what: string; status: number; text: string }[] = []
let now = 0

beforeAll(async () => {
  const masterKey = randomBytes(32).toString('base64')
  service = await startService({
    dataDir,
    isFirstStart: true,
    env: { LOG_LEVEL: 'trace', ...(isEmbedded ? {} : { MASTER_KEY: masterKey }) },
  })
  secrets = { operatorToken: service.operatorToken, masterKey }
  if (isEmbedded) {
    secrets.masterKey = await secretFile('master-key')
    secrets.postgresPassword = await secretFile('postgres-password')
  }
  client = new pg.Client(service.databaseUrl)
  await client.connect()
  await work()
})
afterAll(async () => {
  await client?.end().catch(() => undefined)
  await service?.stop()
})

const secretFile = async (name: string) => (await readFile(join(dataDir, name), 'utf8')).trim()

async function ask(
  what: string,
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
): Promise<Answer> {
  const answer = await send(url, options)
  const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  answers.push({ what, status: answer.status, text: `${headers}\n\n${answer.text}` })
  return answer
}

function operator(what: string, method: string, path: string, body?: unknown, key?: string): Promise<Answer> {
  return ask(what, `${service.opsUrl}/ops/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${service.operatorToken}`,
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    },
    ...(body === undefined ? {} : { body }),
  })
}

/** Everything that the service does, with values that can be recognized. */
async function work(): Promise<void> {
  const created = async (path: string, body: unknown, key?: string) => {
    const { status, body: answer } = await operator(`create ${path}`, 'POST', path, body, key)
    expect([path, status]).toEqual([path, 201])
    return answer.data
  }
  now = await serviceTime(service)

  // parties and access
  const { tenant_id } = await created('/tenants', { name: 'Canary Tenant' })
  const { carrier_id } = await created('/carriers', { tenant_id, name: 'Canary Mutual' })
  const { payroll_company_id } = await created('/payroll-companies', { tenant_id, name: 'Canary Payroll' })
  const employerOf = (fein: string) => ({
    tenant_id,
    legal_name: legalName,
    fein,
    contact_email: personal.contactEmail,
    address: { line1: personal.address, city: 'Reno', state: 'NV', zip: '89501' },
    payroll_company_ids: [payroll_company_id],
  })
  const { employer_id } = await created('/employers', employerOf(personal.fein), personal.key)
  await created('/employers', employerOf(personal.otherFein.replace('-', '')))
  await operator('employer', 'PATCH', `/employers/${employer_id}`, { contact_email: personal.changedEmail })
  await operator('employer', 'GET', `/employers/${employer_id}`)
  await operator('employer', 'GET', '/employers')
  const policy_number = newPolicyNumber()
  const { policy_id } = await created('/policies', {
    ...policyDefaults(),
    employer_id,
    carrier_id,
    policy_number,
  })
  const products = ['all']
  const issued = await created('/api-clients', { tenant_id, name: 'Canary Client', products }, personal.key)
  const rotated = await operator('rotate', 'POST', `/api-clients/${issued.client_id}/rotate`, {})
  const connection = await created('/inbound-connections', { tenant_id })
  await operator('client', 'GET', `/api-clients/${issued.client_id}`)
  await operator('connection', 'GET', `/inbound-connections/${connection.connection_id}`)
  const agent = (
    await ask('create agent', `${service.mcpUrl}/api/v1/agents`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${service.operatorToken}`, 'Idempotency-Key': personal.key },
      body: { agent_name: 'Canary Agent', entity_type: 'payroll_company', entity_id: payroll_company_id },
    })
  ).body
  await ask('agents', `${service.mcpUrl}/api/v1/agents`, {
    headers: { Authorization: `Bearer ${service.operatorToken}` },
  })
  secrets = {
    ...secrets,
    apiKey: agent.api_key,
    firstClientSecret: issued.client_secret,
    clientSecret: rotated.body.data.client_secret,
    connectionSecret: connection.secret,
  }
  finder = leakFinder({ ...personal, ...secrets })

  // payroll by every way in
  const clientHeaders = { 'X-Client-ID': issued.client_id, 'X-Client-Secret': secrets.clientSecret! }
  const employees = [
    employeeRecord({
      first_name: personal.firstName,
      last_name: personal.lastName,
      ssn: personal.ssn,
      employee_id: personal.employeeId,
      phone: personal.phone,
      family: { spouse: personal.nested },
    }),
    employeeRecord({ first_name: personal.firstName, last_name: personal.lastName, class_code: '0000' }),
    employeeRecord({ first_name: personal.firstName, class_code: personal.misplacedSsn, last_name: 7 }),
    employeeRecord({ class_code: personal.misplacedName, state: personal.misplacedName }),
    employeeRecord({ class_code: '0000', state: personal.ssn, check_date: personal.ssn, rate: personal.ssn }),
    employeeRecord({ [personal.ssn]: personal.ssn, hours_worked: { of: personal.firstName } }),
  ]
  const body = reportBody({ fein: personal.fein, policyNumber: policy_number }, { employees })
  const core = (what: string, path: string, sent: unknown, headers: Record<string, string> = clientHeaders) =>
    ask(what, `${service.coreUrl}/api/v1${path}`, { method: 'POST', headers, body: sent })
  const reports = '/payroll/reports'
  const keyed = { ...clientHeaders, 'Idempotency-Key': personal.key }
  const accepted = [
    await core('report', reports, body),
    await core('report', reports, body, keyed),
    await core('report', reports, body, keyed),
    await core('report', reports, {
      ...body,
      employees: Array.from({ length: 1_300 }, (_, index) => ({
        ...employees[index % 2],
        employee_id: `${personal.employeeId}-${index}`,
      })),
    }),
  ]
  expect(accepted.map(({ status }) => status)).toEqual([202, 202, 202, 202])
  const push = (sent: string, secret: string, at = now) =>
    core('push', `/webhook/inbound/${connection.connection_id}`, sent, {
      'X-Webhook-Timestamp': String(at),
      'X-Webhook-Signature': sign(secret, at, sent),
      'Idempotency-Key': personal.key,
    })
  const pushed = JSON.stringify(body)
  expect((await push(pushed, secrets.connectionSecret!)).status).toBe(202)
  const changes = [
    {
      employee_id: personal.employeeId,
      action: 'hire',
      name: personal.fullName,
      hire_date: '2026-01-05',
      ssn: personal.ssn,
      note: personal.note,
    },
    { employee_id: personal.employeeId, action: 'update', gross_wages: 1, note: personal.note },
    { employee_id: personal.employeeId, action: 'terminate', termination_date: '2026-02-05' },
  ]
  const sync = { employer_id, employees: changes }
  expect((await core('sync', '/employees/sync', sync, keyed)).status).toBe(202)
  expect((await core('sync', '/employees/sync', sync, keyed)).status).toBe(202)
  const rows = [
    payrollRow({
      employee_first_name: personal.firstName,
      employee_last_name: personal.lastName,
      ssn: personal.ssn,
      phone: personal.phone,
    }),
    payrollRow({
      employee_first_name: personal.firstName,
      employee_last_name: personal.lastName,
      ssn: personal.ssn,
      class_code: personal.misplacedSsn,
    }),
    payrollRow({ gross_wages: personal.fullName, check_date: personal.fullName, hours: personal.lastName }),
  ]
  let calls = 0
  const tool = (name: string, given: unknown, key = secrets.apiKey!) => {
    calls += 1
    return ask(name, `${service.mcpUrl}/mcp`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Idempotency-Key': `${personal.key}-call-${calls}` },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } },
    })
  }
  const submission = { employer_id, policy_id, rows }
  await tool('validate_payroll_submission', submission)
  await tool('submit_payroll_data', { ...submission, dry_run: true })
  const submitted = await tool('submit_payroll_data', submission)
  const { file_id } = JSON.parse(submitted.body.result.content[0].text)
  expect((await operator('drain', 'POST', '/drain', { timeout_seconds: 150 })).status).toBe(200)
  for (const id of [file_id, accepted[0]!.body.file_id, accepted[3]!.body.report_id]) {
    await ask('status', `${service.coreUrl}/api/v1/files/status/${id}`, { headers: clientHeaders })
    await tool('get_submission_status', { file_id: id })
    await tool('get_validation_errors', { file_id: id })
  }
  await tool('list_employer_policies', { employer_id })
  await tool('get_expected_fields', { employer_id })

  // an employer and its policy in one call, which breaks off once
  const intake = {
    idempotency_key: `${personal.key}-intake`,
    carrier_id,
    employer: {
      legal_name: personal.soleName,
      fein: personal.soleProprietor,
      contact_name: personal.contactName,
      contact_email: personal.contactEmail,
      phone: personal.phone,
      email: personal.changedEmail,
      address: { line1: personal.address, city: 'Reno', state: 'NV', zip: '89501' },
    },
    owners: [
      {
        first_name: personal.ownerFirst,
        last_name: personal.ownerLast,
        dob: personal.ownerBirth,
        title: personal.ownerTitle,
      },
    ],
    policy: { state: 'NV', class_code: '8810', effective_date: '2026-01-01', annual_premium_cents: 1 },
  }
  const takeIn = (sent: unknown, headers: Record<string, string> = clientHeaders) =>
    ask('intake', `${service.paymentsUrl}/api/v1/intake/policies`, { method: 'POST', headers, body: sent })
  await operator('fault', 'POST', '/faults', { point: 'intake', mode: 'decline' })
  const intakes = [
    await takeIn(intake),
    await takeIn({ ...intake, policy: { ...intake.policy, state: personal.ownerFirst } }),
    await takeIn({ ...intake, owners: [{ ...intake.owners[0], excluded: personal.ownerLast }] }),
    await takeIn({ ...intake, employer: { ...intake.employer, fein: `${personal.soleProprietor}0` } }),
    await takeIn(intake, keyed),
    await takeIn(intake),
  ]
  expect(intakes.map(({ status }) => status)).toEqual([502, 400, 400, 400, 201, 200])
  await operator('intake employer', 'GET', `/employers/${intakes[4]!.body.employer_id}`)

  // payments: sold, sent, paid, refunded, announced
  const pays = (what: string, method: string, path: string, sent?: unknown) =>
    ask(what, `${service.paymentsUrl}/api/v1${path}`, {
      method,
      headers: keyed,
      ...(sent === undefined ? {} : { body: sent }),
    })
  const customer = { name: personal.payerName, email: personal.payerEmail, phone: personal.payerPhone }
  const sale = {
    employer_id,
    carrier_id,
    policy_id,
    customer,
    delivery: { email: true, sms: true },
    premium_cents: 100,
    payment_type: 'ONE_TIME',
    payment_context: 'full_payment',
  }
  await pays('sell', 'POST', '/payment-links', {
    ...sale,
    customer: { ...customer, email: personal.payerName },
  })
  await pays('sell', 'POST', '/payment-links', { ...sale, payment_type: personal.payerEmail })
  await operator('fault', 'POST', '/faults', { point: 'card-processor', mode: 'timeout' })
  expect((await pays('sell', 'POST', '/payment-links', sale)).status).toBe(502)
  const sold = await pays('sell', 'POST', '/payment-links', sale)
  expect(sold.status).toBe(201)
  const { _id: linkId, processor_url } = sold.body.data
  await operator('drain', 'POST', '/drain', { timeout_seconds: 150 })
  await operator('paid', 'POST', `/card-processor/${linkId}/succeed`, {})
  expect((await pays('refund', 'POST', `/payment-links/${linkId}/refund`, {})).status).toBe(200)
  await pays('payment links', 'GET', '/payment-links')
  await pays('payment links', 'GET', `/payment-links/${linkId}`)
  await ask('page', processor_url)
  await ask('page', `${service.paymentsUrl}/public/payment-links/${linkId}`)
  await operator('outbox', 'GET', '/outbox')

  // payment sessions: sent, opened, declined, replaced, arranged with a bank
  const checkout = {
    enabled: true,
    display_name: 'Canary Pay',
    support_email: 'help@canary.example',
    sender_email: 'billing@canary.example',
    link_format: '/pay/{token}',
    link_ttl_minutes: 60,
  }
  expect(
    (await operator('checkout settings', 'PUT', `/tenants/${tenant_id}/checkout`, checkout)).status,
  ).toBe(200)
  let asked = 0
  const keyedAnew = () => {
    asked += 1
    return { ...clientHeaders, 'Idempotency-Key': `${personal.key}-session-${asked}` }
  }
  const sessions = async (what: string, path: string, sent: unknown, headers = keyedAnew()) => {
    const url = `${service.paymentsUrl}/api/v1/payment-sessions${path}`
    return ask(what, url, { method: 'POST', headers, body: sent })
  }
  const session = {
    employer_id,
    carrier_id,
    policy_id,
    customer,
    premium_cents: 1_000,
    deliver: { email: true, sms: true },
  }
  const repeated = keyedAnew()
  const opened = await sessions('create session', '', session, repeated)
  const plan = await sessions('create plan session', '', { ...session, total_installments: 3, deliver: null })
  const embedded = await sessions('create embedded session', '', {
    ...session,
    mode: 'embedded',
    deliver: null,
  })
  const again = await sessions('repeat session', '', session, repeated)
  expect([opened.status, plan.status, embedded.status, again.status]).toEqual([201, 201, 201, 409])
  const replaced = await sessions('reissue session', `/${opened.body.data.id}/reissue`, {})
  expect(replaced.status).toBe(201)
  const tokenOf = ({ body }: Answer) => String(body.data.url).split('/').at(-1)!
  secrets = {
    ...secrets,
    firstToken: tokenOf(opened),
    secondToken: tokenOf(replaced),
    planToken: tokenOf(plan),
    embeddedSecret: embedded.body.data.client_secret,
  }
  const publicly = (what: string, path: string, sent?: unknown) =>
    ask(what, `${service.paymentsUrl}/public/payment-sessions/${path}`, {
      ...(sent === undefined ? {} : { method: 'POST', body: sent }),
    })
  const account = {
    account_holder_name: personal.accountHolder,
    routing_number: '021000021',
    authorized: true,
    account_number: personal.accountNumber,
    account_type: 'checking',
    bank_name: personal.accountBank,
  }
  const mounted = await publicly('session checkout', `${secrets.secondToken}/checkout`, {})
  secrets.checkoutSecret = mounted.body.data.client_secret
  finder = leakFinder({ ...personal, ...secrets })
  const looks = [
    await publicly('session', secrets.firstToken!),
    await publicly('session', secrets.secondToken!),
    await publicly('session', `${secrets.planToken}/plan`),
    await publicly('session', `${secrets.planToken}/bank-debit`, {
      ...account,
      routing_number: personal.accountNumber,
    }),
    await publicly('session', `${secrets.planToken}/bank-debit`, {
      ...account,
      authorized: personal.accountNumber,
    }),
    await publicly('session', `${secrets.planToken}/bank-debit`, account),
    await publicly('session', `${secrets.firstToken}/bank-debit`, account),
    await publicly('session', `${secrets.secondToken}/bank-debit`, account),
    await publicly('session', `${secrets.secondToken!.slice(0, -1)}/plan`),
    await publicly('session', `${secrets.secondToken}/nothing`),
    await publicly('session', `${secrets.secondToken}/bank-debit`, `{"a":"${personal.accountNumber}`),
  ]
  expect(looks.map(({ status }) => status)).toEqual([200, 200, 200, 400, 400, 200, 409, 200, 404, 404, 400])
  // whoever opens the page sees its own token there: it stands in no log
  for (const url of [opened.body.data.url, replaced.body.data.url]) await (await fetch(url)).text()
  await operator('decline', 'POST', `/card-processor/${embedded.body.data.id}/decline`, {})
  await operator('drain', 'POST', '/drain', { timeout_seconds: 150 })
  await operator('batches', 'POST', '/debit-batches', {})
  await pays('sessions', 'GET', '/payment-sessions')
  await pays('bank debits', 'GET', '/ach/transactions')
  await pays('read session', 'GET', `/payment-sessions/${opened.body.data.id}`)
  await pays('cancel session', 'DELETE', `/payment-sessions/${embedded.body.data.id}`)
  await operator('outbox', 'GET', '/outbox')

  // accounts of partners, verified by deposits
  const ach = {
    owner_type: 'employer',
    owner_id: employer_id,
    account_type: 'checking',
    bank_name: 'Canary Bank',
    routing_number: personal.achRoutingNumber,
    account_number: personal.achAccountNumber,
  }
  // each request has a key of its own
  const accounts = (what: string, method: string, path: string, sent?: unknown) =>
    ask(what, `${service.paymentsUrl}/api/v1/bank-accounts${path}`, {
      method,
      headers: keyedAnew(),
      ...(sent === undefined ? {} : { body: sent }),
    })
  const added = await accounts('add account', 'POST', '/ach', ach)
  const achPath = `/ach/${added.body.data._id}`
  const accountAnswers = [
    added,
    await accounts('add account', 'POST', '/ach', { ...ach, nickname: personal.achAccountNumber }),
    await accounts('add account', 'POST', '/ach', { ...ach, account_type: personal.achAccountNumber }),
    await accounts('change account', 'PATCH', achPath, { routing_number: personal.achRoutingNumber }),
    await accounts('verify account', 'POST', `${achPath}/micro-deposits`, {}),
    await accounts('accounts', 'GET', '/ach'),
    await accounts('delete account', 'DELETE', achPath),
  ]
  expect(accountAnswers.map(({ status }) => status)).toEqual([201, 400, 400, 400, 200, 200, 200])
  await operator('drain', 'POST', '/drain', { timeout_seconds: 150 })

  // a bank that is linked, by the simulated bank link, whose tokens and numbers follow from the item
  const banks = (what: string, path: string, sent: unknown) =>
    ask(what, `${service.paymentsUrl}/api/v1${path}`, { method: 'POST', headers: clientHeaders, body: sent })
  const public_token = `public-sandbox-${letters}`
  const linked = await banks('link bank', '/bankconnect/exchange', {
    public_token,
    user_id: personal.userId,
    employer_id,
  })
  const { access_token, bankconnect_item_id, accounts: linkedAccounts } = linked.body.data
  const { bankconnect_account_id } = linkedAccounts[0]
  const itemToken = String(bankconnect_item_id).replace('item', 'access')
  const numbers = await new SimulatedBankLink(NO_FAULTS).numbers(itemToken, bankconnect_account_id)
  secrets = {
    ...secrets,
    publicToken: public_token,
    bankHandle: access_token,
    itemToken,
    linkedNumber: numbers!.accountNumber,
  }
  finder = leakFinder({ ...personal, ...secrets })
  const ofLinked = {
    owner_type: 'employer',
    owner_id: employer_id,
    bankconnect_item_id,
    bankconnect_account_id,
  }
  const fromBank = [
    await banks('linked account', '/bank-accounts/ach/from-bankconnect', { ...ofLinked, access_token }),
    await banks('linked account', '/bank-accounts/ach/from-bankconnect', {
      ...ofLinked,
      bankconnect_account_id: access_token,
      access_token: itemToken,
    }),
    await banks('link bank again', '/bankconnect/exchange', { public_token, user_id: 7, employer_id }),
    await banks('sync', '/bankconnect/sync-accounts', { item_id: bankconnect_item_id }),
    await banks('sync', '/bankconnect/sync-accounts', { item_id: access_token }),
  ]
  expect(fromBank.map(({ status }) => status)).toEqual([201, 404, 400, 200, 404])
  await pays('bank connections', 'GET', '/bankconnect/connections')
  await pays('bank transactions', 'GET', '/bankconnect/transactions')

  // bad requests
  const broken = pushed.slice(0, -1)
  const bad = [
    await core('bad', reports, broken),
    await core('bad', reports, { ...body, employer_fein: `${personal.fein}0` }),
    await core('bad', reports, { ...body, employees: [personal.firstName] }),
    await core('bad', reports, { ...body, pay_period: personal.ssn }),
    await core('bad', reports, { ...body, policy_number: personal.ssn }),
    await core('bad', reports, { ...body, employer_fein: personal.otherFein }),
    await core('bad', reports, { ...body, pay_period: undefined }, keyed),
    await core('bad', reports, `{"note":"${personal.note}","note":"${personal.ssn}"}`),
    await core('bad', reports, body, { ...clientHeaders, 'X-Client-Secret': personal.wrongSecret }),
    await core('bad', reports, body, {
      ...clientHeaders,
      'Idempotency-Key': `${personal.key} ${personal.ssn}`,
    }),
    await core('bad', `/payroll/${personal.ssn}?ssn=${personal.ssn}`, body),
    await core('bad', '/employees/sync', {
      employer_id,
      employees: [{ ...changes[0], hire_date: personal.ssn }],
    }),
    await core('bad', '/employees/sync', { employer_id: personal.ssn, employees: changes }),
    await push(broken, secrets.connectionSecret!),
    await push(pushed, personal.wrongSecret),
    await push(pushed, secrets.connectionSecret!, now - 300_001),
    await operator('bad', 'POST', '/employers', employerOf(personal.fein)),
    await operator('bad', 'POST', '/employers', { ...employerOf(personal.ssn), fein: personal.ssn }),
    await operator('bad', 'POST', '/employers', { ...employerOf('x'), contact_email: personal.fullName }),
    await operator('bad', 'POST', '/employers', employerOf(personal.otherFein), personal.key),
    await operator('bad', 'GET', `/events?type=${personal.ssn}`),
    await operator('bad', 'GET', `/streams/employer-${personal.ssn}`),
    await ask('bad', `${service.opsUrl}/ops/v1/tenants`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${personal.wrongToken}` },
      body: { name: personal.firstName },
    }),
    await ask('bad', `${service.portalUrl}/pay/${personal.wrongToken}`),
    await tool('list_employer_policies', { employer_id }, personal.wrongApiKey),
  ]
  for (const { status, text } of bad) expect([400, 401, 404, 409], text).toContain(status)
  await tool('bad', { employer_id: personal.ssn, policy_id: personal.fein, rows: personal.firstName })
  await tool('submit_payroll_data', { ...submission, rows: [personal.firstName] })
  await tool('submit_payroll_data', { ...submission, note: personal.ssn })

  const further = await sessions('create session', '', session)
  const unseen = tokenOf(further)
  secrets.unseenToken = unseen
  finder = leakFinder({ ...personal, ...secrets })

  // failures inside: what the database says quotes rows
  const forbid = async (table: string, run: () => Promise<Answer[]>) => {
    await client.query(`ALTER TABLE ${table} ADD CONSTRAINT nothing_new CHECK (false) NOT VALID`)
    for (const { status, body: answer } of await run()) {
      expect([table, status === 500 || answer.error?.code === -32603]).toEqual([table, true])
    }
    await client.query(`ALTER TABLE ${table} DROP CONSTRAINT nothing_new`)
  }
  const stranger = {
    ...body,
    employees: [{ ...employees[0], employee_id: `${personal.employeeId}-stranger` }],
  }
  // only there is the log a table
  if (!isLogInEventStore)
    await forbid('event_log.events', async () => [
      await core('failure', reports, body),
      await core('failure', reports, body, { ...keyed, 'Idempotency-Key': `${personal.key}-2` }),
      await core('failure', '/employees/sync', sync),
      await tool('submit_payroll_data', { ...submission, idempotency_key: `${personal.key}-3` }),
      await sessions('failure', '', session),
      await sessions('failure', '', { ...session, mode: 'embedded', deliver: null }),
      await publicly('failure', `${unseen}/bank-debit`, account),
      await publicly('failure', unseen),
      await operator('failure', 'PATCH', `/employers/${employer_id}`, {
        contact_email: personal.contactEmail,
      }),
    ])
  await forbid('runtime.data_keys', async () => [
    await core('failure', reports, stranger),
    await operator('failure', 'POST', '/employers', employerOf(`${number(2)}-${number(7)}`)),
  ])
  await forbid('runtime.secrets', async () => [
    await operator('failure', 'POST', '/inbound-connections', { tenant_id }),
  ])
  await client.query(`REVOKE USAGE ON SCHEMA read_model FROM ${SERVICE_ROLE}`)
  const unread = [
    await ask('failure', `${service.coreUrl}/api/v1/files/status/${file_id}`, { headers: clientHeaders }),
    await tool('get_validation_errors', { file_id }),
  ]
  await client.query(`GRANT USAGE ON SCHEMA read_model TO ${SERVICE_ROLE}`)
  expect([unread[0]!.status, unread[1]!.body.error.code]).toEqual([500, -32603])
  expect(unread[1]!.text).not.toMatch(/read_model|relation|select|\.ts|at /i)
  expect((await core('report', reports, body)).status).toBe(202)

  // what auditors read
  await operator('register', 'GET', `/employers/${employer_id}/register`)
  const person = { employee_id: `${personal.employeeId}-1` }
  const known = await operator('erasure', 'POST', '/erasures', { employer_id, ...person })
  const unknown = await operator('erasure', 'POST', '/erasures', { employer_id, ssn: personal.misplacedSsn })
  expect([known.status, unknown.status]).toEqual([201, 404])
  await operator('verify', 'POST', '/audit/verify', {})
  for (const path of ['/healthz', '/readyz', '/metrics']) await ask(path, `${service.opsUrl}${path}`)
  for (const path of ['/work', '/projections', '/clock']) await operator(path, 'GET', path)
  const streams = new Set<string>()
  let from = '0'
  while (from !== 'end') {
    const page = (await operator('events', 'GET', `/events?limit=1000&from=${from}`)).body
    for (const event of page.data) streams.add(event.stream)
    from = page.pagination.next === null ? 'end' : String(page.pagination.next)
  }
  for (const stream of streams) {
    await operator('stream', 'GET', `/streams/${stream}`)
    await operator('state', 'GET', `/streams/${stream}/state`)
  }
  expect((await operator('drain', 'POST', '/drain', { timeout_seconds: 150 })).status).toBe(200)
}

/** Answers that may hold a value, by what it is; all others may not. */
const BELONGS: Readonly<Record<string, readonly string[]>> = {
  fein: ['create /employers', 'employer', 'report', 'push'],
  'fein (digits)': [],
  otherFein: ['create /employers', 'employer'],
  soleFein: ['intake employer'],
  soleName: ['intake employer'],
  userId: ['link bank', 'bank connections'],
  contactEmail: ['create /employers', 'employer', 'intake employer'],
  changedEmail: ['employer'],
  address: ['create /employers', 'employer', 'intake employer'],
  payerName: ['payment links', 'outbox', 'sessions', 'read session'],
  payerEmail: ['payment links', 'outbox', 'sessions', 'read session', 'create session'],
  payerPhone: ['payment links', 'outbox', 'sessions', 'read session', 'create session'],
  firstToken: ['create session', 'outbox'],
  secondToken: ['reissue session'],
  planToken: ['create plan session'],
  unseenToken: ['create session'],
  embeddedSecret: ['create embedded session'],
  checkoutSecret: ['session checkout'],
  firstName: ['get_validation_errors'],
  lastName: ['get_validation_errors'],
  apiKey: ['create agent'],
  firstClientSecret: ['create /api-clients'],
  clientSecret: ['rotate'],
  connectionSecret: ['create /inbound-connections'],
  bankHandle: ['link bank'],
}

describe('what is secret or personal', () => {
  test('stands in no answer where it does not belong', () => {
    const leaks = answers.flatMap(({ what, status, text }) =>
      finder
        .find(text)
        .filter((value) => !BELONGS[value]?.includes(what))
        .map((value) => `${what} (${status}): ${value}`),
    )
    expect(new Set(leaks)).toEqual(new Set())
    const kinds = new Set(answers.map(({ what }) => what))
    for (const what of Object.values(BELONGS).flat()) expect(kinds).toContain(what)
  })

  test('stands where it belongs, so that the search is known to find it', () => {
    for (const [value, places] of Object.entries(BELONGS)) {
      for (const place of places) {
        const texts = answers.filter(({ what }) => what === place).map(({ text }) => text)
        expect(
          texts.flatMap((text) => finder.find(text)),
          `${value} in ${place}`,
        ).toContain(value)
      }
    }
  })

  test('is shown to an operator who asks for it, in events alone', async () => {
    const { body } = await operator('revealed', 'GET', '/events?type=EmployerRegistered&reveal=true')
    const found = finder.find(JSON.stringify(body))
    expect(found).toEqual(expect.arrayContaining(['fein', 'otherFein', 'contactEmail', 'address']))
    expect(found.filter((value) => value in secrets)).toEqual([])
  })

  test('stands in no row of the database', async () => {
    await client.query('ANALYZE')
    expect(await leaksInRows(client, leakFinder({ legalName }))).not.toEqual([])
    expect(await leaksInRows(client, finder)).toEqual([])
  })

  test('stands in no event as it is stored', async () => {
    const database = await openDatabase({ url: service.databaseUrl })
    try {
      const found = new Set<string>()
      const legal = leakFinder({ legalName })
      for (const { stream, type, data, metadata } of await readTestLog(database, service.databaseUrl)) {
        const text = [stream, type, data, metadata].join('\n')
        for (const value of [...finder.find(text), ...legal.find(text)]) found.add(value)
      }
      expect([...found]).toEqual(['legalName'])
    } finally {
      await database.close()
    }
  })

  test('stands on no command line', async () => {
    const { rows } = await client.query<{ pid: number }>(
      'SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL',
    )
    const own = service.processes.map(({ process }) => process.pid!)
    const postmaster = isEmbedded
      ? [Number((await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0])]
      : []
    for (const pid of [...own, ...postmaster, ...rows.map((row) => row.pid)]) {
      const line = await readFile(`/proc/${pid}/cmdline`).catch(() => Buffer.alloc(0))
      expect(finder.find(line), `${pid}`).toEqual([])
    }
  })

  // integration/secrets/personal-data searches the files of the database
  test.runIf(isEmbedded)(
    'stands in no file of a running or stopped service but in the three that are for it',
    { tags: 'long' },
    async () => {
      await client.query('CHECKPOINT')
      const running = await filesBelow(dataDir)
      expect(running.some((name) => name.includes('pg_wal'))).toBe(true)
      expect(await leaksInFiles(dataDir, leakFinder({ legalName }))).not.toEqual([])
      const since = Date.now()
      const leaks = await leaksInFiles(dataDir, finder)
      expect(leaks.map((leak) => leak.split(': ')[0]).sort()).toEqual([...SECRET_FILES].sort())
      for (const name of SECRET_FILES) expect((await stat(join(dataDir, name))).mode & 0o077).toBe(0)
      await client.end()
      expect(await service.end()).toBe(0)
      // what was not written since has been searched
      expect(await leaksInFiles(dataDir, finder, since)).toEqual([])
    },
  )

  test('stands on no line of the log, at the finest level', () => {
    expect(service.output.some((line) => line.includes('request failed'))).toBe(true)
    const leaks = service.output.filter((line) => finder.find(line).length > 0)
    expect(leaks).toEqual([])
  })
})
