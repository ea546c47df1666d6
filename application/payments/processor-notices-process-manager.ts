import { isRejection, orThrow } from '../../domain/kernel/rejection.ts'
import {
  ProcessorNoticeNotUnderstood,
  ProcessorNoticeResolved,
  processorNotice,
} from '../../domain/payments/processor/processor-notice.ts'
import { nextOverdueAt, subscription } from '../../domain/payments/subscriptions/subscription.ts'
import {
  SubscriptionEnded,
  SubscriptionStarted,
} from '../../domain/payments/subscriptions/subscription-events.ts'
import type { Application } from '../commands/application.ts'
import { derivedId } from '../commands/event-registry.ts'
import { changed } from '../commands/verbs.ts'
import { cancel, contextOf, on, perform, processManager, work } from '../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../followers/through-outages.ts'
import { placeOf, readAgain } from './parked-notices.ts'
import { applyNotice } from './processor-notices.ts'

/** What a card processor told in a shape that was not understood, and what it never told. */
export function processorNotices(app: Application) {
  return processManager({
    name: 'processor-notices',
    startAt: 'beginning',
    on: [
      // not understood a moment ago, it fails at once: an operator has it read again, by another release
      on(ProcessorNoticeNotUnderstood, ({ data }) => [perform('carry-out', data.notice_id, {})]),
      // of one that was seen to, its body leaves the vault
      on(ProcessorNoticeResolved, ({ data }) => [perform('carry-out', data.notice_id, {})]),
      on(SubscriptionStarted, ({ data }) => {
        const at = nextOverdueAt(data, 0)
        return at === null ? [] : [perform('find-overdue', data.subscription_id, {}, { at })]
      }),
      on(SubscriptionEnded, ({ data }) => [cancel('find-overdue', data.subscription_id)]),
    ],
    work: {
      'carry-out': work(ofProvider, async (item) => {
        let why: string | null = null
        const outcome = await throughOutages(app, item, async () => {
          why = await carryOut(app, item.key, contextOf(item))
        })
        return why === null ? outcome : { outcome: 'stop', why }
      }),
      'find-overdue': work({}, async (item) => {
        const command = { type: 'FindOverdue', at: item.dueAt } as const
        // each month is another command of the same work
        const commandId = derivedId(item.commandId, String(item.dueAt))
        const context = { ...contextOf(item), commandId }
        const after = await changed(app, subscription, item.key, command, context)
        if (isRejection(after)) return { outcome: 'stop', why: after.message }
        const at = after.ended ? null : nextOverdueAt(after, item.dueAt)
        if (at !== null) return { outcome: 'again', at }
      }),
    },
  })
}

/** Reads a parked notice again, and carries it out, unless it was seen to; then its body goes. @returns why not. */
async function carryOut(
  app: Application,
  noticeId: string,
  context: ReturnType<typeof contextOf>,
): Promise<string | null> {
  const { state } = await app.commands.load(processorNotice, noticeId)
  if (state === null) return null
  if (state.status === 'not_understood') {
    const notice = await readAgain(app, state)
    if (typeof notice === 'string') return notice
    if (!(await applyNotice(app, state, notice, context)))
      return 'The notice tells of nothing that is known here'
    const command = { type: 'RecordCarriedOut', at: app.clock.now() } as const
    orThrow(await changed(app, processorNotice, noticeId, command, context))
  }
  await app.vault.remove(placeOf(state))
  return null
}
