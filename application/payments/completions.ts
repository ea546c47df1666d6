import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'

/** What a payer, a processor or a simulation did about a payment link. Times are epoch milliseconds. */
export interface LinkPayment {
  readonly linkId: string
  /** The processor's id of the payment; null of a simulated one. */
  readonly processorPaymentId: string | null
  /** Kept for the monthly charges of a plan. */
  readonly paymentMethodId: string | null
  readonly at: number
}

/**
 * Records that a link was paid. Money counts in every state: a link that was cancelled or had expired is paid late. The
 * policy is active, and can be read as such, when this returns.
 * @returns whether it had been paid before; then nothing happens.
 */
export function completeLink(
  _app: Application,
  _payment: LinkPayment,
  _context: CommandContext,
): Promise<{ readonly alreadyPaid: boolean } | Rejection> {
  throw new Error('not built yet')
}

/** Records a declined attempt: the link stays payable. */
export function failLink(
  _app: Application,
  _attempt: { readonly linkId: string; readonly failureMessage: string; readonly at: number },
  _context: CommandContext,
): Promise<Rejection | null> {
  throw new Error('not built yet')
}

/** Records that a link can no longer be paid because its time is over. A paid or cancelled one stays as it is. */
export function expireLink(
  _app: Application,
  _link: { readonly linkId: string; readonly at: number },
  _context: CommandContext,
): Promise<Rejection | null> {
  throw new Error('not built yet')
}
