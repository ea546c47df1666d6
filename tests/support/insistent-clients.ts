import { setTimeout as delay } from 'node:timers/promises'
import { employeeRecord, reportBody } from './core.ts'
import { type Answer, payrollRow, type SeededTenant } from './seed.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { RunningService } from './service.ts'

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

/** How clients fared. */
export interface Account {
  requests: number
  answered: number
  /** Requests that were sent again, by the reason: a status, or what the connection said. */
  readonly retries: Map<string, number>
  /** The longest that one request went without an answer over all its tries, in milliseconds, by its kind. */
  readonly longest: Map<string, number>
  /** The longest time in which no request of anybody was answered, in milliseconds. */
  longestSilence: number
}

interface KeyedRequest {
  readonly method?: string
  readonly to: (api: RunningService) => string
  readonly headers: Record<string, string>
  readonly body: unknown
  /** How long a try may take, in milliseconds. */
  readonly tryMs?: number
}

/** A client gives up a try after so long, and asks another process; processes are frozen for longer. */
const TRY_MS = 8_000
/** A policy change carries no key: it must not be sent again while a frozen process may still make it. */
const PATIENT_TRY_MS = 45_000
const RETRY_MS = 60
/** A request that is not answered for so long is a failure of the service. */
const GIVE_UP_MS = 300_000
/** People are reported again and again, as in life. */
const PEOPLE = 3_000
/** What a server may say while it, or what it depends on, is away; 409: the first try is still under way. */
const TRANSIENT = [409, 500, 502, 503, 504]
const INTERNAL_ERROR = -32603

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
  readonly account: Account = {
    requests: 0,
    answered: 0,
    retries: new Map(),
    longest: new Map(),
    longestSilence: 0,
  }
  #answeredAt = performance.now()
  readonly #apis: () => readonly RunningService[]
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
    this.#apis = apis
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
    const { body } = await this.#insist(key.split('-')[0]!, {
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
    const answer = await this.#insist('tool', {
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
    const { body } = await this.#insist('sync', {
      to: ({ coreUrl }) => `${coreUrl}/api/v1/employees/sync`,
      headers: { ...this.#tenant.clientHeaders, 'Idempotency-Key': key },
      body: { employer_id: this.#tenant.employerId, employees },
    })
    this.acknowledged.syncs.push({ fileId: body.file_id, records })
    await delay(this.#random.between(0, 150))
  }

  async #changePolicy(n: number): Promise<void> {
    await this.#insist('policy', {
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
    const { body } = await this.#insist('employer', {
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

  /** Sends a request until it is answered, each try to any API process. */
  async #insist(kind: string, request: KeyedRequest): Promise<{ body: Answer['body'] }> {
    const { account } = this
    account.requests += 1
    const began = performance.now()
    const text = JSON.stringify(request.body)
    for (;;) {
      const apis = this.#apis()
      const why = apis.length === 0 ? 'no process' : await this.#try(request, text, this.#random.pick(apis))
      if (typeof why !== 'string') {
        this.#noteAnswer()
        const took = performance.now() - began
        account.longest.set(kind, Math.max(account.longest.get(kind) ?? 0, Math.round(took)))
        return why
      }
      account.retries.set(why, (account.retries.get(why) ?? 0) + 1)
      if (performance.now() - began > GIVE_UP_MS) throw new Error(`${kind}: never answered, at last ${why}`)
      await delay(RETRY_MS)
    }
  }

  #noteAnswer(): void {
    const now = performance.now()
    this.account.answered += 1
    this.account.longestSilence = Math.max(this.account.longestSilence, Math.round(now - this.#answeredAt))
    this.#answeredAt = now
  }

  /** @returns why it has to be tried again, or the answer. */
  async #try(
    request: KeyedRequest,
    text: string,
    api: RunningService,
  ): Promise<string | { body: Answer['body'] }> {
    const { method = 'POST', to, headers, tryMs = TRY_MS } = request
    let status: number
    let answer: string
    try {
      const response = await fetch(to(api), {
        method,
        headers: { 'Content-Type': 'application/json', ...headers },
        body: text,
        signal: AbortSignal.timeout(tryMs),
      })
      status = response.status
      answer = await response.text()
    } catch (error) {
      const { name, cause } = error as { name: string; cause?: { code?: string } }
      return cause?.code ?? name
    }
    if (TRANSIENT.includes(status)) return String(status)
    const body = JSON.parse(answer)
    if (body.error?.code === INTERNAL_ERROR) return 'internal error'
    if (status >= 400 || body.error) throw new Error(`${method} ${to(api)} was refused: ${status} ${answer}`)
    return { body }
  }
}
