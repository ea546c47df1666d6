import { z } from 'zod'
import { type PaymentLink, paymentLink, pendingRefund } from '../../domain/payments/payment-link.ts'
import {
  deliveryChannel,
  PaymentLinkCancelled,
  PaymentLinkCreated,
  PaymentLinkExpired,
  PaymentLinkPaid,
  PaymentLinkPaymentFailed,
  PaymentLinkRefunded,
  PaymentLinkRefundFailed,
  PaymentLinkRefundRequested,
} from '../../domain/payments/payment-link-events.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { activatePolicyOf, expireLink } from '../payments/completions.ts'
import { deliverLink } from '../payments/deliver-link.ts'
import { completedPayload, failedPayload, refundedPayload } from '../payments/link-webhooks.ts'
import { deactivationKey, refuseOfOtherProcessor } from '../payments/links.ts'
import { startPlanSubscription } from '../payments/plan-subscriptions.ts'
import { settleRefund } from '../payments/refunds.ts'
import { ProviderRefused, ProviderUnavailable } from '../ports/provider.ts'
import { raiseWebhookEvent } from '../webhooks/raise.ts'
import {
  backoff,
  cancel,
  on,
  perform,
  processManager,
  type WorkItem,
  type WorkOutcome,
  work,
} from './process-manager.ts'

const PAYMENT_LINKS = 'payment-links'

/** How long the request for a refund has to settle it itself, in service-clock milliseconds. */
export const REFUND_SETTLING_MS = 15 * 60_000
/** How long a refund is left alone that the processor is still carrying out, in service-clock milliseconds. */
const PENDING_REFUND_MS = 6 * 3_600_000
/** How long a provider that was away for all tries is left alone, in service-clock milliseconds. */
const OUTAGE_MS = 15 * 60_000
/** Tries of what a provider does, in a row: about 8 seconds in all. */
const TRIES = 6

const nothing = z.object({})

/**
 * What follows from what happens to payment links: invitations, expiry, activation of the policy, the subscription of a
 * plan, and what partners are told.
 */
export function paymentLinks(app: Application) {
  const kind = { retry: backoff(), timeLimitMs: 60_000 }
  const ofProvider = { ...kind, retry: backoff(TRIES) }
  return processManager({
    name: PAYMENT_LINKS,
    startAt: 'beginning',
    on: [
      on(PaymentLinkCreated, ({ data }) => {
        const { payment_link_id, environment, delivery, expires_at } = data
        // nobody is written to from the sandbox
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
      deliver: work(
        { ...ofProvider, payload: z.object({ payment_link_id: z.string(), channel: deliveryChannel }) },
        (item) =>
          throughOutages(app, item, () =>
            deliverLink(app, item.payload.payment_link_id, item.payload.channel, contextOf(item)),
          ),
      ),
      expire: work({ ...kind, payload: nothing }, async (item) => {
        const refusal = await expireLink(app, { linkId: item.key, at: item.dueAt }, contextOf(item))
        return refusal ? { outcome: 'stop', why: refusal.message } : { outcome: 'done' }
      }),
      deactivate: work({ ...ofProvider, payload: nothing }, (item) =>
        throughOutages(app, item, async () => {
          const link = await linkOf(app, item.key)
          const { environment, processor_payment_link_id } = link
          if (refuseOfOtherProcessor(app, link)) return
          await app.processors[environment].deactivatePaymentLink(
            processor_payment_link_id,
            deactivationKey(item.key),
          )
        }),
      ),
      // the policy first: whoever is told that it was paid finds it active
      complete: work({ ...kind, payload: nothing }, async (item) => {
        const link = await linkOf(app, item.key)
        await activatePolicyOf(app, link, contextOf(item))
        await raiseWebhookEvent(app, completedPayload(link), contextOf(item))
        return { outcome: 'done' }
      }),
      // beside what is told: a processor that is away holds nothing back
      'start-plan': work({ ...ofProvider, payload: nothing }, (item) =>
        throughOutages(app, item, () => startPlan(app, item)),
      ),
      'tell-failed': work(
        {
          ...kind,
          payload: z.object({
            payment_link_id: z.string(),
            failure_message: z.string(),
            failed_at: z.string(),
          }),
        },
        async (item) => {
          const link = await linkOf(app, item.payload.payment_link_id)
          await raiseWebhookEvent(app, failedPayload(link, item.payload), contextOf(item))
          return { outcome: 'done' }
        },
      ),
      'settle-refund': work(
        { ...ofProvider, payload: z.object({ payment_link_id: z.string() }) },
        async (item) => {
          let isPending = false
          const outcome = await throughOutages(app, item, async () => {
            const link = await linkOf(app, item.payload.payment_link_id)
            const refund = link.refunds.find(({ refund_id }) => refund_id === item.key)
            if (refund?.status !== 'pending') return
            isPending = pendingRefund(await settleRefund(app, link, refund, contextOf(item))) !== null
          })
          return isPending ? { outcome: 'again', at: app.clock.now() + PENDING_REFUND_MS } : outcome
        },
      ),
      'tell-refunded': work({ ...kind, payload: PaymentLinkRefunded.schema }, async (item) => {
        const link = await linkOf(app, item.payload.payment_link_id)
        await raiseWebhookEvent(app, refundedPayload(link, item.payload), contextOf(item))
        return { outcome: 'done' }
      }),
    },
  })
}

/** Starts the monthly charges of a plan whose down payment was paid. */
async function startPlan(app: Application, item: WorkItem): Promise<void> {
  const { payment_link_id, installment_plan, down_payment_months, payment, ...link } = await linkOf(
    app,
    item.key,
  )
  if (installment_plan === null) return
  await startPlanSubscription(
    app,
    {
      linkId: payment_link_id,
      tenantId: link.tenant_id,
      environment: link.environment,
      employerId: link.employer_id,
      carrierId: link.carrier_id,
      policyId: link.policy_id,
      amountCents: installment_plan.per_installment_cents,
      charges: installment_plan.total_installments - down_payment_months!,
      paidAt: Date.parse(payment!.paid_at),
      paymentMethodId: payment!.payment_method_id,
      metadata: link.metadata,
    },
    contextOf(item),
  )
}

/** Does what a provider has to do; one that is away for all tries is asked again later, for as long as it takes. */
async function throughOutages(
  { clock }: Pick<Application, 'clock'>,
  item: WorkItem,
  run: () => Promise<unknown>,
): Promise<WorkOutcome> {
  try {
    await run()
    return { outcome: 'done' }
  } catch (error) {
    if (error instanceof ProviderRefused) return { outcome: 'stop', why: error.message }
    if (error instanceof ProviderUnavailable && item.isLastTry) {
      return { outcome: 'again', at: clock.now() + OUTAGE_MS }
    }
    throw error
  }
}

async function linkOf({ commands }: Pick<Application, 'commands'>, linkId: string): Promise<PaymentLink> {
  const { state } = await commands.load(paymentLink, linkId)
  if (state === null) throw new Error(`There is no payment link ${linkId}`)
  return state
}

function contextOf(item: WorkItem): CommandContext {
  const { tenantId, environment, correlationId, causationId, commandId } = item
  const actor = { type: 'system', id: PAYMENT_LINKS } as const
  return { actor, tenantId, environment, correlationId, causationId, commandId, mayRepeat: true }
}
