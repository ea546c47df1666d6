import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { bankDebit, type EndedAtOnce } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebitData } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { nextClose } from '../../../domain/banking/debits/banking-days.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { within } from '../../commands/verbs.ts'
import { WrongExpectedRevision } from '../../ports/event-log.ts'

/** What only debits of some sources have. */
const NONE = {
  payment_session_id: null,
  installment_number: null,
  collection_id: null,
  file_id: null,
  check_date: null,
  period: null,
  bank_account_id: null,
  effective_date: null,
  metadata: {},
  cancellation_deadline: null,
} as const
type Created = BankDebitData<'BankDebitCreated'>

/** A debit, but for what the service knows itself: how its carrier settles, and the time. */
export type NewDebit = Omit<Created, 'settlement_type' | 'created_at' | 'ingested_at' | keyof typeof NONE> &
  Partial<Pick<Created, keyof typeof NONE>> & {
    /** ISO 8601, when its source was first accepted; absent: now. */
    readonly ingested_at?: string
  }

/**
 * Creates a debit, once: its id says for what it is. One that an earlier attempt has created is answered as it stands.
 * @param ending why it ends at once; absent: it waits for its batch.
 * @returns whether it is new, and where in the log it was created; null where it is not new.
 */
export async function createDebit(
  { commands, clock }: Pick<Application, 'commands' | 'clock'>,
  debit: NewDebit,
  context: CommandContext,
  ending?: EndedAtOnce,
): Promise<{ readonly debit: BankDebit; readonly position: bigint | null }> {
  const { settlement_type = null } = (await commands.load(carrier, debit.carrier_id)).state ?? {}
  const created_at = isoTime(clock.now())
  const data = { ...NONE, ingested_at: created_at, ...debit, settlement_type, created_at }
  const { leg_id } = debit
  try {
    const command = { type: 'Create', data, ...(ending && { ending }) } as const
    const created = orThrow(await commands.create(bankDebit, leg_id, command, within(context, debit)))
    return { debit: created.state!, position: created.position }
  } catch (error) {
    // an earlier attempt has created it: what is new costs no look for that
    if (!(error instanceof WrongExpectedRevision)) throw error
    return { debit: (await commands.load(bankDebit, leg_id)).state!, position: null }
  }
}

/** What of an arranged session is debited. Amounts are cents. */
export interface DebitOfSession {
  readonly debitId: string
  readonly amountCents: number
  /** Of a later installment, from 1; null: what is paid at signing. */
  readonly installmentNumber: number | null
}

/**
 * Creates the debit of a session, once: its id says for what it is. An installment is the service's own doing, and partners
 * are told until when its batch is open.
 */
export async function createSessionDebit(
  app: Pick<Application, 'commands' | 'clock'>,
  session: PaymentSession,
  { debitId, amountCents, installmentNumber }: DebitOfSession,
  context: CommandContext,
): Promise<BankDebit> {
  const { tenant_id, environment, employer_id, carrier_id, policy_id, payment_session_id } = session
  const isInstallment = installmentNumber !== null
  const created = await createDebit(
    app,
    {
      leg_id: debitId,
      tenant_id,
      environment,
      employer_id,
      carrier_id,
      policy_id,
      source: isInstallment ? ('instalment' as const) : ('session' as const),
      payment_session_id,
      installment_number: installmentNumber,
      amount_cents: amountCents,
      payment_purpose: purposeOf(session, isInstallment),
      description: session.description,
      account: session.debit!.account,
      cancellation_deadline: isInstallment ? isoTime(nextClose(app.clock.now())) : null,
    },
    context,
  )
  return created.debit
}

function purposeOf({ plan }: PaymentSession, isInstallment: boolean): BankDebit['payment_purpose'] {
  if (isInstallment) return 'installment'
  return plan === null ? 'extra_payment' : 'down_payment'
}

/**
 * Creates a debit of an ACH account, once, with the numbers that the account has now. A request that disables the account at the
 * same moment may not find the debit: it fails when its batch is handed over.
 * @param ending see {@link createDebit}.
 * @returns whether it is new, and where in the log it was created; null where it is not new.
 */
export async function createAccountDebit(
  app: Pick<Application, 'commands' | 'clock'>,
  debit: Omit<NewDebit, 'account'> & { readonly bank_account_id: string },
  context: CommandContext,
  ending?: EndedAtOnce,
): Promise<{ readonly debit: BankDebit; readonly position: bigint | null }> {
  const { state } = await app.commands.load(achAccount, debit.bank_account_id)
  return createDebit(app, { ...debit, account: state!.account }, context, ending)
}
