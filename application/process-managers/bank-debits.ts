import { z } from 'zod'
import { BankCreditReceived } from '../../domain/banking/bank-credit.ts'
import { type BankDebit, bankDebit, processedFrom } from '../../domain/banking/bank-debit.ts'
import {
  BankDebitCreated,
  BankDebitMatched,
  BankDebitReported,
  BankDebitReturned,
  BankDebitScheduled,
  BankDebitSubmitted,
} from '../../domain/banking/bank-debit-events.ts'
import { nextClose } from '../../domain/banking/banking-days.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { paymentSession } from '../../domain/payments/payment-session.ts'
import type { Application } from '../application.ts'
import { matchCredit } from '../banking/bank-credits.ts'
import { recordBatchHeldUp, runBatch, submitBatch } from '../banking/debit-batches.ts'
import { clearedPayload, returnedPayload, settledPayload } from '../banking/debit-webhooks.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { changed } from '../command-handling/verbs.ts'
import { ReadModelsLate } from '../ports/read-models.ts'
import { raiseWebhookEvent } from '../webhooks/raise.ts'
import {
  backoff,
  contextOf,
  on,
  perform,
  processManager,
  type WorkOutcome,
  work,
} from './runtime/process-manager.ts'
import { ofProvider, throughOutages, waiting } from './through-outages.ts'

const nothing = z.object({})
/** How long work waits for read models that are late, in real milliseconds. */
const LATE_MS = 1_000
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
  const kind = { retry: backoff(), timeLimitMs: 60_000 }
  return processManager({
    name: 'bank-debits',
    startAt: 'beginning',
    on: [
      on(BankDebitCreated, ({ data: { created_at } }) => {
        const createdAt = Date.parse(created_at)
        const tick = (Math.floor(createdAt / intervalMs) + 1) * intervalMs
        // it goes with the batch that was open when it was created
        const at = Math.max(createdAt, Math.min(tick, nextClose(createdAt) - RUN_BEFORE_CLOSE_MS))
        // one run for all that wait by then
        return [perform('run-batch', String(at), {}, { at })]
      }),
      on(BankDebitScheduled, ({ data: { batch_closes_at } }) => [
        // one that was put into it at the last moment is recorded a little later
        perform(
          'submit-batch',
          batch_closes_at,
          {},
          { at: Date.parse(batch_closes_at) + RECORDED_AFTER_CLOSE_MS },
        ),
      ]),
      on(BankDebitSubmitted, ({ data: { leg_id, effective_date } }) => [
        perform('process', leg_id, {}, { at: processedFrom(effective_date) }),
      ]),
      on(BankDebitReported, ({ data }) =>
        data.settled_on === null
          ? []
          : [perform('settle', data.leg_id, { ...data, settled_on: data.settled_on })],
      ),
      on(BankDebitMatched, ({ data }) => [perform('clear', data.match_id, data)]),
      on(BankDebitReturned, ({ data }) => [perform('take-back', data.leg_id, data)]),
      // whoever received it matches it as well, unless it died
      on(BankCreditReceived, ({ data }) => [perform('match-credit', data.credit_id, {})]),
    ],
    work: {
      'run-batch': work({ ...kind, slots: 1, timeLimitMs: 600_000, payload: nothing }, (item) =>
        unlessLate(async () => {
          await runBatch(app, contextOf(item))
          return { outcome: 'done' }
        }),
      ),
      'submit-batch': work({ ...ofProvider, slots: 1, timeLimitMs: 600_000, payload: waiting }, (item) => {
        const closesAt = Date.parse(item.key)
        return unlessLate(() =>
          throughOutages(
            app,
            item,
            () => submitBatch(app, closesAt, contextOf(item)),
            (since) => recordBatchHeldUp(app, { closesAt, since }, contextOf(item)),
          ),
        )
      }),
      'match-credit': work({ ...kind, payload: nothing }, (item) =>
        unlessLate(async () => {
          await matchCredit(app, item.key, contextOf(item))
          return { outcome: 'done' }
        }),
      ),
      process: work({ ...kind, slots: MANY, payload: nothing }, async (item) => {
        const after = await changed(
          app,
          bankDebit,
          item.key,
          { type: 'Process', at: item.dueAt },
          contextOf(item),
        )
        return isRejection(after) ? { outcome: 'stop', why: after.message } : { outcome: 'done' }
      }),
      // the processor's word counts where the carrier settles into its own bank, and for the session's own debit
      settle: work(
        {
          ...kind,
          payload: z.object({
            leg_id: z.string(),
            settled_on: z.string(),
            processor_status: z.string().nullable(),
          }),
        },
        async (item) => {
          const debit = await load(app, item.payload.leg_id)
          if (debit.settlement_type !== 'direct' || debit.source !== 'session') return { outcome: 'done' }
          await confirm(app, debit, 'processor', contextOf(item))
          await raiseWebhookEvent(app, settledPayload(debit, item.payload), contextOf(item))
          return { outcome: 'done' }
        },
      ),
      clear: work({ ...kind, payload: BankDebitMatched.schema }, async (item) => {
        const debit = await load(app, item.payload.leg_id)
        if (debit.source !== 'session') return { outcome: 'done' }
        await confirm(app, debit, 'bank', contextOf(item))
        await raiseWebhookEvent(app, clearedPayload(debit, item.payload), contextOf(item))
        return { outcome: 'done' }
      }),
      'take-back': work({ ...kind, payload: BankDebitReturned.schema }, async (item) => {
        const debit = await load(app, item.key)
        const { payment_session_id: sessionId, leg_id: legId } = debit
        if (sessionId !== null) {
          const command = { type: 'RecordDebitReturned', legId, at: app.clock.now() } as const
          const after = await changed(app, paymentSession, sessionId, command, contextOf(item))
          if (isRejection(after)) throw new Error(after.message)
        }
        await raiseWebhookEvent(app, returnedPayload(debit, item.payload), contextOf(item))
        return { outcome: 'done' }
      }),
    },
  })
}

/** Does what read models are asked for; again a little later where they are late. */
async function unlessLate<Payload>(run: () => Promise<WorkOutcome<Payload>>): Promise<WorkOutcome<Payload>> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ReadModelsLate) return { outcome: 'again', afterMs: LATE_MS }
    throw error
  }
}

/** The session reads paid before anybody is told. */
async function confirm(
  app: Application,
  { payment_session_id: sessionId, leg_id: legId }: BankDebit,
  by: 'bank' | 'processor',
  context: CommandContext,
): Promise<void> {
  const command = { type: 'ConfirmDebit', legId, by, at: app.clock.now() } as const
  const after = await changed(app, paymentSession, sessionId!, command, context)
  if (isRejection(after)) throw new Error(after.message)
}

async function load({ commands }: Pick<Application, 'commands'>, legId: string): Promise<BankDebit> {
  const { state } = await commands.load(bankDebit, legId)
  if (state === null) throw new Error(`There is no bank debit ${legId}`)
  return state
}
