import { z } from 'zod'
import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { AchAccountDisabled } from '../../../domain/banking/accounts/ach-account-events.ts'
import { MicroDepositsListed } from '../../../domain/banking/accounts/micro-deposits.ts'
import { BankCreditReceived } from '../../../domain/banking/credits/bank-credit.ts'
import { bankDebit, processedFrom } from '../../../domain/banking/debits/bank-debit.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  BankDebitFailed,
  BankDebitGated,
  BankDebitMatched,
  BankDebitRejected,
  BankDebitReleased,
  BankDebitReported,
  BankDebitRepresented,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
} from '../../../domain/banking/debits/bank-debit-events.ts'
import type { BankDebit } from '../../../domain/banking/debits/bank-debit-state.ts'
import { nextClose } from '../../../domain/banking/debits/banking-days.ts'
import { disablesAccount } from '../../../domain/banking/debits/return-codes.ts'
import { isRejection, orThrow } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed, existing } from '../../commands/verbs.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { raiseWebhookEvent } from '../../webhooks/raise.ts'
import { disableNumbers } from '../accounts/ach-accounts.ts'
import { returnedNumbers } from '../accounts/payer-corrections.ts'
import { creditsShownBefore, matchCredit, matchCreditsAgain } from '../credits/bank-credits.ts'
import { isInFiles } from '../files/write-files.ts'
import { failDebitsOf } from './account-debits.ts'
import { gateBatch, runBatch } from './batch-worker.ts'
import { raiseBatchHeldUp, submitBatch } from './debit-batches.ts'
import {
  cancelledPayload,
  clearedPayload,
  notDebitedPayload,
  returnedPayload,
  settledPayload,
} from './debit-webhooks.ts'
import { raiseDebitCreated } from './payroll-debits.ts'
import { recordDebitFailed, recordReturned } from './session-debits.ts'

/** Of a batch that has closed; whether its debits have passed the gates once more. */
const closed = z.object({ is_gated: z.boolean().optional() })
/** Of a debit that ended before any money moved; why it failed, unless it was cancelled or stopped. */
const ended = z.object({ note: z.string().optional(), at: z.string() })
/** A debit that the bank has, and the credits that may be its money; absent until they are looked for. */
const shownBefore = z.object({ leg_id: z.string(), credits: z.array(z.string()).optional() })
/** A plan's month brings many at one moment. */
const MANY = 32
/** Before a close, the latest run of the batch worker: what waits is in the batch by then. In service-clock milliseconds. */
const RUN_BEFORE_CLOSE_MS = 10_000
/** After a close, until what was put into the batch before it is surely recorded; in the same. */
const RECORDED_AFTER_CLOSE_MS = 60_000

/**
 * What follows from what happens to bank debits and credits: the runs of the batch worker while debits wait, the batches
 * that the bank is handed at their close, the debits' end in time, the session that they pay, and what partners are told.
 * @param intervalMs between two runs of the batch worker, in service-clock milliseconds.
 */
export function bankDebits(app: Application, intervalMs: number) {
  /** One run for all that wait by then. @param since when a debit began to wait. */
  const nextRun = (since: string) => {
    const waitsFrom = Date.parse(since)
    const tick = (Math.floor(waitsFrom / intervalMs) + 1) * intervalMs
    // it goes with the batch that was open when it began to wait
    const at = Math.max(waitsFrom, Math.min(tick, nextClose(waitsFrom) - RUN_BEFORE_CLOSE_MS))
    return [perform('run-batch', String(at), {}, { at })]
  }
  return processManager({
    name: 'bank-debits',
    startAt: 'beginning',
    on: [
      on(BankDebitCreated, ({ data }) => nextRun(data.created_at)),
      on(BankDebitReleased, ({ data }) => nextRun(data.at)),
      on(BankDebitScheduled, ({ data }) => [submitAfter(data.batch_closes_at)]),
      on(BankDebitRepresented, ({ data }) => [submitAfter(data.batch_closes_at)]),
      on(MicroDepositsListed, ({ data }) => [submitAfter(data.batch_closes_at)]),
      on(BankDebitSubmitted, ({ data: { leg_id, effective_date, at } }) => [
        // presented again, it waits anew
        perform('process', leg_id, {}, { at: processedFrom(effective_date) }),
        // each time that it is presented
        perform('find-credit', `${leg_id}/${at}`, { leg_id }),
      ]),
      // each of them: a debit is reported on again, and comes back again, before the work of the last one is done
      on(BankDebitReported, ({ data, stream, revision }) =>
        data.settled_on === null
          ? []
          : [perform('settle', `${stream}@${revision}`, { ...data, settled_on: data.settled_on })],
      ),
      on(BankDebitMatched, ({ data }) => [perform('clear', data.match_id, data)]),
      // it can come back again, once it is presented again
      on(BankDebitReturned, ({ data, stream, revision }) => [
        perform('take-back', `${data.leg_id}/${data.at}`, data),
        ...(disablesAccount(data.return_code)
          ? [perform('disable-account', `${stream}@${revision}`, data)]
          : []),
      ]),
      // a debit in quarantine has not ended: an operator decides
      on(BankDebitGated, ({ data: { leg_id, status, at } }) =>
        status === 'quarantined' ? [] : [perform('tell-cancelled', leg_id, { at })],
      ),
      on(BankDebitRejected, ({ data: { leg_id, at } }) => [perform('tell-cancelled', leg_id, { at })]),
      on(BankDebitFailed, ({ data: { leg_id, note, at } }) => [
        perform('tell-cancelled', leg_id, { note, at }),
      ]),
      on(BankDebitCancelled, ({ data: { leg_id, at } }) => [perform('tell-cancelled', leg_id, { at })]),
      on(AchAccountDisabled, ({ data: { ach_account_id, return_code } }) => [
        perform('fail-debits', ach_account_id, { return_code }),
      ]),
      // the request that received it matches it as well, unless its process died
      on(BankCreditReceived, ({ data }) => [perform('match-credit', data.credit_id, {})]),
    ],
    work: {
      'run-batch': work({ slots: 1, timeLimitMs: 600_000 }, async (item) => {
        await runBatch(app, contextOf(item))
      }),
      'submit-batch': work(
        { ...ofProvider, slots: 1, timeLimitMs: 600_000, payload: closed },
        async (item) => {
          const closesAt = Date.parse(item.key)
          // what armed it anew took the mark away: no gate stops what the bank may have
          if (item.payload.is_gated !== true && !(await isInFiles(app, closesAt))) {
            await gateBatch(app, closesAt, contextOf(item))
            // stored before anything is handed over: a repetition finds the same debits
            return { outcome: 'again', afterMs: 0, payload: { is_gated: true } }
          }
          return throughOutages(
            app,
            item,
            () => submitBatch(app, closesAt, contextOf(item), item.signal),
            (since) => raiseBatchHeldUp(app, { closesAt, since }, contextOf(item)),
          )
        },
      ),
      'match-credit': work({}, async (item) => {
        await matchCredit(app, item.key, contextOf(item))
      }),
      // the bank may have shown its money before
      'find-credit': work({ slots: MANY, payload: shownBefore }, async (item) => {
        const { leg_id, credits } = item.payload
        if (credits !== undefined) return matchCreditsAgain(app, leg_id, credits, contextOf(item))
        const found = await creditsShownBefore(app, leg_id)
        if (found.length === 0) return
        // stored before any is decided on: a repetition reports the same matches to the debit
        return { outcome: 'again', afterMs: 0, payload: { leg_id, credits: [...found] } }
      }),
      // what waits for a batch is not debited from an account that is disabled
      'fail-debits': work(
        { slots: 1, timeLimitMs: 600_000, payload: z.object({ return_code: z.string() }) },
        async (item) => {
          const { status } = await existing(app, achAccount, item.key)
          // somebody may have enabled it meanwhile
          if (status !== 'disabled') return
          const disabled = { accountId: item.key, return_code: item.payload.return_code }
          await failDebitsOf(app, disabled, contextOf(item))
        },
      ),
      process: work({ slots: MANY }, async (item) => {
        const after = await changed(
          app,
          bankDebit,
          item.key,
          { type: 'Process', at: item.dueAt },
          contextOf(item),
        )
        if (isRejection(after)) return { outcome: 'stop', why: after.message }
        if (after.status !== 'submitted') return
        // it was presented again since, or went with a later file
        return { outcome: 'again', at: processedFrom(after.entry_date!) }
      }),
      // the processor's word counts where the carrier settles into its own bank, and for the session's own debit
      settle: work(
        {
          payload: z.object({
            leg_id: z.string(),
            settled_on: z.string(),
            processor_status: z.string().nullable(),
          }),
        },
        async (item) => {
          const debit = await existing(app, bankDebit, item.payload.leg_id)
          if (debit.settlement_type !== 'direct' || debit.source !== 'session') return
          await confirm(app, debit, 'processor', contextOf(item))
          await raiseWebhookEvent(app, settledPayload(debit, item.payload), contextOf(item))
        },
      ),
      clear: work({ payload: BankDebitMatched.schema }, async (item) => {
        const debit = await existing(app, bankDebit, item.payload.leg_id)
        if (debit.source !== 'session') return
        await confirm(app, debit, 'bank', contextOf(item))
        await raiseWebhookEvent(app, clearedPayload(debit, item.payload), contextOf(item))
      }),
      'take-back': work({ payload: BankDebitReturned.schema }, async (item) => {
        const debit = await existing(app, bankDebit, item.payload.leg_id)
        const { payment_session_id: sessionId, leg_id: debitId } = debit
        const { return_code } = item.payload
        if (sessionId !== null) {
          const disables =
            disablesAccount(return_code) && (await returnedNumbers(app, debit, item.payload)).areCurrent
          await recordReturned(app, sessionId, { debitId, return_code, disables }, contextOf(item))
        }
        // callers that debit by the API or a collection read the debit's status
        if (debit.source === 'api' || debit.source === 'collection') return
        await raiseWebhookEvent(app, returnedPayload(debit, item.payload), contextOf(item))
      }),
      'tell-cancelled': work({ payload: ended }, async (item) => {
        const debit = await existing(app, bankDebit, item.key)
        const { note, at } = item.payload
        // partners hear of what was sent once as returned
        if (debit.representments > 0) return
        if (debit.source === 'session' && note !== undefined) {
          await recordDebitFailed(app, debit.payment_session_id!, debit.leg_id, contextOf(item))
          await raiseWebhookEvent(app, notDebitedPayload(debit, { note, at }), contextOf(item))
        }
        if (debit.cancellation_deadline === null) return
        // the process that raised it may have died before its webhook
        if (debit.source === 'payroll_file') await raiseDebitCreated(app, debit, contextOf(item))
        await raiseWebhookEvent(app, cancelledPayload(debit, at), contextOf(item))
      }),
      'disable-account': work({ payload: BankDebitReturned.schema }, async (item) => {
        const debit = await existing(app, bankDebit, item.payload.leg_id)
        const { tenant_id, environment, bank_account_id } = debit
        const { areCurrent, numbers } = await returnedNumbers(app, debit, item.payload)
        const achAccountId = areCurrent ? bank_account_id : null
        const returned = { tenant_id, environment, achAccountId, numbers }
        await disableNumbers(app, returned, item.payload.return_code, contextOf(item))
      }),
    },
  })
}

/** The batch goes after its close: one that was put into it at the last moment is recorded a little later. */
function submitAfter(batchClosesAt: string) {
  const at = Date.parse(batchClosesAt) + RECORDED_AFTER_CLOSE_MS
  return perform('submit-batch', batchClosesAt, {}, { at })
}

/** The session reads paid before its webhook is raised. */
async function confirm(
  app: Application,
  { payment_session_id: sessionId, leg_id: debitId }: BankDebit,
  by: 'bank' | 'processor',
  context: CommandContext,
): Promise<void> {
  const command = { type: 'ConfirmDebit', debitId, by, at: app.clock.now() } as const
  orThrow(await changed(app, paymentSession, sessionId!, command, context))
}
