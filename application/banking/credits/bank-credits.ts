import {
  type BankCredit,
  bankCredit,
  bankDatesOf,
  type CreditMatch,
  effectiveDatesOf,
} from '../../../domain/banking/credits/bank-credit.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import { awaitsCredit, type BankDebit, takesCredit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { type Environment, isId } from '../../../domain/kernel/ids.ts'
import { isRejection, orThrow, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { readable, within } from '../../commands/verbs.ts'
import type { ListPage, PageRequest } from '../../ports/read-database.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { loadPage, pagedList } from '../../queries/pages.ts'
import { equalIfGiven, inIfGiven, isAsGiven, type Parameter, statement } from '../../queries/statement.ts'

/** Credits that are looked at again for one debit. */
const MOST_CREDITS = 100

/** Money that a bank shows in a carrier's collection account. Amounts are cents. */
export type NewBankCredit = Pick<
  BankCredit,
  'carrier_id' | 'bank_transaction_id' | 'bank_date' | 'amount_cents' | 'reference'
>

/**
 * Records a credit and the debit whose money it is. The same transaction of the bank again changes nothing.
 * @throws ReadModelsLate: the credit is recorded, and matched later.
 */
export async function receiveCredit(
  app: Application,
  received: NewBankCredit,
  context: CommandContext,
): Promise<{ readonly credit: BankCredit; readonly isNew: boolean } | Rejection> {
  const { carrier_id, bank_transaction_id } = received
  const owner = await stateOf(app, carrier, carrier_id)
  if (!owner) return reject('not_found', 'carrier_not_found', 'There is no such carrier', 'carrier_id')
  const credit_id = creditIdOf(carrier_id, bank_transaction_id)
  const { tenant_id } = owner
  const data = { ...received, credit_id, tenant_id, received_at: isoTime(app.clock.now()) }
  const command = { type: 'Receive', data } as const
  const outcome = await app.commands.execute(bankCredit, credit_id, command, within(context, { tenant_id }))
  if (isRejection(outcome)) return outcome
  return { credit: await matchCredit(app, credit_id, context), isNew: outcome.events.length > 0 }
}

/**
 * Finds the debit whose money a credit is: the one that its reference names, else one of its amount, to the cent. What is
 * chosen is recorded before the debit learns of it, so that a repetition after a crash takes the same one.
 * @param isAgain decides anew on one that matched no debit.
 * @throws ReadModelsLate when it cannot be told which debits there are.
 */
export async function matchCredit(
  app: Application,
  creditId: string,
  context: CommandContext,
  isAgain = false,
): Promise<BankCredit> {
  const decided = async ({ match, named }: Choice, refusedBy: string | null) => {
    const command = { type: 'Decide', match, named, refusedBy, at: app.clock.now() } as const
    // each choice is a step of its own
    const commandId = derivedId(context.commandId, `${creditId}/${match?.debitId}/${refusedBy}`)
    const outcome = orThrow(
      await app.commands.execute(bankCredit, creditId, command, {
        ...within(context, credit),
        commandId,
      }),
    )
    return outcome.state!
  }
  let credit = (await app.commands.load(bankCredit, creditId)).state!
  if (!credit.isDecided || (isAgain && credit.match === null)) {
    credit = await decided(await matchOf(app, credit, []), null)
  }
  const refusals: string[] = []
  while (credit.match !== null && !(await isTakenBy(app, credit, credit.match, context))) {
    // another credit was faster, or took its place
    refusals.push(credit.match.debitId)
    credit = await decided(await matchOf(app, credit, refusals), credit.match.debitId)
  }
  return credit
}

/**
 * Credits that may be the money of a debit that the bank has now, shown before it said so: those that name it first, then
 * the oldest. None where its money is there, or comes into another account.
 * @throws ReadModelsLate when it cannot be told which credits there are.
 */
export async function creditsShownBefore(app: Application, debitId: string): Promise<readonly string[]> {
  const debit = (await app.commands.load(bankDebit, debitId)).state!
  if (debit.settlement_type !== 'fbo' || debit.match !== null || !awaitsCredit(debit)) return []
  // one that comes later finds the debit itself
  await untilCurrent(app, 'carrier-balances')
  const { carrier_id: carrierId, amount_cents: amountCents, entry_date } = debit
  const wanted = { carrierId, amountCents, debitId, ...bankDatesOf(entry_date!), limit: MOST_CREDITS }
  return (await app.read.query(UNMATCHED, wanted)).map(({ credit_id }) => credit_id)
}

/**
 * Decides anew on credits that matched no debit when they came, one after the other, until a debit has its own. A process that
 * died on the way is finished by the same again.
 * @throws ReadModelsLate when it cannot be told which debits there are.
 */
export async function matchCreditsAgain(
  app: Application,
  debitId: string,
  creditIds: readonly string[],
  context: CommandContext,
): Promise<void> {
  for (const creditId of creditIds) {
    const { match } = (await app.commands.load(bankCredit, creditId)).state!
    // what is matched already may have died before its debit was told
    if (match === null && (await app.commands.load(bankDebit, debitId)).state!.match !== null) continue
    const commandId = derivedId(context.commandId, `credit/${creditId}`)
    await matchCredit(app, creditId, { ...context, commandId }, true)
  }
}

/**
 * Decides anew on the credits that lost a debit to a surer one. One whose new debit was told already is left as it is.
 * @throws ReadModelsLate when it cannot be told which debits there are.
 */
export async function matchDisplacedCredits(
  app: Application,
  debitId: string,
  context: CommandContext,
): Promise<void> {
  const { carrier_id, displaced } = (await app.commands.load(bankDebit, debitId)).state!
  for (const transactionId of displaced) {
    const creditId = creditIdOf(carrier_id, transactionId)
    const commandId = derivedId(context.commandId, `credit/${creditId}`)
    await matchCredit(app, creditId, { ...context, commandId })
  }
}

/** The id of a credit follows from the bank's transaction. */
export function creditIdOf(carrierId: string, bankTransactionId: string): string {
  return derivedId(carrierId, `bank-credit/${bankTransactionId}`)
}

/** What a list of credits is narrowed to; null is everything. */
export interface CreditScope {
  readonly tenant_id: string | null
  readonly carrier_id: string | null
  /** Whether a debit was found whose money it is. */
  readonly matched: boolean | null
}

const CREDITS = pagedList(
  { projection: 'carrier-balances', name: 'bank-credits' },
  (db, $: Parameter<CreditScope>) =>
    db
      .selectFrom('booked_credits')
      .select('credit_id as id')
      .where((eb) => equalIfGiven(eb, $, 'tenant_id', 'carrier_id'))
      .where((eb) => isAsGiven(eb, eb('leg_id', 'is not', null), $('matched')))
      .orderBy('seq', 'desc'),
)

/** Credits, the latest first. */
export function listCredits(
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  scope: CreditScope,
  page: PageRequest,
): Promise<ListPage<BankCredit>> {
  return loadPage(app, bankCredit, CREDITS, scope, page)
}

/** Tells a debit that a credit is its money. @returns false when it would not have it. */
async function isTakenBy(
  app: Application,
  credit: BankCredit,
  { debitId, confidence }: CreditMatch,
  context: CommandContext,
): Promise<boolean> {
  const command = {
    ...({ type: 'Match', matchId: derivedId(credit.credit_id, debitId), confidence } as const),
    bankTransactionId: credit.bank_transaction_id,
    bankDate: credit.bank_date,
    at: app.clock.now(),
  }
  const { state } = await app.commands.load(bankDebit, debitId)
  const outcome = await app.commands.execute(bankDebit, debitId, command, within(context, state!))
  return !isRejection(await readable(app, bankDebit, outcome))
}

interface Choice {
  readonly match: CreditMatch | null
  /** The debit that the reference of the credit names. */
  readonly named: string | null
}

/** @param refusals debits that would not have it. */
async function matchOf(app: Application, credit: BankCredit, refusals: readonly string[]): Promise<Choice> {
  const { reference, carrier_id, amount_cents, bank_date, bank_transaction_id } = credit
  // a bank shows live money alone; where all is simulated, credits are simulated for both
  const environment = app.bankRails.live.kind === 'simulated' ? null : 'live'
  const fits = (debit: BankDebit) =>
    (environment === null || debit.environment === environment) &&
    debit.carrier_id === carrier_id &&
    debit.settlement_type === 'fbo' &&
    debit.amount_cents === amount_cents
  if (reference !== null && isId(reference)) {
    const named = (await app.commands.load(bankDebit, reference)).state
    // a credit that names a debit matches that debit or none
    if (named) {
      const takes = fits(named) && takesCredit(named, bank_transaction_id, 'high')
      const isRefused = refusals.includes(reference)
      const match = takes && !isRefused ? ({ debitId: reference, confidence: 'high' } as const) : null
      return { match, named: reference }
    }
  }
  await untilCurrent(app, 'bank-debits')
  const { from, to } = effectiveDatesOf(bank_date)
  const found = await app.read.query(CANDIDATES, {
    carrierId: carrier_id,
    amountCents: amount_cents,
    environment,
    from,
    to,
    statuses: ['submitted', 'processed'],
    refusals,
    limit: 2,
  })
  const [oldest, ...others] = found
  if (!oldest) return { match: null, named: null }
  const confidence = others.length === 0 ? 'medium' : 'low'
  return { match: { debitId: oldest.leg_id, confidence }, named: null }
}

const CANDIDATES = statement(
  'bank-debits-of-a-credit',
  (
    db,
    $: Parameter<{
      readonly carrierId: string
      readonly amountCents: number
      readonly environment: Environment | null
      readonly from: string
      readonly to: string
      readonly statuses: readonly string[]
      readonly refusals: readonly string[]
      readonly limit: number
    }>,
  ) =>
    db
      .selectFrom('bank_debits')
      .select('leg_id')
      .where('carrier_id', '=', $('carrierId'))
      .where('amount_cents', '=', $('amountCents'))
      .where((eb) => equalIfGiven(eb, $, 'environment'))
      .where(({ eb }) => eb('awaits_credit', '=', eb.lit(true)))
      .where((eb) => inIfGiven(eb, 'status', $('statuses')))
      .where((eb) => eb.not(eb('leg_id', '=', eb.fn.any($('refusals')))))
      .where('entry_date', '>=', $('from'))
      .where('entry_date', '<=', $('to'))
      .orderBy('seq')
      .limit($('limit')),
)

const UNMATCHED = statement(
  'credits-shown-before-their-debit',
  (
    db,
    $: Parameter<{
      readonly carrierId: string
      readonly amountCents: number
      readonly debitId: string
      readonly from: string
      readonly to: string
      readonly limit: number
    }>,
  ) =>
    db
      .selectFrom('booked_credits')
      .leftJoin('booked_debits', 'booked_debits.leg_id', 'booked_credits.named_id')
      .select('booked_credits.credit_id')
      .where('booked_credits.carrier_id', '=', $('carrierId'))
      .where('booked_credits.amount_cents', '=', $('amountCents'))
      .where('booked_credits.leg_id', 'is', null)
      .where((eb) =>
        eb.or([
          eb('booked_credits.named_id', '=', $('debitId')),
          // a credit that names another debit matches that debit or none
          eb.and([
            eb('booked_debits.leg_id', 'is', null),
            eb('booked_credits.bank_date', '>=', $('from')),
            eb('booked_credits.bank_date', '<=', $('to')),
          ]),
        ]),
      )
      .orderBy((eb) => eb('booked_credits.named_id', 'is not distinct from', $('debitId')), 'desc')
      .orderBy('booked_credits.seq')
      .limit($('limit')),
)
