import { DROP_AGE } from '../../domain/webhooks/delivery-schedule.ts'
import type { WorkStore } from '../followers/work-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { Notices } from '../ports/notices.ts'
import type { DeliveryRecords } from '../ports/webhooks.ts'

export interface WaitingParts {
  readonly records: Pick<DeliveryRecords, 'waiting' | 'resetFailures'>
  readonly work: Pick<WorkStore, 'reschedule'>
  readonly clock: Clock
  readonly notices: Notices
}

const AT_ONCE = 1_000

/**
 * Has the unfinished deliveries of a subscription looked at again: one whose subscription was enabled goes on at its rung,
 * at once when that has passed; one whose subscription was deleted ends. What is as old as deliveries are dropped is due
 * by itself: of a long history only the last 48 hours are read.
 */
export async function wakeWaiting(
  { records, work, clock, notices }: WaitingParts,
  { subscriptionId, isDeleted }: { readonly subscriptionId: string; readonly isDeleted: boolean },
  signal: AbortSignal,
): Promise<void> {
  for (let after = { createdAt: clock.now() - DROP_AGE, seq: '0' }; ; ) {
    signal.throwIfAborted()
    const waiting = await records.waiting(subscriptionId, { after, limit: AT_ONCE })
    const now = clock.now()
    await work.reschedule(
      'webhook-deliveries',
      ['deliver', 'redeliver'],
      waiting.map(({ deliveryId, nextAttemptAt }) => ({
        key: deliveryId,
        dueAt: isDeleted ? now : Math.max(now, nextAttemptAt),
      })),
    )
    if (waiting.length > 0) notices.wake('work')
    if (waiting.length < AT_ONCE) return
    after = waiting.at(-1)!
  }
}
