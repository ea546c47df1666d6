import { type AchAccount, achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { bankDebit, type EndedAtOnce } from '../../../domain/banking/debits/bank-debit.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { slotFor } from '../../../domain/banking/debits/banking-days.ts'
import { billingStop } from '../../../domain/banking/debits/debit-gates.ts'
import { MAX_ENTRY_CENTS } from '../../../domain/banking/files/nacha/records.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { streamOf } from '../../../domain/kernel/decider.ts'
import { PayDates, type PayPeriod } from '../../../domain/payroll/pay-dates.ts'
import { payrollFile } from '../../../domain/payroll/payroll-file.ts'
import {
  type ReceivedFile,
  type RecordedRows,
  rowsRevision,
} from '../../../domain/payroll/payroll-file-events.ts'
import type { CanonicalRow } from '../../../domain/payroll/payroll-row.ts'
import { policy } from '../../../domain/policies/policy.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { pagesBySeq } from '../../queries/pages-by-seq.ts'
import { type Parameter, statement } from '../../queries/statement.ts'
import { raiseWebhookEvent } from '../../webhooks/raise.ts'
import { primaryAchAccount } from '../accounts/ach-accounts.ts'
import { createDebit } from './create-debit.ts'
import { debitCreatedPayload } from './debit-webhooks.ts'

/** Chunks of rows that are read at once. */
const CHUNKS_AT_ONCE = 8

/** The ACH account from which the premium of an employer's payroll is debited; null: it has no active primary one. */
export async function activePrimaryAccount(
  app: Pick<Application, 'commands'>,
  employerId: string,
): Promise<AchAccount | null> {
  const account = await primaryAchAccount(app, employerId)
  return account?.status === 'active' ? account : null
}

/** The id of the debit of a file's premium: one for each file and policy. */
export function payrollDebitId(fileId: string, policyId: string): string {
  return derivedId(fileId, `payroll-debit/${policyId}`)
}

/** The premium of a file, and where it is debited. */
export interface DuePremium {
  readonly fileId: string
  readonly amountCents: number
  readonly achAccountId: string
}

/**
 * Raises the debit of a file's premium, once, and tells partners of it. One that the first gate stops, or that cannot be
 * carried out, ends at once, and nobody is told.
 * @throws ReadModelsLate when it cannot be told yet when the file was accepted first.
 */
export async function raisePayrollDebit(
  app: Application,
  due: DuePremium,
  context: CommandContext,
): Promise<BankDebit> {
  const received = await receivedFile(app, due.fileId)
  const before = (await app.commands.load(bankDebit, payrollDebitId(due.fileId, received.policy_id))).state
  const debit = before ?? (await raise(app, due, received, context))
  if (debit.cancellation_deadline !== null) await raiseDebitCreated(app, debit, context)
  return debit
}

/** Raises the webhook of a debit that a payroll file created, once. */
export async function raiseDebitCreated(
  app: Pick<Application, 'commands'>,
  debit: BankDebit,
  context: CommandContext,
): Promise<void> {
  await raiseWebhookEvent(app, debitCreatedPayload(debit), {
    ...context,
    commandId: derivedId(debit.leg_id, 'minted'),
  })
}

type FileWithRows = ReceivedFile & { readonly rows?: readonly CanonicalRow[] }

async function raise(
  app: Application,
  { fileId, amountCents, achAccountId }: DuePremium,
  received: FileWithRows,
  context: CommandContext,
): Promise<BankDebit> {
  const { tenant_id, environment, employer_id, policy_id } = received
  const { state: terms } = await app.commands.load(policy, policy_id)
  const { state: from } = await app.commands.load(achAccount, achAccountId)
  const dates = await payDatesOf(app, received)
  const period = received.period ?? dates.period
  const ingested_at = await firstAcceptance(app, fileId, period)
  const now = app.clock.now()
  const check_date = dates.checkDate
  const { closesAt, entryDate: effective_date } = slotFor(check_date, now)
  const stop = billingStop({ check_date, effective_date, created_at: isoTime(now) }, terms!)
  const note = stop === null ? refusal(from!, amountCents) : null
  const ending: EndedAtOnce | undefined = stop ? { stop } : note === null ? undefined : { note }
  const created = await createDebit(
    app,
    {
      leg_id: payrollDebitId(fileId, policy_id),
      tenant_id,
      environment,
      employer_id,
      policy_id,
      carrier_id: terms!.carrier_id,
      source: 'payroll_file',
      file_id: fileId,
      check_date,
      period,
      amount_cents: amountCents,
      payment_purpose: 'paygo',
      description: descriptionOf(period),
      bank_account_id: achAccountId,
      account: from!.account,
      effective_date,
      ingested_at,
      cancellation_deadline: ending ? null : isoTime(closesAt),
    },
    context,
    ending,
  )
  if (created.position !== null) await app.readModels.awaitProjections(bankDebit, created.position)
  return created.debit
}

/** Why a debit cannot be carried out; null: it can. */
function refusal({ status, deleted_at }: AchAccount, amountCents: number): string | null {
  if (deleted_at !== null) return 'The ACH account was deleted'
  if (status !== 'active') return `The ACH account is ${status}`
  if (amountCents <= MAX_ENTRY_CENTS) return null
  return `The amount is above ${MAX_ENTRY_CENTS} cents, the most that one ACH entry can hold`
}

function descriptionOf(period: PayPeriod | null): string {
  return period === null ? 'Payroll premium' : `Payroll premium ${period.start} to ${period.end}`
}

async function receivedFile(
  { log, registry }: Pick<Application, 'log' | 'registry'>,
  fileId: string,
): Promise<FileWithRows> {
  const [first] = await log.readStream(streamOf(payrollFile, fileId), { maxCount: 1 })
  return registry.decode(first!).data as FileWithRows
}

async function payDatesOf(
  { log, registry }: Pick<Application, 'log' | 'registry'>,
  { file_id, rows, chunk_count }: FileWithRows,
): Promise<PayDates> {
  const dates = new PayDates()
  if (rows) {
    dates.add(rows)
    return dates
  }
  for (let chunk = 0; chunk < chunk_count; chunk += CHUNKS_AT_ONCE) {
    const maxCount = Math.min(CHUNKS_AT_ONCE, chunk_count - chunk)
    const stored = await log.readStream(streamOf(payrollFile, file_id), {
      from: rowsRevision(chunk),
      maxCount,
    })
    for (const one of stored) dates.add((registry.decode(one).data as RecordedRows).rows)
  }
  return dates
}

const FILE = statement('payroll-file-acceptance', (db, $: Parameter<{ fileId: string }>) =>
  db
    .selectFrom('payroll_files')
    .select(['employer_id', 'policy_id', 'created_at', 'row_count'])
    .select(['total_auditable_wages_cents', 'total_premium_cents'])
    .where('file_id', '=', $('fileId')),
)
const ALIKE = statement(
  'payroll-files-alike',
  (
    db,
    $: Parameter<{
      readonly employerId: string
      readonly policyId: string
      readonly start: string
      readonly end: string
      readonly rowCount: number
      readonly wagesCents: number
      readonly premiumCents: number
      readonly after: string
      readonly limit: number
    }>,
  ) =>
    db
      .selectFrom('payroll_files')
      .select(['file_id', 'created_at', 'period_start', 'seq'])
      .where('employer_id', '=', $('employerId'))
      .where('policy_id', '=', $('policyId'))
      // what sends no period may have one in its rows
      .where(({ eb, or, and }) =>
        or([
          eb('period_start', 'is', null),
          and([eb('period_start', '=', $('start')), eb('period_end', '=', $('end'))]),
        ]),
      )
      .where('row_count', '=', $('rowCount'))
      .where('total_auditable_wages_cents', '=', $('wagesCents'))
      .where('total_premium_cents', '=', $('premiumCents'))
      .where('seq', '>', $('after') as never)
      .orderBy('seq')
      .limit($('limit')),
)

/** Files of one policy and the same sums that are looked at in one go, the earliest first. */
const ALIKE_AT_ONCE = 20

/**
 * When a file was accepted first, ISO 8601. One whose policy, period, number of rows, wages and premium are those of an
 * earlier file is that file, ingested again; one without a period is always another.
 * @param period that it was sent with, or that its rows agree on.
 */
async function firstAcceptance(app: Application, fileId: string, period: PayPeriod | null): Promise<string> {
  const { read } = app
  await untilCurrent(app, 'payroll-files')
  const file = (await read.query(FILE, { fileId }))[0]!
  if (period === null) return file.created_at
  const wanted = {
    employerId: file.employer_id,
    policyId: file.policy_id!,
    start: period.start,
    end: period.end,
    rowCount: file.row_count,
    wagesCents: file.total_auditable_wages_cents,
    premiumCents: file.total_premium_cents,
  }
  // the same wages week by week make many that are alike but for the period in their rows
  for await (const alike of pagesBySeq(ALIKE_AT_ONCE, (page) => read.query(ALIKE, { ...wanted, ...page }))) {
    for (const { file_id, period_start, created_at } of alike) {
      if (file_id === fileId || period_start !== null) return created_at
      const dates = await payDatesOf(app, await receivedFile(app, file_id))
      if (dates.period?.start === period.start && dates.period.end === period.end) return created_at
    }
  }
  return file.created_at
}
