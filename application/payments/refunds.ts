import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import {
  type PaymentLink,
  paymentLink,
  pendingRefund,
  type Refund,
  refundableCents,
} from '../../domain/payments/payment-link.ts'
import type { RefundReason } from '../../domain/payments/payment-link-events.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import { readable, within } from '../command-handling/verbs.ts'
import { derivedId } from '../event-registry.ts'
import { ProviderRefused, ProviderUnavailable } from '../ports/provider.ts'

export interface NewRefundOfLink {
  /** Null: whatever is left. */
  readonly amountCents: number | null
  readonly reason: RefundReason | null
}

/** Refunds under way in this process, by link: one waits for the other, so that each is decided on what the other left. */
const underWay = new Map<string, Promise<unknown>>()

/**
 * Refunds a paid link in part or in full. The refund is stored before the processor is asked, and has one key there for
 * ever. When it is not known what became of it (a crash, a time-out) it stays pending: the next request for the same
 * amount and reason goes on with it, any other waits until it is settled, and after a while the service settles it itself.
 * @returns the link after the refund.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function refundLink(
  app: Application,
  linkId: string,
  refund: NewRefundOfLink,
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  const before = underWay.get(linkId)
  const run = (async () => {
    await before?.catch(() => undefined)
    return requestAndSettle(app, linkId, refund, context)
  })()
  underWay.set(linkId, run)
  try {
    return await run
  } finally {
    if (underWay.get(linkId) === run) underWay.delete(linkId)
  }
}

async function requestAndSettle(
  app: Application,
  linkId: string,
  { amountCents, reason }: NewRefundOfLink,
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  for (;;) {
    const { state: link } = await app.commands.load(paymentLink, linkId)
    if (link === null) return reject('not_found', 'payment_link_not_found', 'There is no such payment link')
    const { refundId, ordinal } = ownRefund(link, context)
    const own = link.refunds.find(({ refund_id }) => refund_id === refundId)
    if (own?.status === 'succeeded') return link
    const pending = pendingRefund(link)
    if (pending) {
      const settling = settleRefund(app, link, pending, context)
      if (pending === own || isSame(pending, link, { amountCents, reason })) return settling
      // one that is refused frees what it had bound
      await settling.catch((error) => {
        if (!(error instanceof ProviderRefused)) throw error
      })
      continue
    }
    const outcome = await app.commands.execute(
      paymentLink,
      linkId,
      { type: 'RequestRefund', refundId, amountCents, reason, at: app.clock.now() },
      { ...within(context, link), ordinal },
    )
    // another process was faster: it is settled first
    if (isRejection(outcome) && outcome.code === 'refund_pending') continue
    if (isRejection(outcome)) return outcome
    const requested = outcome.state!.refunds.find(({ refund_id }) => refund_id === refundId)!
    return settleRefund(app, outcome.state!, requested, context, outcome.events.length > 0)
  }
}

/** The refund of a request: a new one after each that came to nothing. */
function ownRefund({ refunds }: PaymentLink, { commandId }: CommandContext) {
  for (let ordinal = 0; ; ordinal += 1) {
    const refundId = derivedId(commandId, `refund/${ordinal}`)
    const isOver = refunds.some(({ refund_id, status }) => refund_id === refundId && status === 'failed')
    if (!isOver) return { refundId, ordinal }
  }
}

function isSame(pending: Refund, link: PaymentLink, { amountCents, reason }: NewRefundOfLink): boolean {
  return pending.reason === reason && pending.amount_cents === (amountCents ?? refundableCents(link))
}

/**
 * Has the processor carry out a refund that was requested, and records what became of it. Whoever does so again, at
 * whatever time, asks for the same refund.
 * @param isFirst the processor was not asked for it before.
 * @throws ProviderUnavailable: it stays pending, unless the processor never heard of it; ProviderRefused: it has failed.
 */
export async function settleRefund(
  app: Application,
  { payment_link_id, tenant_id, environment, payment }: PaymentLink,
  { refund_id: refundId, amount_cents: amountCents, reason }: Refund,
  context: CommandContext,
  isFirst = false,
): Promise<PaymentLink> {
  const record = async (
    result:
      | { readonly type: 'RecordRefunded'; readonly processorRefundId: string | null }
      | { readonly type: 'RecordRefundFailed' },
  ) => {
    const outcome = await app.commands.execute(
      paymentLink,
      payment_link_id,
      { ...result, refundId, at: app.clock.now() },
      // of two who settle it at once, each records what it found
      { ...context, tenantId: tenant_id, environment, commandId: derivedId(refundId, context.commandId) },
    )
    const state = await readable(app, paymentLink, outcome)
    if (isRejection(state)) throw new Error(state.message)
    return state
  }
  const processorPaymentId = payment!.processor_payment_id
  // nothing moved by a simulated payment
  if (processorPaymentId === null) return record({ type: 'RecordRefunded', processorRefundId: null })
  try {
    const { processorRefundId } = await app.processors[environment].refund(
      { processorPaymentId, amountCents, reason },
      `refund-${refundId}`,
    )
    return await record({ type: 'RecordRefunded', processorRefundId })
  } catch (error) {
    // of what was asked before, this says nothing
    const isUnheard = error instanceof ProviderUnavailable && error.nothingHappened && isFirst
    const isOver = error instanceof ProviderRefused || isUnheard
    if (isOver) await record({ type: 'RecordRefundFailed' })
    throw error
  }
}
