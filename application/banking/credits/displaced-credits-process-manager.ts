import { z } from 'zod'
import { BankDebitMatched } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { Application } from '../../commands/application.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { matchDisplacedCredits } from './bank-credits.ts'

/**
 * Decides anew on credits that lost their debit to a surer one. It begins with the first match there was: earlier
 * versions left such credits with the debit that they had lost.
 */
export function displacedCredits(app: Application) {
  return processManager({
    name: 'displaced-credits',
    startAt: 'beginning',
    // the least sure match takes the place of none
    on: [
      on(BankDebitMatched, ({ data: { confidence, match_id, leg_id } }) =>
        confidence === 'low' ? [] : [perform('match-displaced', match_id, { leg_id })],
      ),
    ],
    work: {
      'match-displaced': work({ payload: z.object({ leg_id: z.string() }) }, async (item) => {
        await matchDisplacedCredits(app, item.payload.leg_id, contextOf(item))
      }),
    },
  })
}
