import type { CalendarDate } from '../../kernel/calendar.ts'
import { newYorkDate } from '../../kernel/new-york.ts'
import type { Policy } from '../../policies/policy.ts'
import type { BankDebitData } from './bank-debit-events.ts'
import { type BankDebit, type DebitStatus, isGated, mayBeQuarantined } from './bank-debit-state.ts'

/**
 * What can stop a debit that was accepted: five gates, asked in order, of which the first that stops it gives the reason.
 * The sender of a debit has no say in them. Amounts are cents, times epoch milliseconds.
 */

/** Days that the recent debits of an employer go back. */
export const RECENT_DAYS = 90
/** Statuses of recent debits: those that did not fail. What is pending belongs to the run that asks. */
export const RECENT_STATUSES: readonly DebitStatus[] = [
  'Scheduled',
  'submitted',
  'processed',
  'legacy_collected',
]

/** What a gate makes of a debit that it stops. */
export type Stop = Omit<BankDebitData<'BankDebitGated'>, 'leg_id' | 'run_id' | 'at'>

const NOT_PAY_AS_YOU_GO: Stop = { gate: 'billing', status: 'failed', reason: 'non_paygo_blocked' }
const POLICY_INACTIVE: Stop = { gate: 'billing', status: 'failed', reason: 'policy_inactive_blocked' }
const COLLECTED_BEFORE: Stop = { gate: 'legacy', status: 'legacy_collected', reason: 'legacy_collected' }
const BEFORE_CUTOFF: Stop = { gate: 'cutoff', status: 'cancelled', reason: 'before_forward_cutoff' }
const ACCOUNT_UNLISTED: Stop = { gate: 'account', status: 'quarantined', reason: 'account_not_listed' }
const UNUSUAL_AMOUNT: Stop = {
  gate: 'anomaly',
  status: 'quarantined',
  reason: 'amount_anomaly_above_100pct_of_recent_average',
}

/** What of a policy tells whether it is billed as its payroll goes. */
export type BilledPolicy = Pick<Policy, 'billing_type' | 'status' | 'expiration_date'>

/** Debits of an employer in {@link RECENT_STATUSES}, created in the last {@link RECENT_DAYS} days. */
export interface RecentDebits {
  readonly count: number
  readonly sumCents: bigint
}

/** What the gates ask about a debit, as of now. */
export interface GateFacts {
  readonly policy: BilledPolicy
  /** Whether the legacy service collected it, or is about to. */
  readonly isCollectedByLegacy: boolean
  /** Debits whose source was accepted earlier are not collected. */
  readonly forwardCutoff: number
  readonly recent: RecentDebits
  /** Whether the bank link no longer lists the account that is debited. */
  readonly isUnlisted: boolean
}

type Dated = Pick<BankDebit, 'check_date' | 'effective_date' | 'created_at'>
type Gated = Dated & Pick<BankDebit, 'source' | 'status' | 'released_from' | 'amount_cents' | 'ingested_at'>

/** What stops a debit; null where nothing does, or no gate is asked about it. */
export function stopOf(debit: Gated, facts: GateFacts): Stop | null {
  if (!isGated(debit)) return null
  return (
    billingStop(debit, facts.policy) ??
    (facts.isCollectedByLegacy ? COLLECTED_BEFORE : null) ??
    (Date.parse(debit.ingested_at) < facts.forwardCutoff ? BEFORE_CUTOFF : null) ??
    (facts.isUnlisted && !debit.released_from.includes('account') ? ACCOUNT_UNLISTED : null) ??
    (mayBeQuarantined(debit) && isUnusual(debit.amount_cents, facts.recent) ? UNUSUAL_AMOUNT : null)
  )
}

/** The first gate: only policies in force that are billed as their payroll goes, or of which nothing is said. */
export function billingStop(debit: Dated, policy: BilledPolicy): Stop | null {
  const { billing_type, status, expiration_date } = policy
  if (billing_type !== null && billing_type !== 'PAY_AS_YOU_GO') return NOT_PAY_AS_YOU_GO
  return status === 'cancelled' || dateOf(debit) >= expiration_date ? POLICY_INACTIVE : null
}

/** The day that gates take a debit to be of: its file's check date, else the day asked for, else that of its creation. */
export function dateOf({ check_date, effective_date, created_at }: Dated): CalendarDate {
  return check_date ?? effective_date ?? newYorkDate(Date.parse(created_at))
}

/** Whether an amount is above twice the mean of recent debits; none is without them. */
export function isUnusual(amountCents: number, { count, sumCents }: RecentDebits): boolean {
  return count > 0 && BigInt(amountCents) * BigInt(count) > 2n * sumCents
}
