import { DebitCollectionAccepted, debitCollection } from '../../../domain/banking/debits/debit-collection.ts'
import type { Application } from '../../commands/application.ts'
import { within } from '../../commands/verbs.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { createDebitsOf } from './collections.ts'

/** Creates the debits of batch collections that were accepted, where the request did not come to it. */
export function debitCollections(app: Application) {
  return processManager({
    name: 'debit-collections',
    startAt: 'beginning',
    on: [on(DebitCollectionAccepted, ({ data }) => [perform('create-debits', data.collection_id, {})])],
    work: {
      'create-debits': work({}, async (item) => {
        const { state } = await app.commands.load(debitCollection, item.key)
        if (state === null || state === 'refused') return
        await createDebitsOf(app, state, within(contextOf(item), state))
      }),
    },
  })
}
