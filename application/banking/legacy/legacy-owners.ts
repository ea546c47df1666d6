import type { ImportedRow } from '../../../domain/banking/legacy/legacy-import.ts'
import type { Environment } from '../../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { policy } from '../../../domain/policies/policy.ts'
import type { Application } from '../../commands/application.ts'
import { RecentlyUsed } from '../../commands/recently-used.ts'

/** What a record of the legacy service says. */
export type LegacyRecord = Omit<ImportedRow, 'line'>

/** A record whose ids were found, with the carrier of its policy, and in whose account it is. */
export interface OwnedRecord<Row extends LegacyRecord = LegacyRecord> {
  readonly tenantId: string
  readonly environment: Environment
  readonly record: Row
}

/** Employers, policies and carriers that are remembered, of each. */
const REMEMBERED = 50_000

interface Insured {
  readonly tenant_id: string
  readonly environment: Environment
}
interface Covered {
  readonly employer_id: string
  readonly carrier_id: string
}

/**
 * Finds whose records are. What exists is looked up once, since whose it is never changes; what does not may exist with the
 * next records.
 */
export class LegacyOwners {
  readonly #app: Pick<Application, 'commands'>
  readonly #employers = new RecentlyUsed<string, Insured>(REMEMBERED)
  readonly #policies = new RecentlyUsed<string, Covered>(REMEMBERED)
  /** Tenants by carrier. */
  readonly #carriers = new RecentlyUsed<string, string>(REMEMBERED)

  constructor(app: Pick<Application, 'commands'>) {
    this.#app = app
  }

  /** Each record with whose it is, or why it cannot be anybody's. */
  async of<Row extends LegacyRecord>(
    records: readonly Row[],
  ): Promise<readonly (OwnedRecord<Row> | Rejection)[]> {
    await this.#lookUp(records)
    return records.map((record) => this.#owned(record))
  }

  async #lookUp(records: readonly LegacyRecord[]): Promise<void> {
    const { commands } = this.#app
    const employers = new Set<string>()
    const policies = new Set<string>()
    const carriers = new Set<string>()
    for (const { employer_id, policy_id, carrier_id } of records) {
      if (!this.#employers.get(employer_id)) employers.add(employer_id)
      if (policy_id !== null && !this.#policies.get(policy_id)) policies.add(policy_id)
      if (carrier_id !== null && !this.#carriers.get(carrier_id)) carriers.add(carrier_id)
    }
    for (const { state } of await commands.loadAll(employer, [...employers])) {
      if (!state) continue
      const { employer_id, tenant_id, environment } = state
      this.#employers.set(employer_id, { tenant_id, environment })
    }
    for (const { state } of await commands.loadAll(policy, [...policies])) {
      if (!state) continue
      const { policy_id, employer_id, carrier_id } = state
      this.#policies.set(policy_id, { employer_id, carrier_id })
    }
    for (const { state } of await commands.loadAll(carrier, [...carriers])) {
      if (state) this.#carriers.set(state.carrier_id, state.tenant_id)
    }
  }

  #owned<Row extends LegacyRecord>(record: Row): OwnedRecord<Row> | Rejection {
    if (record.period_end < record.period_start) {
      const message = 'period_end must not lie before period_start'
      return reject('invalid', 'period_ends_before_start', message, 'period_end')
    }
    const insured = this.#employers.get(record.employer_id)
    if (!insured) return unknown('employer', 'employer_id names no employer')
    const { tenant_id: tenantId, environment } = insured
    if (record.policy_id === null) {
      if (record.carrier_id !== null && this.#carriers.get(record.carrier_id) !== tenantId) {
        return unknown('carrier', "carrier_id names no carrier of the employer's tenant")
      }
      return { tenantId, environment, record }
    }
    const covered = this.#policies.get(record.policy_id)
    if (covered?.employer_id !== record.employer_id) {
      return unknown('policy', 'policy_id names no policy of the employer')
    }
    const { carrier_id } = covered
    if (record.carrier_id === carrier_id) return { tenantId, environment, record }
    if (record.carrier_id !== null) {
      return reject('invalid', 'other_carrier', 'carrier_id is not the carrier of the policy', 'carrier_id')
    }
    return { tenantId, environment, record: { ...record, carrier_id } }
  }
}

function unknown(what: 'employer' | 'carrier' | 'policy', message: string): Rejection {
  return reject('not_found', `${what}_not_found`, message, `${what}_id`)
}
