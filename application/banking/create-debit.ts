import { type BankDebit, bankDebit } from '../../domain/banking/bank-debit.ts'
import { nextClose } from '../../domain/banking/banking-days.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import type { PaymentSession } from '../../domain/payments/payment-session-status.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { within } from '../command-handling/verbs.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'

/** What of an arranged session is debited. Amounts are cents. */
export interface DebitOfSession {
  readonly legId: string
  readonly amountCents: number
  /** Of a later instalment, from 1; null: what is paid at signing. */
  readonly installmentNumber: number | null
}

/**
 * Creates the debit of a session, once: its id says for what it is. An instalment is the service's own doing, and partners
 * are told until when its batch is open.
 */
export async function createDebit(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  session: PaymentSession,
  { legId, amountCents, installmentNumber }: DebitOfSession,
  context: CommandContext,
): Promise<BankDebit> {
  const { tenant_id, environment, employer_id, carrier_id, policy_id, payment_session_id } = session
  const { settlement_type = null } = (await commands.load(carrier, carrier_id)).state ?? {}
  const isInstalment = installmentNumber !== null
  const now = clock.now()
  const data = {
    ...{ leg_id: legId, tenant_id, environment, employer_id, carrier_id, policy_id },
    ...{ source: isInstalment ? ('instalment' as const) : ('session' as const), payment_session_id },
    ...{ installment_number: installmentNumber, amount_cents: amountCents },
    payment_purpose: purposeOf(session, isInstalment),
    ...{ description: session.description, account: session.debit!.account, settlement_type },
    cancellation_deadline: isInstalment ? isoTime(nextClose(now)) : null,
    created_at: isoTime(now),
  }
  try {
    const created = await commands.create(
      bankDebit,
      legId,
      { type: 'Create', data },
      within(context, session),
    )
    if (isRejection(created)) throw new Error(created.message)
    return created.state!
  } catch (error) {
    // an earlier attempt has created it: what is new costs no look for that
    if (!(error instanceof WrongExpectedRevision)) throw error
    return (await commands.load(bankDebit, legId)).state!
  }
}

function purposeOf({ plan }: PaymentSession, isInstalment: boolean): BankDebit['payment_purpose'] {
  if (isInstalment) return 'installment'
  return plan === null ? 'extra_payment' : 'down_payment'
}
