import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import {
  isAwaited,
  type PaymentSession,
  sessionStatusAt,
  takesCards,
} from '../../../domain/payments/sessions/payment-session-status.ts'
import { schedule } from '../../../domain/payments/sessions/session-plan.ts'
import { installmentDebitId } from '../../banking/debits/session-debits.ts'
import type { Application } from '../../commands/application.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { logoPath } from '../pages/logos.ts'

/** How a debit stands, as the payer reads it. */
export type DebitProgress = 'arranged' | 'on_its_way' | 'collected' | 'returned' | 'stopped'

/** The payee, as a page shows it. */
export interface Brand {
  readonly name: string
  /** `#rrggbb`. */
  readonly accent: string | null
  /** Path of the copy of its logo on the host of hosted pages; null: the name stands alone. */
  readonly logo: string | null
  readonly supportEmail: string | null
  /** Origins that may show the page in a frame. */
  readonly embedOrigins: readonly string[]
}

/** The hosted page of a session: nothing of it is about the customer. Amounts are cents, times ISO 8601. */
export type PayerPage = Awaited<ReturnType<typeof payerPage>>

/** What the hosted page of a session shows, in whatever state. */
export async function payerPage(app: Application, session: PaymentSession, brand: Brand) {
  const now = app.clock.now()
  const status = sessionStatusAt(session, now)
  const { kind: processor, publishableKey } = app.processors[session.environment]
  const { debit } = session
  return {
    session,
    status,
    brand,
    processor,
    publishable_key: publishableKey,
    /** No money moves, whichever way it is paid. */
    is_test: processor === 'simulated' && app.bankRails[session.environment].kind === 'simulated',
    takes_cards: takesCards(session, now),
    /** When a card was declined, last; null: never. */
    last_failed_at: session.last_failed_at,
    takes_debits: isAwaited(status),
    /** Null: none was arranged, or nothing is paid by it at signing. */
    debit: debit?.leg_id ? await debitOf(app, debit.leg_id) : null,
    installments: await installmentsOf(app, session),
    total_cents: session.premium_cents + session.fee_cents,
  }
}

/** How a tenant is shown to payers. */
export async function brandOf({ commands }: Reads, tenantId: string): Promise<Brand> {
  const { settings, logo_id } = (await commands.load(checkoutSettings, tenantId)).state
  return {
    logo: logo_id === null ? null : logoPath(logo_id),
    name: settings.display_name ?? 'Payment',
    accent: settings.accent_color,
    supportEmail: settings.support_email,
    embedOrigins: settings.embed_origins,
  }
}

async function debitOf({ commands }: Pick<Application, 'commands'>, debitId: string) {
  const { state } = await commands.load(bankDebit, debitId)
  return { progress: progressOf(state), effective_date: state?.entry_date ?? null }
}

/** One that is not there yet will be. */
function progressOf(debit: BankDebit | null): DebitProgress {
  if (debit === null || debit.status === 'pending' || debit.status === 'Scheduled') return 'arranged'
  if (debit.status === 'returned') return 'returned'
  if (debit.status === 'failed' || debit.status === 'cancelled') return 'stopped'
  return debit.status === 'processed' || debit.match !== null ? 'collected' : 'on_its_way'
}

/** The schedule of a plan, each installment with what became of it; those that never come are `stopped`. */
async function installmentsOf(app: Application, session: PaymentSession) {
  const { plan, created_at, payment_session_id, debit, installments_created } = session
  if (plan === null) return []
  const isOver = session.plan_stopped || (debit !== null && session.status === 'cancelled')
  return Promise.all(
    schedule(plan, Date.parse(created_at)).map(async ({ number, amount_cents, dueAt }) => {
      const debitId = installments_created.includes(number)
        ? installmentDebitId(payment_session_id, number)
        : null
      const progress = debitId ? (await debitOf(app, debitId)).progress : isOver ? 'stopped' : 'due'
      return { number, amount_cents, due_at: isoTime(dueAt), progress } as const
    }),
  )
}
