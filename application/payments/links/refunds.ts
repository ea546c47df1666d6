import { isRejection, orThrow, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { type PaymentLink, paymentLink } from '../../../domain/payments/links/payment-link.ts'
import type { RefundReason } from '../../../domain/payments/links/payment-link-events.ts'
import {
  pendingRefund,
  type Refund,
  refundableCents,
} from '../../../domain/payments/links/payment-link-refunds.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { derivedId } from '../../commands/event-registry.ts'
import { Turns } from '../../commands/turns.ts'
import { readable, within } from '../../commands/verbs.ts'
import type { CardProcessor, LinkNotice } from '../../ports/card-processor.ts'
import { ProviderRefused, ProviderUnavailable } from '../../ports/provider.ts'
import { heldUp, processorOf, processorToAsk } from '../processor/processor-of.ts'

export interface NewRefundOfLink {
  /** Null: whatever is left. */
  readonly amountCents: number | null
  readonly reason: RefundReason | null
}

/** Refunds of one link wait for each other, so that each is decided on what the other left. */
const turns = new Turns()

/**
 * Refunds a paid link in part or in full. The refund is stored before the processor is asked, and has one id there for
 * ever. When it is not known what became of it (a crash, a timeout) it stays pending: the same request under its key
 * goes on with it, as does one without a key for the same amount and reason; any other settles it first; and after a
 * while the service settles it itself.
 * @returns the link after the refund, which is pending where the processor takes its time.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export function refundLink(
  app: Application,
  linkId: string,
  refund: NewRefundOfLink,
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  return turns.run(linkId, () => requestAndSettle(app, linkId, refund, context))
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
      // a key says which refund is meant; without one the same request is taken for the same refund
      const isMeant =
        pending === own || (!context.mayRepeat && isSame(pending, link, { amountCents, reason }))
      if (isMeant) return settleRefund(app, link, pending, context)
      if (await isStillPending(app, link, pending, context)) {
        return reject('conflict', 'refund_pending', 'Another refund of the payment is under way')
      }
      continue
    }
    // a refund that cannot be carried out binds no money
    if (link.payment) {
      await processorToAsk(app, link, heldUp('payment_link', linkId, 'refund'), context)
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

/** Settles the refund of somebody else. One that fails frees what it had bound. */
async function isStillPending(
  app: Application,
  link: PaymentLink,
  pending: Refund,
  context: CommandContext,
): Promise<boolean> {
  try {
    return pendingRefund(await settleRefund(app, link, pending, context)) !== null
  } catch (error) {
    if (error instanceof ProviderRefused) return false
    throw error
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
 * Has the processor carry out a refund that was requested, and records the result. A repetition, at
 * whatever time, asks for the same refund.
 * @param isFirst the processor was not asked for it before.
 * @returns the link; the refund stays pending where the processor takes its time.
 * @throws ProviderUnavailable: it stays pending, unless the processor never heard of it; ProviderRefused: it has failed.
 */
export async function settleRefund(
  app: Application,
  link: PaymentLink,
  { refund_id: refundId, amount_cents: amountCents, reason }: Refund,
  context: CommandContext,
  isFirst = false,
): Promise<PaymentLink> {
  const { payment_link_id: linkId } = link
  const record = (result: RefundResult) => recordRefund(app, link, refundId, result, context)
  const processorPaymentId = link.payment!.processor_payment_id
  // nothing moved by a simulated payment
  if (processorPaymentId === null) return record({ type: 'RecordRefunded', processorRefundId: null })
  const asked = { linkId, refundId, processorPaymentId, amountCents, reason, isRepeated: !isFirst }
  let answer: Awaited<ReturnType<CardProcessor['refund']>>
  try {
    answer = await processorOf(app, link).refund(asked, `refund-${refundId}`)
  } catch (error) {
    // of what was asked before, this says nothing
    const isUnheard = error instanceof ProviderUnavailable && error.nothingHappened && isFirst
    const isOver = error instanceof ProviderRefused || isUnheard
    if (isOver) await record({ type: 'RecordRefundFailed', processorRefundId: null })
    throw error
  }
  const { status, processorRefundId } = answer
  if (status === 'pending') return link
  if (status === 'succeeded') return record({ type: 'RecordRefunded', processorRefundId })
  await record({ type: 'RecordRefundFailed', processorRefundId })
  throw new ProviderRefused('The card processor could not carry out the refund')
}

/** Records what the processor tells of a refund; it may fail after it had succeeded. */
export async function recordRefundNotice(
  app: Application,
  link: PaymentLink,
  { refundId, status, processorRefundId }: Extract<LinkNotice, { readonly about: 'link_refund' }>,
  context: CommandContext,
): Promise<PaymentLink | Rejection> {
  if (!link.refunds.some(({ refund_id }) => refund_id === refundId)) {
    return reject('not_found', 'refund_not_found', 'There is no such refund')
  }
  const type = status === 'succeeded' ? 'RecordRefunded' : 'RecordRefundFailed'
  return recordRefund(app, link, refundId, { type, processorRefundId }, context)
}

interface RefundResult {
  readonly type: 'RecordRefunded' | 'RecordRefundFailed'
  readonly processorRefundId: string | null
}

async function recordRefund(
  app: Application,
  link: PaymentLink,
  refundId: string,
  result: RefundResult,
  context: CommandContext,
): Promise<PaymentLink> {
  const outcome = await app.commands.execute(
    paymentLink,
    link.payment_link_id,
    { ...result, refundId, at: app.clock.now() },
    // of two processes that settle it at once, each records what it found
    { ...within(context, link), commandId: derivedId(refundId, context.commandId) },
  )
  return orThrow(await readable(app, paymentLink, outcome))
}
