import { type BankCredit, bankCredit, effectiveDatesOf } from '../../domain/banking/bank-credit.ts'
import { awaitsCredit, type BankDebit, bankDebit } from '../../domain/banking/bank-debit.ts'
import type { Confidence } from '../../domain/banking/bank-debit-events.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable, within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import { inIfGiven, type Parameter, statement } from '../read-models/statement.ts'

/** Money that a bank shows in a carrier's collection account. Amounts are cents. */
export interface NewBankCredit {
  readonly carrierId: string
  readonly bankTransactionId: string
  /** `YYYY-MM-DD`. */
  readonly bankDate: string
  readonly amountCents: number
  /** The leg that it is for, where the bank says so. */
  readonly reference: string | null
}

interface Match {
  readonly legId: string
  readonly confidence: Confidence
}

/**
 * Records a credit and the debit whose money it is: the one that its reference names, else one of its amount. The amount
 * is always the debit's, to the cent; the same transaction of the bank again changes nothing.
 */
export async function receiveCredit(
  app: Application,
  { carrierId, bankTransactionId, bankDate, amountCents, reference }: NewBankCredit,
  context: CommandContext,
): Promise<BankCredit | Rejection> {
  const owner = isId(carrierId) ? (await app.commands.load(carrier, carrierId)).state : null
  if (!owner) return reject('not_found', 'carrier_not_found', 'There is no such carrier', 'carrier_id')
  const credit_id = derivedId(carrierId, `bank-credit/${bankTransactionId}`)
  const { tenant_id } = owner
  const scoped = { ...within(context, { tenant_id }), mayRepeat: true }
  const data = {
    ...{ credit_id, tenant_id, carrier_id: carrierId, bank_transaction_id: bankTransactionId },
    ...{ bank_date: bankDate, amount_cents: amountCents, reference },
    received_at: isoTime(app.clock.now()),
  }
  const received = await app.commands.execute(bankCredit, credit_id, { type: 'Receive', data }, scoped)
  if (isRejection(received)) return received
  const credit = received.state!
  if (credit.matched) return credit
  const match = await matchOf(app, credit)
  if (!match) return credit
  const matched = await app.commands.execute(
    bankDebit,
    match.legId,
    {
      ...({ type: 'Match', matchId: derivedId(credit_id, match.legId) } as const),
      ...{ bankTransactionId, bankDate: credit.bank_date, confidence: match.confidence },
      at: app.clock.now(),
    },
    { ...scoped, commandId: derivedId(credit_id, 'match') },
  )
  // another credit was faster
  if (isRejection(matched)) return credit
  const told = await readable(app, bankDebit, matched)
  if (isRejection(told)) return told
  const command = { type: 'RecordMatch', ...match, at: app.clock.now() } as const
  const recorded = await app.commands.execute(bankCredit, credit_id, command, scoped)
  return isRejection(recorded) ? recorded : recorded.state!
}

async function matchOf(app: Application, credit: BankCredit): Promise<Match | null> {
  const { reference, carrier_id, amount_cents, bank_date } = credit
  const fits = (debit: BankDebit | null): debit is BankDebit =>
    debit?.carrier_id === carrier_id &&
    debit.settlement_type === 'fbo' &&
    debit.amount_cents === amount_cents &&
    awaitsCredit(debit)
  if (reference !== null && isId(reference)) {
    const named = (await app.commands.load(bankDebit, reference)).state
    // what names a debit is that debit's money or nobody's
    if (named) return fits(named) ? { legId: reference, confidence: 'high' } : null
  }
  await app.readModels.reached(['bank-debits'], await app.log.head())
  const { from, to } = effectiveDatesOf(bank_date)
  const found = await app.read.query(CANDIDATES, {
    ...{ carrierId: carrier_id, amountCents: amount_cents, from, to },
    ...{ statuses: ['submitted', 'processed'], limit: 2 },
  })
  const [oldest, ...others] = found
  if (!oldest) return null
  return { legId: oldest.leg_id, confidence: others.length === 0 ? 'medium' : 'low' }
}

const CANDIDATES = statement(
  'bank-debits-of-a-credit',
  (
    db,
    $: Parameter<{
      readonly carrierId: string
      readonly amountCents: number
      readonly from: string
      readonly to: string
      readonly statuses: readonly string[]
      readonly limit: number
    }>,
  ) =>
    db
      .selectFrom('bank_debits')
      .select('leg_id')
      .where('carrier_id', '=', $('carrierId'))
      .where('amount_cents', '=', $('amountCents'))
      .where(({ eb }) => eb('awaits_credit', '=', eb.lit(true)))
      .where((eb) => inIfGiven(eb, 'status', $('statuses')))
      .where('effective_date', '>=', $('from'))
      .where('effective_date', '<=', $('to'))
      .orderBy('seq')
      .limit($('limit')),
)
