import { isoTime } from '../../domain/kernel/calendar.ts'
import { orThrow } from '../../domain/kernel/rejection.ts'
import { type RaisedAlert, raisedAlert } from '../../domain/operations/raised-alert.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { derivedId } from '../commands/event-registry.ts'
import { ProcessorNotConfigured, ProviderRefused, ProviderUnavailable } from '../ports/provider.ts'
import { backoff, type WorkItem, type WorkOutcome } from './process-manager.ts'

/** How long a provider that was away for all tries is left alone, in service-clock milliseconds. */
export const OUTAGE_MS = 15 * 60_000
/** The same of a card processor that is not configured any more. */
const NOT_CONFIGURED_MS = 6 * 3_600_000
/** How long a provider may be away before the operator hears of what waits for it, in the same. */
export const LONG_OUTAGE_MS = 4 * 3_600_000
/** Tries of what a provider does, in a row: about 8 seconds in all. */
const TRIES = 6
const DAY_MS = 86_400_000

/** What waits, as its alert tells it; the first of its ids is that of a stream. */
export type HeldUp = Pick<RaisedAlert, 'kind' | 'about'>

/** In streams of these categories, earlier releases told it by an event `…HeldUp`. */
const FORMER: Readonly<Record<RaisedAlert['kind'], string>> = {
  payment_link_held_up: 'paymentLink',
  payment_session_held_up: 'paymentSession',
  subscription_held_up: 'subscription',
  debit_batch_held_up: 'bankDebit',
}

/** How such work is tried. */
export const ofProvider = { retry: backoff(TRIES) } as const

/**
 * Does what a provider has to do; one that is away for all tries is asked again later, once at a time, for as long as
 * it takes.
 * @param recordAway tells the operator what waits, once that takes long or where nobody can be asked; it may be
 *   called again with the same time.
 */
export async function throughOutages(
  { clock }: Pick<Application, 'clock'>,
  item: WorkItem,
  run: () => Promise<unknown>,
  recordAway: (since: number) => Promise<void> = async () => undefined,
): Promise<WorkOutcome> {
  try {
    await run()
    return { outcome: 'done' }
  } catch (error) {
    if (error instanceof ProviderRefused) return { outcome: 'stop', why: error.message }
    const now = clock.now()
    const awaySince = item.awaySince ?? now
    const isConfigured = !(error instanceof ProcessorNotConfigured)
    // one look is enough at what was away before
    const isAway = error instanceof ProviderUnavailable && (item.isLastTry || item.awaySince !== null)
    if (isConfigured && !isAway) throw error
    if (!isConfigured || now - awaySince >= LONG_OUTAGE_MS) await recordAway(awaySince)
    return { outcome: 'again', at: now + (isConfigured ? OUTAGE_MS : NOT_CONFIGURED_MS), awaySince }
  }
}

/**
 * Tells the operator what waits for a provider, once for it and a time.
 * @param heldUp a kind of alert, and ids of what it is about by their names.
 * @param context of what it is about.
 * @param since epoch milliseconds; default the beginning of the day (UTC), so that it is told once a day.
 */
export async function raiseHeldUp(
  { commands, clock, log }: Pick<Application, 'commands' | 'clock' | 'log'>,
  { kind, about }: HeldUp,
  context: CommandContext,
  since = Math.floor(clock.now() / DAY_MS) * DAY_MS,
): Promise<void> {
  const data = { kind, about, since: isoTime(since) }
  const id = derivedId(JSON.stringify(data), 'raised-alert')
  if ((await commands.load(raisedAlert, id)).state.isRaised) return
  const former = await log.readStream(`${FORMER[kind]}-${Object.values(about)[0]}`, { maxCount: 1_000 })
  const told = former.filter(({ type }) => type.endsWith('HeldUp')).map((event) => JSON.parse(event.data))
  if (told.some((one) => one.since === data.since && one.work === about.work)) return
  orThrow(await commands.execute(raisedAlert, id, { type: 'Raise', data }, context))
}
