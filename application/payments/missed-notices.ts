import { setTimeout as delay } from 'node:timers/promises'
import type { Environment } from '../../domain/kernel/ids.ts'
import { orThrow } from '../../domain/kernel/rejection.ts'
import { processorNotices } from '../../domain/payments/processor/processor-notices.ts'
import type { Application } from '../commands/application.ts'
import { newContext } from '../commands/command-context.ts'
import { whileOwned } from '../followers/while-owned.ts'
import type { CardProcessor } from '../ports/card-processor.ts'
import type { Leases } from '../ports/leases.ts'
import { isAway } from '../ports/unavailable.ts'
import { type Parameter, statement } from '../queries/statement.ts'
import { takeNotice } from './processor-notices.ts'

/**
 * Notices of a card processor that never got here: the service was away for longer than they are sent, or refused them.
 * One process at a time lists what was told, and carries it out as if it had come by itself. What had come changes
 * nothing. All pauses are real milliseconds, as the processor's clock is real.
 */

/** Between two looks. */
export const LOOK_EVERY_MS = 10 * 60_000
/** Until another process may take over, or a look that failed is repeated. */
const PAUSE_MS = 10_000
/** What is listed once more, milliseconds of the processor's clock: a notice may appear after later ones. */
const OVERLAP_MS = 60 * 60_000

interface Parts {
  readonly leases: Leases
  /** Told of a notice that could not be carried out, or of a look that failed; the next look comes by itself. */
  readonly failed: (error: unknown) => void
}

/** Looks now and every 10 minutes once there are live sales, in whichever process has the lease; resolves when `stopping` aborts. */
export async function followNotices(
  app: Application,
  sender: CardProcessor,
  { leases, failed }: Parts,
  stopping: AbortSignal,
): Promise<void> {
  await whileOwned({
    leases,
    name: `processor-notices/${sender.kind}`,
    stopping,
    failed,
    pauseMs: PAUSE_MS,
    longestPauseMs: LOOK_EVERY_MS,
    async run(_lease, ended, progressed) {
      const pause = (ms: number) => delay(ms, null, { signal: ended }).catch(() => undefined)
      let since = (await app.commands.load(processorNotices, sender.kind)).state.until ?? 0
      while (!ended.aborted) {
        // nothing to ask about
        const isAwaited = await hasLiveSales(app)
        if (isAwaited) since = await catchUp(app, sender, since, { ended, failed })
        progressed()
        await pause(isAwaited ? LOOK_EVERY_MS : PAUSE_MS)
      }
    },
  })
}

const LIVE = { environment: 'live', limit: 1 } as const
interface Live {
  readonly environment: Environment
  readonly limit: number
}
const ANY_LIVE = (['payment_links', 'subscriptions', 'payment_sessions'] as const).map((table) =>
  statement(`any-live-${table}`, (db, $: Parameter<Live>) =>
    // each of them has these columns
    db
      .selectFrom(table as 'payment_links')
      .select('seq')
      .where('environment', '=', $('environment'))
      .limit($('limit')),
  ),
)

/** Whether a card processor may have something to tell: before the first live sale there is nothing. */
async function hasLiveSales({ read }: Pick<Application, 'read'>): Promise<boolean> {
  for (const kind of ANY_LIVE) if ((await read.query(kind, LIVE)).length > 0) return true
  return false
}

/**
 * Carries out what a processor told since a time. A notice that cannot be carried out holds up no other, and is listed
 * again the next time.
 * @param since epoch milliseconds of the processor's clock.
 * @returns from when on there is more to list. @throws ProviderUnavailable, and where log or database are away.
 */
export async function catchUp(
  app: Application,
  sender: CardProcessor,
  since: number,
  { ended, failed }: { readonly ended: AbortSignal; readonly failed: (error: unknown) => void },
): Promise<number> {
  const of = { environment: 'live', processor: sender.kind } as const
  const context = newContext(app, { type: 'system', id: 'card-processor' }, app.randomness.id())
  let done = since
  let isWhole = true
  for await (const { notices, until } of sender.noticesSince!(Math.max(0, since - OVERLAP_MS))) {
    for (const notice of notices) {
      if (ended.aborted) break
      try {
        await takeNotice(app, of, notice, context)
      } catch (error) {
        if (isAway(error)) throw error
        isWhole = false
        failed(error)
      }
    }
    if (ended.aborted) return done
    if (isWhole) done = Math.max(done, until)
  }
  const command = { type: 'CaughtUp', processor: sender.kind, until: done } as const
  orThrow(await app.commands.execute(processorNotices, sender.kind, command, context))
  return done
}
