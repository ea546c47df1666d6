import type { BankDebit } from '../../domain/banking/bank-debit.ts'
import { bankDebit } from '../../domain/banking/bank-debit.ts'
import { BankDebitCreated } from '../../domain/banking/bank-debit-events.ts'
import { nextClose } from '../../domain/banking/banking-days.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import type { PaymentSession } from '../../domain/payments/payment-session.ts'
import { PaymentSessionDebitArranged } from '../../domain/payments/payment-session-events.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable, within } from '../command-handling/verbs.ts'
import { opened } from '../sealed-fields.ts'
import { employerSubject, sealFields } from '../sealing.ts'

/** What of an arranged session is debited. Amounts are cents. */
export interface DebitOfSession {
  readonly legId: string
  readonly amountCents: number
  /** Of a later instalment, from 1; null: what is paid at signing. */
  readonly installmentNumber: number | null
}

/** Creates the debit of a session, once: its id says for what it is. An instalment is the service's own doing, and can be cancelled until its batch closes. */
export async function createDebit(
  app: Application,
  session: PaymentSession,
  { legId, amountCents, installmentNumber }: DebitOfSession,
  context: CommandContext,
): Promise<BankDebit> {
  const known = (await app.commands.load(bankDebit, legId)).state
  if (known) return known
  const { tenant_id, environment, employer_id, carrier_id, policy_id, payment_session_id, plan } = session
  const { settlement_type = null } = (await app.commands.load(carrier, carrier_id)).state ?? {}
  const isInstalment = installmentNumber !== null
  const now = app.clock.now()
  const data = await sealFields(
    app.personalData,
    BankDebitCreated,
    {
      ...{ leg_id: legId, tenant_id, environment, employer_id, carrier_id, policy_id },
      ...{ source: isInstalment ? ('instalment' as const) : ('session' as const), payment_session_id },
      ...{ installment_number: installmentNumber, amount_cents: amountCents },
      payment_purpose: isInstalment
        ? ('installment' as const)
        : plan
          ? ('down_payment' as const)
          : ('extra_payment' as const),
      ...{ description: session.description, account: await accountOf(app, session), settlement_type },
      cancellation_deadline: isInstalment ? isoTime(nextClose(now)) : null,
      created_at: isoTime(now),
    },
    () => employerSubject(app.personalData, employer_id),
  )
  const outcome = await app.commands.execute(
    bankDebit,
    legId,
    { type: 'Create', data },
    within(context, session),
  )
  // another attempt was faster
  if (isRejection(outcome)) return (await app.commands.load(bankDebit, legId)).state!
  const created = await readable(app, bankDebit, outcome)
  if (isRejection(created)) throw new Error(created.message)
  return created
}

/** The payer's account in plain text, to be sealed anew for the debit. */
async function accountOf({ personalData }: Application, { payment_session_id, debit }: PaymentSession) {
  const { data } = await opened(personalData, [
    { schema: PaymentSessionDebitArranged.schema, data: { payment_session_id, account: debit!.account } },
  ])
  return (data[0] as { account: Record<string, string> }).account as unknown as BankDebit['account']
}
