import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { CommandHandler } from '../application/commands/command-handler.ts'
import { EventRegistry } from '../application/commands/event-registry.ts'
import { aggregates } from '../domain/catalogue.ts'
import { isoTime } from '../domain/kernel/calendar.ts'
import { isRejection } from '../domain/kernel/rejection.ts'
import type { Sealed } from '../domain/kernel/sealed.ts'
import { paymentSession } from '../domain/payments/sessions/payment-session.ts'
import type { PaymentSessionData } from '../domain/payments/sessions/payment-session-events.ts'
import { schedule, sessionPlan } from '../domain/payments/sessions/session-plan.ts'
import { openOurLog } from './our-log.ts'
import type { Participants } from './servers.ts'
import { throughput } from './statistics.ts'

// All that the measurements know of sessions that sell plans, and of what the log holds of them.

const DAY_MS = 86_400_000
/** Cents of each plan: nothing down, so that an installment is all that there is. */
const TOTAL_CENTS = 120_000
/** Sessions that are stored at the same time. */
const AT_ONCE = 64
const LOOK_AGAIN_MS = 1_000
const sealed = 'sld1.employer/bench.AAAA' as Sealed

/** Whose sessions they are, and when their payers authorized them, epoch milliseconds. */
export interface Sold extends Pick<Participants, 'employerId' | 'carrierId' | 'policyId'> {
  readonly tenantId: string
  readonly at: number
}

/**
 * Stores sessions whose plans of one installment are authorized, straight into the log of a service that is stopped.
 * @returns when the installments are due, epoch milliseconds.
 */
export async function storeArrangedPlans(url: string, count: number, sold: Sold): Promise<number> {
  const { log, close } = await openOurLog({ url }, { isExclusive: true })
  const {
    tenantId: tenant_id,
    employerId: employer_id,
    carrierId: carrier_id,
    policyId: policy_id,
    at,
  } = sold
  const commands = new CommandHandler(log, new EventRegistry(aggregates), { kind: 'virtual', now: () => at })
  const context = {
    actor: { type: 'operator', id: 'bench' } as const,
    tenantId: tenant_id,
    environment: 'live' as const,
    correlationId: 'bench',
  }
  const plan = sessionPlan(TOTAL_CENTS, 0, 1)
  try {
    await throughput(count, AT_ONCE, async (n) => {
      const payment_session_id = n.toString(16).padStart(24, '0')
      const data: PaymentSessionData<'PaymentSessionCreated'> = {
        payment_session_id,
        tenant_id,
        environment: 'live',
        employer_id,
        carrier_id,
        policy_id,
        mode: 'link',
        amount_cents: 0,
        premium_cents: TOTAL_CENTS,
        fee_cents: 0,
        line_items: [{ label: 'Premium', amount_cents: TOTAL_CENTS }],
        plan,
        description: 'Policy 2026',
        single_use: true,
        customer: { name: sealed, email: sealed, phone: null },
        config_version: 1,
        token_hash: 'f'.repeat(64),
        token_prefix: 'bench000',
        host_is_custom: false,
        replaces: null,
        created_by: null,
        created_at: isoTime(at),
        expires_at: isoTime(at + DAY_MS),
      }
      const account = {
        account_ref: `payer-account/${payment_session_id}`,
        fingerprint: payment_session_id,
        account_last4: '6789',
        account_type: 'checking' as const,
      }
      const outcome = await commands.execute(
        paymentSession,
        payment_session_id,
        [
          { type: 'Create', data, checkout: null },
          { type: 'ArrangeDebit', debitId: payment_session_id, account, at },
        ],
        { ...context, commandId: `sold/${n}` },
      )
      if (isRejection(outcome)) throw new Error(outcome.message)
    })
    return schedule(plan, at)[0]!.dueAt
  } finally {
    await close()
  }
}

/** Waits while installments that are due are not created, by a look a second. */
export async function whileAnyIsLeft(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    for (;;) {
      const { rows } = await client.query(
        `SELECT FROM runtime.work WHERE process_manager = 'payment-sessions' AND kind = 'mint' AND state <> 'later' LIMIT 1`,
      )
      if (rows.length === 0) return
      await delay(LOOK_AGAIN_MS)
    }
  } finally {
    await client.end()
  }
}

/** How often installments were created, debits created and partners told. @throws Error unless each was, once. */
export async function expectEachCreatedOnce(url: string, count: number): Promise<void> {
  const { database, close } = await openOurLog({ url })
  try {
    const { rows } = await database.pool.query<{ what: string; events: number; sessions: number }>(
      `SELECT type AS what, count(*)::int AS events, count(DISTINCT session)::int AS sessions FROM (
         SELECT type, COALESCE(data ->> 'payment_session_id', data -> 'payload' ->> 'payment_session_id') AS session
         FROM event_log.events
         WHERE type IN ('PaymentSessionInstalmentMinted', 'BankDebitCreated', 'WebhookEventRaised')) AS minted
       GROUP BY type`,
    )
    for (const what of ['PaymentSessionInstalmentMinted', 'BankDebitCreated', 'WebhookEventRaised']) {
      const { events = 0, sessions = 0 } = rows.find((row) => row.what === what) ?? {}
      if (events !== count || sessions !== count) {
        throw new Error(`${what}: ${events} events of ${sessions} sessions, not ${count} of ${count}`)
      }
    }
  } finally {
    await close()
  }
}
