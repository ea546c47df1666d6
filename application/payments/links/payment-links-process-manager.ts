import { z } from 'zod'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { paymentLink } from '../../../domain/payments/links/payment-link.ts'
import {
  deliveryChannel,
  PaymentLinkCancelled,
  PaymentLinkCreated,
  type PaymentLinkData,
  PaymentLinkExpired,
  PaymentLinkPaid,
  PaymentLinkPaymentFailed,
  PaymentLinkRefunded,
  PaymentLinkRefundFailed,
  PaymentLinkRefundRequested,
} from '../../../domain/payments/links/payment-link-events.ts'
import { pendingRefund } from '../../../domain/payments/links/payment-link-refunds.ts'
import type { Application } from '../../commands/application.ts'
import { existing, within } from '../../commands/verbs.ts'
import {
  cancel,
  contextOf,
  on,
  perform,
  processManager,
  type WorkItem,
  work,
} from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { readsActive } from '../../policies/activation.ts'
import { ProviderRefused } from '../../ports/provider.ts'
import { ReadModelsLate } from '../../ports/read-models.ts'
import { raiseWebhookEvent } from '../../webhooks/raise.ts'
import { processorOf, tellHeldUp } from '../processor/processor-of.ts'
import { startPlanSubscription } from '../subscriptions/plan-subscriptions.ts'
import { activatePolicyOf, expireLink } from './completions.ts'
import { deliverLink } from './deliver-link.ts'
import { completedPayload, failedPayload, refundedPayload } from './link-webhooks.ts'
import { deactivationKey } from './links.ts'
import { settleRefund } from './refunds.ts'

/** How long the request for a refund has to settle it itself, in service-clock milliseconds. */
export const REFUND_SETTLING_MS = 15 * 60_000
/** How long a refund is left alone that the processor is still carrying out, in service-clock milliseconds. */
const PENDING_REFUND_MS = 6 * 3_600_000

const ofLink = z.object({ payment_link_id: z.string() })

/**
 * What follows from what happens to payment links: invitations, expiry, activation of the policy, the subscription of a
 * plan, and what partners are told.
 */
export function paymentLinks(app: Application) {
  return processManager({
    name: 'payment-links',
    startAt: 'beginning',
    on: [
      on(PaymentLinkCreated, ({ data }) => {
        const { payment_link_id, environment, delivery, expires_at } = data
        // the sandbox sends no messages
        const channels = deliveryChannel.options.filter(
          (channel) => environment === 'live' && delivery[channel],
        )
        return [
          perform('expire', payment_link_id, {}, { at: Date.parse(expires_at) }),
          ...channels.map((channel) =>
            perform('deliver', `${payment_link_id}/${channel}`, { payment_link_id, channel }),
          ),
        ]
      }),
      on(PaymentLinkPaid, ({ data: { payment_link_id } }) => [
        cancel('expire', payment_link_id),
        perform('complete', payment_link_id, {}),
        perform('start-plan', payment_link_id, {}),
      ]),
      on(PaymentLinkPaymentFailed, ({ data: { payment_link_id, failure_id, ...failure } }) => [
        perform('tell-failed', failure_id, { payment_link_id, ...failure }),
      ]),
      on(PaymentLinkCancelled, ({ data: { payment_link_id } }) => [cancel('expire', payment_link_id)]),
      on(PaymentLinkExpired, ({ data: { payment_link_id } }) => [
        cancel('expire', payment_link_id),
        perform('deactivate', payment_link_id, {}),
      ]),
      on(PaymentLinkRefundRequested, ({ data: { payment_link_id, refund_id, requested_at } }) => [
        perform(
          'settle-refund',
          refund_id,
          { payment_link_id },
          { at: Date.parse(requested_at) + REFUND_SETTLING_MS },
        ),
      ]),
      on(PaymentLinkRefunded, ({ data }) => [
        cancel('settle-refund', data.refund_id),
        perform('tell-refunded', data.refund_id, data),
      ]),
      on(PaymentLinkRefundFailed, ({ data }) => [cancel('settle-refund', data.refund_id)]),
    ],
    work: {
      deliver: work({ ...ofProvider, payload: ofLink.extend({ channel: deliveryChannel }) }, (item) =>
        throughOutages(app, item, () =>
          deliverLink(app, item.payload.payment_link_id, item.payload.channel, contextOf(item)),
        ),
      ),
      expire: work({}, async (item) => {
        const expired = await expireLink(app, { linkId: item.key, at: item.dueAt }, contextOf(item))
        if (isRejection(expired)) return { outcome: 'stop', why: expired.message }
      }),
      deactivate: work(ofProvider, (item) =>
        throughOutages(
          app,
          item,
          async () => {
            const link = await existing(app, paymentLink, item.key)
            const { processor_payment_link_id: id } = link
            await processorOf(app, link).deactivatePaymentLink(id, deactivationKey(item.key))
          },
          tellHeldUp(app, 'payment_link', item),
        ),
      ),
      // the policy first: a receiver of the webhook finds it active; one that cannot become so holds nothing back
      complete: work({}, async (item) => {
        const link = await existing(app, paymentLink, item.key)
        await activatePolicyOf(app, link, contextOf(item))
        if (!(await readsActive(app, link.policy_id))) throw new ReadModelsLate()
        await raiseWebhookEvent(app, completedPayload(link), contextOf(item))
      }),
      // beside what is told: a processor that is away holds nothing back
      'start-plan': work(ofProvider, (item) =>
        throughOutages(app, item, () => startPlan(app, item), tellHeldUp(app, 'payment_link', item)),
      ),
      'tell-failed': work(
        {
          payload: z.object({
            payment_link_id: z.string(),
            failure_message: z.string(),
            failed_at: z.string(),
          }),
        },
        async (item) => {
          const link = await existing(app, paymentLink, item.payload.payment_link_id)
          await raiseWebhookEvent(app, failedPayload(link, item.payload), contextOf(item))
        },
      ),
      'settle-refund': work({ ...ofProvider, payload: ofLink }, async (item) => {
        const linkId = item.payload.payment_link_id
        let isPending = false
        const settle = async () => {
          const link = await existing(app, paymentLink, linkId)
          const refund = link.refunds.find(({ refund_id }) => refund_id === item.key)
          if (refund?.status !== 'pending') return
          isPending = pendingRefund(await settleRefund(app, link, refund, contextOf(item))) !== null
        }
        const outcome = await throughOutages(app, item, settle, tellHeldUp(app, 'payment_link', item, linkId))
        return isPending
          ? { outcome: 'again', at: app.clock.now() + PENDING_REFUND_MS, awaySince: null }
          : outcome
      }),
      'tell-refunded': work({ payload: PaymentLinkRefunded.schema }, async (item) => {
        const link = await existing(app, paymentLink, item.payload.payment_link_id)
        await raiseWebhookEvent(app, refundedPayload(link, item.payload), contextOf(item))
      }),
    },
  })
}

/** Starts the monthly charges of a plan whose down payment was paid. Where they cannot start, the operator is told. */
async function startPlan(app: Application, item: WorkItem): Promise<void> {
  const link = await existing(app, paymentLink, item.key)
  if (link.installment_plan === null) return
  const recordNotStarted = async (reason: PaymentLinkData<'PaymentLinkPlanNotStarted'>['reason']) => {
    const command = { type: 'RecordPlanNotStarted', reason, at: app.clock.now() } as const
    await app.commands.execute(paymentLink, item.key, command, within(contextOf(item), link))
  }
  try {
    if (isRejection(await startPlanSubscription(app, link, contextOf(item))))
      await recordNotStarted('policy_cancelled')
  } catch (error) {
    if (error instanceof ProviderRefused) await recordNotStarted('processor_refused')
    throw error
  }
}
