import { setTimeout as delay } from 'node:timers/promises'
import { employeeRecord, reportBody } from '../support/core.ts'
import { payrollRow, type SeededTenant } from '../support/seed.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import type { RunningService } from '../support/service.ts'
import { type Account, InsistentCaller } from './insistent-caller.ts'

/** One row of payroll that was sent. */
export interface SentRow {
  readonly classCode: string
  readonly state: string
  readonly cents: number
}

/** A payroll file that was acknowledged; what it holds can be had again from its seed. */
export interface AcknowledgedFile {
  readonly fileId: string
  readonly source: 'report' | 'tool'
  readonly rows: number
  readonly seed: number
}

/** What clients were promised, by what they have to find again. */
export interface Acknowledged {
  readonly files: AcknowledgedFile[]
  /** Employee syncs: file id and number of records. */
  readonly syncs: { readonly fileId: string; readonly records: number }[]
  /** Ids of employers by name. */
  readonly employers: Map<string, string>
  /** Numbers of policy changes in the order in which they were made. */
  readonly policyChanges: number[]
}

/** A policy change carries no key: it must not be sent again while a frozen process may still make it. */
const PATIENT_TRY_MS = 45_000
/** People are reported again and again, as in life. */
const PEOPLE = 3_000

/** The rows that a seed stands for; every 41st has a class code that no policy knows. */
export function sentRows(rows: number, seed: number): SentRow[] {
  return Array.from({ length: rows }, (_, index) => ({
    classCode: index % 41 === 40 ? '0000' : index % 3 === 0 ? '5403' : '8810',
    state: (index + seed) % 2 === 0 ? 'CA' : 'NV',
    cents: 100_000 + ((index * 7_919 + seed * 104_729) % 400_000),
  }))
}

/** Rates of the n-th policy change: dollars per 100 dollars, as decimal strings. */
export function changedRates(n: number): Record<string, unknown>[] {
  return ['8810', '5403'].flatMap((class_code, at) =>
    ['CA', 'NV'].map((state, other) => ({
      class_code,
      state,
      rate_per_100: (1 + 4 * at + other + (n % 17) * 0.13).toFixed(2),
    })),
  )
}

/**
 * Clients of an installation. Each sends one request after the other, to any API process, under a key that it keeps
 * until it is answered: across refusals, lost connections, and answers that do not come in time.
 */
export class InsistentClients {
  readonly acknowledged: Acknowledged = { files: [], syncs: [], employers: new Map(), policyChanges: [] }
  readonly #caller: InsistentCaller
  readonly #tenant: SeededTenant
  readonly #operator: Record<string, string>
  readonly #random: SeededRandom
  #over = false

  /** @param apis the API processes that are there at the moment, whether they answer or not. */
  constructor(
    apis: () => readonly RunningService[],
    tenant: SeededTenant,
    operatorToken: string,
    random: SeededRandom,
  ) {
    this.#caller = new InsistentCaller(apis, random)
    this.#tenant = tenant
    this.#operator = { Authorization: `Bearer ${operatorToken}` }
    this.#random = random
  }

  /** Sends until {@link end} was called and everything is answered. @throws when something is refused for good. */
  async run(): Promise<void> {
    const { between } = this.#random
    const small = (name: string) =>
      this.#again((n) => this.#report(`small-${name}-${n}`, between(1, 6), { most: 40 }))
    await Promise.all([
      ...['a', 'b', 'c'].map(small),
      ...['a', 'b'].map((name) =>
        this.#again((n) => this.#report(`large-${name}-${n}`, between(1_200, 6_000), { most: 1_500 })),
      ),
      this.#again((n) => this.#submit(`tool-${n}`, n % 20 === 0 ? between(600, 2_500) : between(1, 8))),
      this.#again((n) => this.#sync(`sync-${n}`, n % 20 === 0 ? 1_100 : between(1, 10))),
      this.#again((n) => this.#changePolicy(n + 1)),
      this.#again((n) => this.#createEmployer(n)),
    ])
  }

  end(): void {
    this.#over = true
  }

  /** How they fared. */
  get account(): Account {
    return this.#caller.account
  }

  async #again(send: (n: number) => Promise<void>): Promise<void> {
    for (let n = 0; !this.#over; n += 1) await send(n)
  }

  async #report(key: string, rows: number, { most }: { most: number }): Promise<void> {
    const seed = this.#random.between(0, 1_000_000)
    const employees = sentRows(rows, seed).map(({ classCode, state, cents }, index) =>
      employeeRecord({
        employee_id: `E-${(seed + index) % PEOPLE}`,
        last_name: `Baker ${(seed + index) % PEOPLE}`,
        class_code: classCode,
        state,
        gross_wages: cents / 100,
      }),
    )
    const { body } = await this.#caller.ask(key.split('-')[0]!, {
      to: ({ coreUrl }) => `${coreUrl}/api/v1/payroll/reports`,
      headers: { ...this.#tenant.clientHeaders, 'Idempotency-Key': key },
      body: reportBody(this.#tenant, { employees }),
    })
    this.acknowledged.files.push({ fileId: body.file_id ?? body.report_id, source: 'report', rows, seed })
    await delay(this.#random.between(0, most))
  }

  async #submit(key: string, rows: number): Promise<void> {
    const seed = this.#random.between(0, 1_000_000)
    const payroll = sentRows(rows, seed).map(({ classCode, state, cents }, index) =>
      payrollRow({
        employee_last_name: `Agent ${(seed + index) % PEOPLE}`,
        class_code: classCode,
        state,
        gross_wages: cents / 100,
      }),
    )
    const { employerId, policyId, apiKey } = this.#tenant
    const answer = await this.#caller.ask('tool', {
      to: ({ mcpUrl }) => `${mcpUrl}/mcp`,
      headers: { Authorization: `Bearer ${apiKey}` },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'submit_payroll_data',
          arguments: { employer_id: employerId, policy_id: policyId, rows: payroll, idempotency_key: key },
        },
      },
    })
    const { file_id } = JSON.parse(answer.body.result.content[0].text)
    this.acknowledged.files.push({ fileId: file_id, source: 'tool', rows, seed })
    await delay(this.#random.between(0, 150))
  }

  async #sync(key: string, records: number): Promise<void> {
    const first = this.#random.between(0, PEOPLE)
    const employees = Array.from({ length: records }, (_, index) => ({
      employee_id: `E-${(first + index) % PEOPLE}`,
      action: 'update',
      gross_wages: 1_000 + index,
    }))
    const { body } = await this.#caller.ask('sync', {
      to: ({ coreUrl }) => `${coreUrl}/api/v1/employees/sync`,
      headers: { ...this.#tenant.clientHeaders, 'Idempotency-Key': key },
      body: { employer_id: this.#tenant.employerId, employees },
    })
    this.acknowledged.syncs.push({ fileId: body.file_id, records })
    await delay(this.#random.between(0, 150))
  }

  async #changePolicy(n: number): Promise<void> {
    await this.#caller.ask('policy', {
      method: 'PATCH',
      to: ({ opsUrl }) => `${opsUrl}/ops/v1/policies/${this.#tenant.policyId}`,
      headers: this.#operator,
      body: { rates: changedRates(n), fees: [{ label: 'Change', amount_cents: n }] },
      tryMs: PATIENT_TRY_MS,
    })
    this.acknowledged.policyChanges.push(n)
    await delay(this.#random.between(0, 800))
  }

  async #createEmployer(n: number): Promise<void> {
    const name = `Employer ${n}`
    const { body } = await this.#caller.ask('employer', {
      to: ({ opsUrl }) => `${opsUrl}/ops/v1/employers`,
      headers: { ...this.#operator, 'Idempotency-Key': `employer-${n}` },
      body: {
        tenant_id: this.#tenant.tenantId,
        legal_name: name,
        fein: `99-${String(n).padStart(7, '0')}`,
        payroll_company_ids: [this.#tenant.payrollCompanyId],
      },
    })
    this.acknowledged.employers.set(name, body.data.employer_id)
    await delay(this.#random.between(0, 800))
  }
}
