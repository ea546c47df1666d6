import { z } from 'zod'
import { BankCreditReceived } from '../../../domain/banking/credits/bank-credit.ts'
import {
  BankDebitCancelled,
  BankDebitCreated,
  BankDebitFailed,
  BankDebitGated,
  BankDebitInFile,
  BankDebitMatched,
  BankDebitRejected,
  BankDebitReleased,
  BankDebitReported,
  BankDebitRepresented,
  BankDebitReturned,
  BankDebitSubmitted,
} from '../../../domain/banking/debits/bank-debit-events.ts'
import { nextNight } from '../../../domain/banking/debits/banking-days.ts'
import { reconciliation } from '../../../domain/banking/reconciliation/reconciliation.ts'
import { isoTime } from '../../../domain/kernel/calendar.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import { createdId } from '../../commands/command-context.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { compareReturnRates } from '../debits/return-rates.ts'
import { reconcile } from './reconcile.ts'

/** By these, too, a debit goes from one account into another, or into none. */
const MOVING = [
  ...[BankDebitInFile, BankDebitSubmitted, BankDebitReported, BankDebitMatched, BankDebitRepresented],
  ...[BankDebitGated, BankDebitReleased, BankDebitRejected, BankDebitFailed, BankDebitCancelled],
] as const

/**
 * Holds the money to account: all that is said of it is compared in each night after a day on which any moved, and what
 * comes back is held against what may.
 */
export function moneyAccounted(app: Application) {
  const kind = { slots: 1 }
  return processManager({
    name: 'money-accounted',
    startAt: 'registration',
    on: [
      on(BankDebitCreated, ({ data }) => inTheNightAfter(data.created_at)),
      ...MOVING.map((type) => on(type, ({ data }) => inTheNightAfter(data.at))),
      on(BankCreditReceived, ({ data }) => inTheNightAfter(data.received_at)),
      on(BankDebitReturned, ({ data, metadata: { tenant_id, environment } }) => [
        ...inTheNightAfter(data.at),
        // what comes back in the sandbox was no money
        ...(environment === 'live'
          ? [perform('compare-return-rates', data.leg_id, { tenant_id: tenant_id! })]
          : []),
      ]),
    ],
    work: {
      reconcile: work({ ...kind, timeLimitMs: 1_800_000 }, async (item) => {
        const context = contextOf(item)
        const before = await app.commands.load(reconciliation, createdId(context, reconciliation))
        orThrow(before.state ?? (await reconcile(app, 'night', context)))
        await compareReturnRates(app, null, context)
      }),
      'compare-return-rates': work(
        { ...kind, payload: z.object({ tenant_id: z.string() }) },
        async (item) => {
          await compareReturnRates(app, item.payload.tenant_id, contextOf(item))
        },
      ),
    },
  })
}

/** One comparison for all that happens until then. @param time ISO 8601. */
function inTheNightAfter(time: string) {
  const at = nextNight(Date.parse(time))
  return [perform('reconcile', isoTime(at), {}, { at })]
}
