import { isRejection } from '../../../domain/kernel/rejection.ts'
import { financingSession } from '../../../domain/payments/financing/financing-session.ts'
import {
  FinancingExpired,
  FinancingRequested,
  FinancingSessionCancelled,
  FinancingSessionCreated,
} from '../../../domain/payments/financing/financing-session-events.ts'
import type { Application } from '../../commands/application.ts'
import { changed } from '../../commands/verbs.ts'
import { cancel, contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { submitRequest } from './submit.ts'

/** What follows from what happens to financing sessions: requests are sent to the provider, and their time ends. */
export function financingSessions(app: Application) {
  return processManager({
    name: 'financing-sessions',
    startAt: 'beginning',
    on: [
      on(FinancingSessionCreated, ({ data: { financing_session_id, expires_at } }) => [
        perform('expire', financing_session_id, {}, { at: Date.parse(expires_at) }),
      ]),
      on(FinancingRequested, ({ data }) => [perform('submit', data.financing_session_id, {})]),
      on(FinancingSessionCancelled, ({ data }) => ended(data.financing_session_id)),
      on(FinancingExpired, ({ data }) => ended(data.financing_session_id)),
    ],
    work: {
      // a provider that is not reached is asked again, for as long as the session is open
      submit: work(ofProvider, (item) =>
        throughOutages(app, item, () => submitRequest(app, item.key, contextOf(item), item.signal)),
      ),
      expire: work({}, async (item) => {
        const command = { type: 'Expire', by: 'time', at: item.dueAt } as const
        const expired = await changed(app, financingSession, item.key, command, contextOf(item))
        if (isRejection(expired)) return { outcome: 'stop', why: expired.message }
      }),
    },
  })
}

/** A request that is on its way is not called back. */
function ended(sessionId: string) {
  return [cancel('expire', sessionId), cancel('submit', sessionId)]
}
