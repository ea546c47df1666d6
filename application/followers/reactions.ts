import type { EventRegistry, RecordedEvent } from '../commands/event-registry.ts'
import { isStorable } from '../commands/storable-text.ts'
import { TimeSlice } from '../commands/time-slices.ts'
import type { Clock } from '../ports/clock.ts'
import type { StoredEvent } from '../ports/event-log.ts'
import { SafeError } from '../ports/safe-error.ts'
import { tracedPast } from '../ports/tracing.ts'
import { isAway } from '../ports/unavailable.ts'
import type { Stop } from './consumer.ts'
import type { Handled, OwnedFollowed } from './owned-follower.ts'
import type { Intent, ProcessManager, WorkKind } from './process-manager.ts'
import type { WorkKey, WorkToStore } from './work-store.ts'

/** A payload that its kind of work does not declare; tells places, never values. */
export class UnfitPayload extends SafeError {
  override readonly name = 'UnfitPayload'
}

/** A payload as its kind declares it, and what it is counted by. @throws UnfitPayload */
export function fitPayload(
  kind: WorkKind | undefined,
  name: string,
  given: unknown,
): { readonly payload: unknown; readonly concurrencyKey: string } {
  if (!kind) throw new UnfitPayload(`There is no work of kind ${name}`)
  const parsed = kind.payload.safeParse(given)
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.code}`).join(', ')
    throw new UnfitPayload(`The payload of ${name} does not fit: ${where}`)
  }
  checkStorable(parsed.data, `The payload of ${name}`)
  return { payload: parsed.data, concurrencyKey: kind.perKey?.of(parsed.data) ?? '' }
}

/** @throws UnfitPayload where nothing could store it: changed silently, it would be other work. */
function checkStorable(value: unknown, what: string): void {
  if (isStorable(JSON.stringify(value))) return
  throw new UnfitPayload(`${what} holds U+0000 or half of a surrogate pair, which PostgreSQL cannot store`)
}

/** What a process manager makes of events, one by one: the work that it wants, and streams that stop. */
export function reactionsOf(
  { name: processManager, on, prepare, work }: ProcessManager,
  registry: EventRegistry,
  clock: Clock,
): Pick<OwnedFollowed, 'types' | 'handle'> {
  const byType = new Map(on.map((reaction) => [reaction.type.name, reaction]))

  const wantedBy = (
    { metadata, eventId }: RecordedEvent,
    intent: Intent,
    traceparent: string | undefined,
  ): WorkToStore | WorkKey => {
    const { kind, key } = intent
    checkStorable([key, metadata.correlation_id, metadata.tenant_id], `The key or the correlation of ${kind}`)
    const name = { processManager, kind, key }
    if (intent.intent === 'cancel') return name
    const now = clock.now()
    const { dueAt = now } = intent
    return {
      ...name,
      ...fitPayload(work[kind], kind, intent.payload),
      dueAt,
      isLater: dueAt > now,
      correlationId: metadata.correlation_id,
      causationId: eventId,
      tenantId: metadata.tenant_id,
      environment: metadata.environment,
      traceparent,
    }
  }

  const tracedReaction = ({ type, eventId, position, metadata }: RecordedEvent, since: number) =>
    tracedPast(
      {
        name: `process-manager ${processManager}`,
        kind: 'consumer',
        causedBy: metadata.traceparent,
        attributes: {
          process_manager: processManager,
          event_type: type,
          event_id: eventId,
          position: String(position),
        },
      },
      since,
    )

  const handle = async (events: readonly StoredEvent[]): Promise<Handled> => {
    /** Of each piece of work the last intent, in the order of the intents. */
    const wanted = new Map<string, WorkToStore | WorkKey>()
    const stops = new Map<string, Stop>()
    const slice = new TimeSlice()
    const inTurn = async (react: (event: StoredEvent) => void) => {
      for (const event of events) {
        const pause = slice.over()
        if (pause) await pause
        if (stops.has(event.stream)) continue
        try {
          react(event)
        } catch (error) {
          stops.set(event.stream, { at: event, error })
        }
      }
    }
    let prepared: (event: StoredEvent) => unknown = () => undefined
    if (prepare) {
      const readable: RecordedEvent[] = []
      await inTurn((stored) => void readable.push(registry.decode(stored)))
      stops.clear()
      prepared = await preparedBy(prepare, readable)
    }
    await inTurn((stored) => {
      const event = registry.decode(stored)
      // its type is that of what the same process manager prepares
      const since = performance.now()
      const intents = byType.get(event.type)!.react(event, prepared(stored) as never)
      const step = intents.length === 0 ? undefined : tracedReaction(event, since)
      // where one of them does not fit, nothing of the event is wanted
      for (const one of intents.map((intent) => wantedBy(event, intent, step))) {
        const name = JSON.stringify([one.kind, one.key])
        // deleted first, so that it takes the place of the last
        wanted.delete(name)
        wanted.set(name, one)
      }
    })
    const store: WorkToStore[] = []
    const cancel: WorkKey[] = []
    for (const one of wanted.values()) {
      if ('payload' in one) store.push(one)
      else cancel.push(one)
    }
    return { changes: wanted.size === 0 ? null : { store, cancel }, stops: [...stops.values()] }
  }

  return { types: [...byType.keys()], handle }
}

/**
 * Prepares events, all at once. Where that fails by what one of them needs, each by itself, so that the others go on.
 * @returns what was prepared for an event; it throws what preparing that event failed with.
 */
async function preparedBy(
  prepare: NonNullable<ProcessManager['prepare']>,
  events: readonly RecordedEvent[],
): Promise<(event: StoredEvent) => unknown> {
  try {
    const all = await prepare(events)
    return () => all
  } catch (error) {
    if (isAway(error)) throw error
  }
  const each = new Map<bigint, { readonly prepared: unknown } | { readonly error: unknown }>()
  const failed = new Set<string>()
  for (const event of events) {
    // what follows in a stream that stops is left alone
    if (failed.has(event.stream)) continue
    try {
      each.set(event.position, { prepared: await prepare([event]) })
    } catch (error) {
      if (isAway(error)) throw error
      failed.add(event.stream)
      each.set(event.position, { error })
    }
  }
  return ({ position }) => {
    const one = each.get(position)
    if (one && 'error' in one) throw one.error
    return one?.prepared
  }
}
