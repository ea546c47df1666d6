import { readFile } from 'node:fs/promises'
import type { Sent } from './arrivals.ts'
import { CALENDAR, type RequestKind } from './payroll-calendar.ts'
import { employee, reportBody } from './reports.ts'
import { OPERATOR_TOKEN, type ServiceAddresses } from './servers.ts'
import { throughput } from './statistics.ts'

/** Requests under way while tenants are made. */
const AT_ONCE = 8

interface Employer {
  readonly tenant: Tenant
  readonly employerId: string
  readonly policyId: string
  readonly fein: string
  readonly policyNumber: string
  readonly accountId: string
  /** A file of an earlier report. */
  readonly fileId: string
}

interface Tenant {
  readonly tenantId: string
  readonly carrierId: string
  /** An agent of it speaks for all employers. */
  readonly payrollCompanyId: string
  readonly headers: Readonly<Record<string, string>>
  readonly agent: { readonly authorization: string }
}

/** Tenants of the sandbox, where payments can be played, with employers of whom everybody was reported once. */
export interface Tenants {
  /** The n-th request of a kind, each of the next employer. */
  request(kind: RequestKind, n: number): Sent
  /** Has so many more links be there to be paid. */
  prepareLinks(count: number): Promise<void>
}

/**
 * Makes tenants through the operator API and what partners call.
 * @param webhooks where each tenant hears of payments.
 */
export async function makeTenants(
  { ops, mcp, core, payments }: ServiceAddresses,
  tenants: number,
  employersOfEach: number,
  webhooks: string,
): Promise<Tenants> {
  const operator = { authorization: `Bearer ${OPERATOR_TOKEN}` }
  const operate = (path: string, body: object) => post(`${ops}/ops/v1/${path}`, operator, body)
  const policy = JSON.parse(await readFile('examples/policy.json', 'utf8')) as object
  const api = `${payments}/api/v1`

  const made: Tenant[] = []
  for (let n = 0; n < tenants; n += 1) {
    const tenant_id = (await operate('tenants', { name: `Partner ${n}` })).tenant_id!
    const carrierId = (await operate('carriers', { tenant_id, name: `Mutual ${n}` })).carrier_id!
    const company = await operate('payroll-companies', { tenant_id, name: `Payroll ${n}` })
    const payrollCompanyId = company.payroll_company_id!
    const client = await operate('api-clients', {
      tenant_id,
      name: `Partner ${n}`,
      environment: 'sandbox',
      products: ['all'],
    })
    const headers = { 'x-client-id': client.client_id!, 'x-client-secret': client.client_secret! }
    const agent = await post(`${mcp}/api/v1/agents`, operator, {
      agent_name: `Agent ${n}`,
      entity_type: 'payroll_company',
      entity_id: payrollCompanyId,
      sandbox: true,
      created_by: 'bench',
    })
    await post(`${api}/webhooks`, headers, { url: `${webhooks}?tenant=${n}`, events: ['payment.completed'] })
    const authorization = `Bearer ${agent.api_key}`
    made.push({ tenantId: tenant_id, carrierId, payrollCompanyId, headers, agent: { authorization } })
  }
  const employers: Employer[] = []
  await throughput(tenants * employersOfEach, AT_ONCE, async (n) => {
    const tenant = made[n % tenants]!
    const { tenantId: tenant_id, carrierId: carrier_id, payrollCompanyId, headers } = tenant
    const fein = `12-${String(n).padStart(7, '0')}`
    const policy_number = `WC-2026-${String(n).padStart(6, '0')}`
    const { employer_id } = await operate('employers', {
      tenant_id,
      environment: 'sandbox',
      legal_name: `Employer ${n} LLC`,
      fein,
      payroll_company_ids: [payrollCompanyId],
    })
    const { policy_id } = await operate('policies', {
      ...policy,
      employer_id,
      carrier_id,
      policy_number,
      expiration_date: '2099-12-31',
    })
    const account = await post(`${api}/bank-accounts/ach`, headers, {
      owner_type: 'employer',
      owner_id: employer_id,
      routing_number: '071000013',
      account_number: String(1_000_000_000 + n),
      bank_name: 'First Bank',
      account_type: 'checking',
    })
    const who = { fein, policyNumber: policy_number }
    const file = await post(`${core}/api/v1/payroll/reports`, headers, JSON.parse(reportOf(who, 0)) as object)
    employers[n] = {
      tenant,
      employerId: employer_id!,
      policyId: policy_id!,
      ...who,
      accountId: account._id!,
      fileId: file.file_id!,
    }
  })

  const get = (url: string, headers: Sent['headers']): Sent => ({ method: 'GET', url, headers, body: null })
  const sent = (url: string, headers: Sent['headers'], body: object): Sent => ({
    method: 'POST',
    url,
    headers,
    body: JSON.stringify(body),
  })
  const linkOf = ({ tenant, employerId, policyId }: Employer) => ({
    employer_id: employerId,
    carrier_id: tenant.carrierId,
    policy_id: policyId,
    premium_cents: 125_000,
    payment_type: 'ONE_TIME',
    payment_context: 'full_payment',
    customer: { name: 'Employer LLC', email: 'office@employer.example' },
    delivery: { email: false, sms: false },
  })
  const links: { readonly id: string; readonly tenant: Tenant }[] = []
  let paid = 0
  const requests: Readonly<Record<RequestKind, (employer: Employer, round: number) => Sent>> = {
    report: ({ tenant, ...who }, round) => ({
      method: 'POST',
      url: `${core}/api/v1/payroll/reports`,
      headers: tenant.headers,
      body: reportOf(who, round + 1),
    }),
    statusRead: ({ tenant, fileId }) => get(`${core}/api/v1/files/status/${fileId}`, tenant.headers),
    toolCall: ({ tenant, employerId, policyId }, round) =>
      sent(`${mcp}/mcp`, tenant.agent, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'validate_payroll_submission',
          arguments: { employer_id: employerId, policy_id: policyId, rows: rowsOf(round) },
        },
      }),
    debit: ({ tenant, employerId, policyId, accountId }) =>
      sent(`${api}/ach/debits`, tenant.headers, {
        employer_id: employerId,
        carrier_id: tenant.carrierId,
        policy_id: policyId,
        bank_account_id: accountId,
        amount_cents: 12_550,
        payment_purpose: 'paygo',
      }),
    ledgerRead: ({ tenant, employerId }) =>
      get(`${api}/ach/transactions?employer_id=${employerId}`, tenant.headers),
    link: (employer) => sent(`${api}/payment-links`, employer.tenant.headers, linkOf(employer)),
    linkPaid: () => {
      const link = links[paid++]
      if (!link) throw new Error('No link is left to be paid')
      return sent(`${api}/payment-links/${link.id}/simulate-completion`, link.tenant.headers, {})
    },
  }
  return {
    request: (kind, n) => requests[kind](employers[n % employers.length]!, Math.floor(n / employers.length)),
    async prepareLinks(count) {
      await throughput(count, AT_ONCE, async (n) => {
        const employer = employers[n % employers.length]!
        const { _id } = await post(`${api}/payment-links`, employer.tenant.headers, linkOf(employer))
        links.push({ id: _id!, tenant: employer.tenant })
      })
    },
  }
}

/** @param round of the employer's reports; with each some of its people have left and new ones came. */
function reportOf(who: Pick<Employer, 'fein' | 'policyNumber'>, round: number): string {
  const { peoplePerEmployer, newPeople } = CALENDAR
  const left = Math.floor(round * peoplePerEmployer * newPeople)
  const people = Array.from({ length: peoplePerEmployer }, (_, n) =>
    employee(left + n, round, `${who.fein}-`),
  )
  return reportBody(who, people)
}

function rowsOf(round: number): readonly object[] {
  return [0, 1, 2].map((n) => ({
    employee_first_name: `First${n}`,
    employee_last_name: `Last${n}`,
    class_code: '5403',
    state: 'CA',
    gross_wages: 1500 + ((n + round * 7) % 4000) / 4,
  }))
}

/** @returns what was made. */
async function post(url: string, headers: Sent['headers'], body: object): Promise<Record<string, string>> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const told = (await answer.json()) as { data?: Record<string, string> }
  if (!answer.ok) throw new Error(`POST ${url} answered ${answer.status}: ${JSON.stringify(told)}`)
  return told.data ?? (told as Record<string, string>)
}
