import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import type { BankDebit, DebitStatus } from '../../../domain/banking/debits/bank-debit-state.ts'
import {
  type BilledPolicy,
  dateOf,
  type GateFacts,
  RECENT_DAYS,
  RECENT_STATUSES,
  type RecentDebits,
} from '../../../domain/banking/debits/debit-gates.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { policy } from '../../../domain/policies/policy.ts'
import type { Application } from '../../commands/application.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { collectedByLegacy } from '../legacy/legacy-duplicates.ts'

const DAY_MS = 86_400_000
const NO_DEBITS: RecentDebits = { count: 0, sumCents: 0n }

interface RecentScope {
  readonly employers: readonly string[]
  readonly statuses: readonly DebitStatus[]
  /** Created since then, ISO 8601. */
  readonly since: string
  /** The run that asks. */
  readonly runId: string
}
const RECENT = statement('recent-bank-debits', (db, $: Parameter<RecentScope>) =>
  db
    .selectFrom('bank_debits')
    .select('employer_id')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      eb.cast<string>(eb.fn.sum('amount_cents'), 'text').as('sum_cents'),
    ])
    .where('employer_id', '=', ({ fn }) => fn.any($('employers')))
    .where('status', '=', ({ fn }) => fn.any($('statuses')))
    .where('created_at', '>=', $('since'))
    .where(({ eb, or }) => or([eb('run_id', 'is', null), eb('run_id', '<>', $('runId'))]))
    .groupBy('employer_id'),
)

/** What the gates ask about debits, found by a few looks for all of them; absent of those whose policy cannot be read. */
export type GateInquiry = (debits: readonly BankDebit[]) => Promise<ReadonlyMap<BankDebit, GateFacts>>

/**
 * Begins to gather what the gates ask about in one run of the batch worker. A policy is looked at once. No debit is held
 * against others of its run, not even what an earlier attempt at the run has scheduled.
 * @param runId the same for each attempt at the run.
 * @throws (when asked) ReadModelsLate when it cannot be told what the legacy service collected.
 */
export function gateInquiry(app: Application, runId: string): GateInquiry {
  const since = isoTime(app.clock.now() - RECENT_DAYS * DAY_MS)
  const policies = new Map<string, BilledPolicy | null>()
  const recent = new Map<string, RecentDebits>()
  const unlisted = new Map<string, boolean>()
  return async (debits) => {
    const [collected] = await Promise.all([
      collectedByLegacy(
        app,
        debits.map((debit) => {
          const { leg_id, employer_id, amount_cents, period } = debit
          return { leg_id, employer_id, amount_cents, period, effective_date: dateOf(debit) }
        }),
      ),
      learn(policies, idsOf(debits, 'policy_id'), (ids) => readPolicies(app, ids)),
      learn(unlisted, idsOf(debits, 'bank_account_id'), (ids) => readUnlisted(app, ids)),
      learn(recent, idsOf(debits, 'employer_id'), (ids) => readRecent(app, ids, { since, runId })),
    ])
    const isCollected = new Set([...collected].map(({ leg_id }) => leg_id))
    const facts = new Map<BankDebit, GateFacts>()
    for (const debit of debits) {
      const billed = policies.get(debit.policy_id)
      if (!billed) continue
      facts.set(debit, {
        policy: billed,
        isCollectedByLegacy: isCollected.has(debit.leg_id),
        forwardCutoff: app.forwardCutoff,
        recent: recent.get(debit.employer_id)!,
        isUnlisted: debit.bank_account_id !== null && unlisted.get(debit.bank_account_id) === true,
      })
    }
    return facts
  }
}

const idsOf = (debits: readonly BankDebit[], name: 'policy_id' | 'employer_id' | 'bank_account_id') => [
  ...new Set(debits.map((debit) => debit[name]).filter((id) => id !== null)),
]

/** Looks for what is not known yet. */
async function learn<Fact>(
  known: Map<string, Fact>,
  ids: readonly string[],
  look: (ids: readonly string[]) => Promise<ReadonlyMap<string, Fact>>,
): Promise<void> {
  const unknown = ids.filter((id) => !known.has(id))
  if (unknown.length === 0) return
  for (const [id, fact] of await look(unknown)) known.set(id, fact)
}

async function readPolicies(
  { commands }: Application,
  ids: readonly string[],
): Promise<ReadonlyMap<string, BilledPolicy | null>> {
  const policies = await commands.loadReadable(policy, ids)
  return new Map(ids.map((id, n) => [id, policies[n]!]))
}

/** Which accounts the bank link no longer lists. An account that cannot be read is reported when its batch is written. */
async function readUnlisted(
  { commands }: Application,
  ids: readonly string[],
): Promise<ReadonlyMap<string, boolean>> {
  const accounts = await commands.loadReadable(achAccount, ids)
  return new Map(ids.map((id, n) => [id, accounts[n]?.unlisted ?? false]))
}

async function readRecent(
  { read }: Application,
  employers: readonly string[],
  asked: Pick<RecentScope, 'since' | 'runId'>,
): Promise<ReadonlyMap<string, RecentDebits>> {
  const rows = await read.query(RECENT, { employers, statuses: RECENT_STATUSES, ...asked })
  const found = new Map(
    rows.map(({ employer_id, count, sum_cents }) => [employer_id, { count, sumCents: BigInt(sum_cents) }]),
  )
  return new Map(employers.map((id) => [id, found.get(id) ?? NO_DEBITS]))
}
