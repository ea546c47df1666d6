import type { CommandContext } from '../application/commands/command-context.ts'
import { CommandHandler } from '../application/commands/command-handler.ts'
import { EventRegistry } from '../application/commands/event-registry.ts'
import { bankDebit } from '../domain/banking/debits/bank-debit.ts'
import type { BankDebitData } from '../domain/banking/debits/bank-debit-events.ts'
import { legacyCollection } from '../domain/banking/legacy/legacy-collection.ts'
import { aggregates } from '../domain/catalogue.ts'
import { isoTime } from '../domain/kernel/calendar.ts'
import type { Decider } from '../domain/kernel/decider.ts'
import type { DomainEvent } from '../domain/kernel/event-type.ts'
import { newYorkDate } from '../domain/kernel/new-york.ts'
import { isRejection } from '../domain/kernel/rejection.ts'
import { policy } from '../domain/policies/policy.ts'
import { openOurLog } from './our-log.ts'
import type { Participants } from './servers.ts'
import { throughput } from './statistics.ts'

// All that the measurements know of bank debits that wait for a run of the batch worker, and of what the gates ask.

/** Employers that the debits are of, in turn; each has a policy, and one debit of before. */
const EMPLOYERS = 1_000
/** Of as many debits in a row, one is stopped by each gate. */
const STOPPED_OF = 100
const USUAL_CENTS = 50_000
/** Streams that are stored at the same time. */
const AT_ONCE = 64

/** What a run makes of the debits. */
export interface Expected {
  readonly scheduled: number
  readonly failed: number
  readonly legacy_collected: number
  readonly cancelled: number
  readonly quarantined: number
}

/** Whose debits they are, and when they were created, epoch milliseconds. */
export interface Sent extends Pick<Participants, 'carrierId'> {
  readonly tenantId: string
  readonly at: number
}

const idOf = (kind: number, n: number) => (kind * 2 ** 40 + n).toString(16).padStart(24, '0')

/**
 * Stores debits that wait, with their policies and what is known of their employers, straight into the log of a service
 * that is stopped.
 * @param count a multiple of 100.
 */
export async function storePendingDebits(url: string, count: number, sent: Sent): Promise<Expected> {
  const { log, close } = await openOurLog({ url }, { isExclusive: true })
  const { tenantId: tenant_id, carrierId: carrier_id, at } = sent
  const commands = new CommandHandler(log, new EventRegistry(aggregates), { kind: 'virtual', now: () => at })
  const context = (commandId: string): CommandContext => ({
    actor: { type: 'operator', id: 'bench' },
    tenantId: tenant_id,
    environment: 'live',
    correlationId: 'bench',
    commandId,
  })
  const execute = async <State, Command extends { readonly type: string }, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    id: string,
    todo: Command | readonly Command[],
  ) => {
    const outcome = await commands.execute(decider, id, todo, context(`bench/${id}`))
    if (isRejection(outcome)) throw new Error(outcome.message)
  }
  const whose = (employer: number, policyOf = 2) => ({
    tenant_id,
    environment: 'live' as const,
    carrier_id,
    employer_id: idOf(1, employer),
    policy_id: idOf(policyOf, employer),
  })
  const today = newYorkDate(at)
  const debit = (leg_id: string, data: Partial<BankDebitData<'BankDebitCreated'>>) => ({
    type: 'Create' as const,
    data: {
      leg_id,
      ...whose(0),
      source: 'api' as const,
      payment_session_id: null,
      installment_number: null,
      collection_id: null,
      file_id: null,
      check_date: null,
      period: null,
      amount_cents: USUAL_CENTS,
      payment_purpose: 'paygo' as const,
      description: 'Premium',
      bank_account_id: idOf(9, 0),
      account: {
        account_ref: 'ach-account/bench',
        fingerprint: idOf(9, 0),
        account_last4: '6789',
        account_type: 'checking' as const,
      },
      effective_date: today,
      metadata: {},
      settlement_type: null,
      cancellation_deadline: null,
      ingested_at: isoTime(at),
      created_at: isoTime(at),
      ...data,
    },
  })
  try {
    await throughput(EMPLOYERS, AT_ONCE, async (n) => {
      const terms = {
        class_codes: ['8810'],
        states: ['CA'],
        locations: [],
        rates: [],
        fees: [],
        payroll_frequency: 'WEEKLY',
        annual_premium_cents: null,
        overtime_exclusion: false,
      }
      const issue = (policyOf: number, billing_type: 'PAY_AS_YOU_GO' | 'DIRECT_BILLING') => ({
        type: 'Issue' as const,
        data: {
          ...whose(n, policyOf),
          ...terms,
          billing_type,
          policy_number: idOf(policyOf, n),
          status: 'active' as const,
          effective_date: '2020-01-01',
          expiration_date: '2099-12-31',
        },
      })
      await execute(policy, idOf(2, n), issue(2, 'PAY_AS_YOU_GO'))
      await execute(policy, idOf(3, n), issue(3, 'DIRECT_BILLING'))
      const created = debit(idOf(4, n), whose(n))
      await execute(bankDebit, idOf(4, n), [created, { type: 'Schedule', at }, { type: 'Acknowledge', at }])
      const { employer_id } = whose(n)
      const record = {
        transaction_id: idOf(5, n),
        tenant_id,
        environment: 'live' as const,
        employer_id,
        carrier_id,
        policy_id: null,
        period_start: today,
        period_end: today,
        premium_cents: 1_234,
        status: 'sb_remit' as const,
        import: null,
        recorded_at: isoTime(at),
      }
      await execute(legacyCollection, idOf(5, n), { type: 'Record' as const, data: record })
    })
    const stoppedBy: readonly ((employer: number) => Partial<BankDebitData<'BankDebitCreated'>>)[] = [
      (employer) => whose(employer, 3),
      () => ({ amount_cents: 1_234 }),
      () => ({ ingested_at: '2026-01-01T00:00:00.000Z' }),
      () => ({ amount_cents: 2 * USUAL_CENTS + 1 }),
    ]
    await throughput(count, AT_ONCE, async (n) => {
      const employer = n % EMPLOYERS
      // the gates stop others in each round of the employers
      const kind = (n + Math.floor(n / EMPLOYERS)) % STOPPED_OF
      const data = { ...whose(employer), ...stoppedBy[kind]?.(employer) }
      await execute(bankDebit, idOf(6, n), debit(idOf(6, n), data))
    })
    const stopped = count / STOPPED_OF
    return {
      scheduled: count - 4 * stopped,
      failed: stopped,
      legacy_collected: stopped,
      cancelled: stopped,
      quarantined: stopped,
    }
  } finally {
    await close()
  }
}
