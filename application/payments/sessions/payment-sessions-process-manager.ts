import { z } from 'zod'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import {
  PaymentSessionCancelled,
  PaymentSessionCreated,
  PaymentSessionDebitArranged,
  PaymentSessionExpired,
  PaymentSessionPaid,
  PaymentSessionPaidAgain,
  PaymentSessionPaymentFailed,
  PaymentSessionReplaced,
} from '../../../domain/payments/sessions/payment-session-events.ts'
import { createSessionDebit } from '../../banking/debits/create-debit.ts'
import type { Application } from '../../commands/application.ts'
import { existing } from '../../commands/verbs.ts'
import { cancel, contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { raiseWebhookEvent } from '../../webhooks/raise.ts'
import { tellHeldUp } from '../processor/processor-of.ts'
import { createInstallmentDebit, signingDebit } from './arrange-debit.ts'
import { expireSession } from './end-session.ts'
import { completedPayload, failedPayload } from './session-webhooks.ts'

const ofSession = z.object({ payment_session_id: z.string() })
const installment = ofSession.extend({ number: z.int() })
/** Installments that fall due at one moment are worked on together. */
const CREATED_AT_ONCE = 64
const charge = ofSession.extend({
  payment_id: z.string(),
  amount_cents: z.int(),
  paid_at: z.string(),
  late: z.boolean(),
})

/** What follows from what happens to payment sessions: their end in time, and what partners are told. */
export function paymentSessions(app: Application) {
  return processManager({
    name: 'payment-sessions',
    startAt: 'beginning',
    on: [
      on(PaymentSessionCreated, ({ data: { payment_session_id, expires_at } }) => [
        perform('expire', payment_session_id, {}, { at: Date.parse(expires_at) }),
      ]),
      // one that may be paid again may have a checkout that is open by then
      on(PaymentSessionPaid, ({ data }) => [perform('tell-completed', data.payment_id, data)]),
      on(PaymentSessionPaidAgain, ({ data: { is_wanted, late = false, ...data } }) =>
        is_wanted ? [perform('tell-completed', data.payment_id, { ...data, late })] : [],
      ),
      on(PaymentSessionPaymentFailed, ({ data: { failure_id, ends_checkout, ...data } }) => [
        perform('tell-failed', failure_id, data),
        // its time may have gone by while it was scheduled
        ...(ends_checkout ? [perform('expire', data.payment_session_id, {})] : []),
      ]),
      on(PaymentSessionDebitArranged, ({ data: { payment_session_id, leg_id, instalments } }) => [
        cancel('expire', payment_session_id),
        // the request that arranged it creates it as well, unless its process died
        ...(leg_id === null ? [] : [perform('create-debit', leg_id, { payment_session_id })]),
        ...instalments.map(({ number, due_at }) =>
          perform(
            'mint',
            `${payment_session_id}/${number}`,
            { payment_session_id, number },
            { at: Date.parse(due_at) },
          ),
        ),
      ]),
      on(PaymentSessionCancelled, ({ data }) => [cancel('expire', data.payment_session_id)]),
      on(PaymentSessionReplaced, ({ data }) => [cancel('expire', data.payment_session_id)]),
      on(PaymentSessionExpired, ({ data }) => [cancel('expire', data.payment_session_id)]),
    ],
    work: {
      // what the card processor could still take is ended first; money that it had taken wins
      expire: work(ofProvider, async (item) => {
        const session = await existing(app, paymentSession, item.key)
        const at = Date.parse(session.expires_at)
        if (app.clock.now() < at) return { outcome: 'again', at }
        return throughOutages(
          app,
          item,
          async () => {
            orThrow(await expireSession(app, session, at, contextOf(item)))
          },
          tellHeldUp(app, 'payment_session', item),
        )
      }),
      'create-debit': work({ payload: ofSession }, async (item) => {
        const session = await existing(app, paymentSession, item.payload.payment_session_id)
        await createSessionDebit(app, session, signingDebit(session, item.key), contextOf(item))
      }),
      // the session decides whether it is still due, and the debit's id derives from it: a repetition changes nothing
      mint: work({ slots: CREATED_AT_ONCE, payload: installment }, async (item) => {
        await createInstallmentDebit(
          app,
          item.payload.payment_session_id,
          item.payload.number,
          contextOf(item),
        )
      }),
      'tell-completed': work({ payload: charge }, async (item) => {
        const session = await existing(app, paymentSession, item.payload.payment_session_id)
        await raiseWebhookEvent(app, completedPayload(session, item.payload), contextOf(item))
      }),
      'tell-failed': work(
        { payload: ofSession.extend({ failure_message: z.string(), failed_at: z.string() }) },
        async (item) => {
          const session = await existing(app, paymentSession, item.payload.payment_session_id)
          await raiseWebhookEvent(app, failedPayload(session, item.payload), contextOf(item))
        },
      ),
    },
  })
}
