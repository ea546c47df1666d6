import { z } from 'zod'
import { DebitCollectionAccepted, debitCollection } from '../../domain/banking/debit-collection.ts'
import type { Application } from '../application.ts'
import { createDebitsOf } from '../banking/collections.ts'
import { within } from '../command-handling/verbs.ts'
import { backoff, contextOf, on, perform, processManager, work } from './runtime/process-manager.ts'

/** Creates the debits of batch collections that were accepted, where the request did not come to it. */
export function debitCollections(app: Application) {
  return processManager({
    name: 'debit-collections',
    startAt: 'beginning',
    on: [on(DebitCollectionAccepted, ({ data }) => [perform('create-debits', data.collection_id, {})])],
    work: {
      'create-debits': work(
        { payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 },
        async (item) => {
          const { state } = await app.commands.load(debitCollection, item.key)
          if (state === null || state === 'refused') return { outcome: 'done' }
          await createDebitsOf(app, state, within(contextOf(item), state))
          return { outcome: 'done' }
        },
      ),
    },
  })
}
