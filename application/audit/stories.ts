import { parseStream } from '../../domain/kernel/decider.ts'
import type { Application } from '../commands/application.ts'
import { eventsOf } from '../commands/events-of.ts'
import { maskedState } from '../commands/sealed-fields.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import { type Difference, differences } from './differences.ts'
import { sentenceOf, wordsOf } from './sentences.ts'
import { beginnings, isUnder } from './story-beginnings.ts'
import { type StoryStreams, storyStreams, type Thing, thingOf } from './story-streams.ts'
import { endOf, type Folded, fits, foldedAt, type Point, type ShownEvent, shown } from './streams.ts'

/** The story of a thing: its events over all its streams, in log order, what it came to, and what caused what. */

/** An event of a story. */
export interface StoryEvent extends ShownEvent {
  /** What it says, in plain words. */
  readonly sentence: string
  /** What it happened to; null: that has no story of its own. */
  readonly about: Thing | null
  /** Id of the event that caused it; null: a request or a timer did, `metadata.correlation_id`. */
  readonly caused_by: string | null
  /** Ids of the events among these that it caused. */
  readonly causes: readonly string[]
}

export interface Story extends Thing {
  /** The stream of the thing itself. */
  readonly stream: string
  /** Of the thing's own stream at the point: the last event that counts, and what the thing came to. */
  readonly revision: number
  readonly recorded_at: string
  /** Masked. Null where it is too large to be worked out here, and where the thing is gone. */
  readonly state: unknown
  /** What differs between two points; null where one is asked for. */
  readonly changes: readonly Difference[] | null
  readonly events: readonly StoryEvent[]
}

export interface StoryPage {
  readonly story: Story
  /** The position after which it goes on; null at the end. */
  readonly next: string | null
  /** How many sealed values were opened. */
  readonly revealed: number
}

/** Which part of a story. */
export interface StoryOptions {
  /** Events after this position. */
  readonly after: bigint
  readonly limit: number
  /** As of when: later events do not count. */
  readonly until: Pick<Point, 'asOf' | 'position'>
  /** Only events after this point, and what has changed since; null: from the beginning. */
  readonly since: Pick<Point, 'asOf' | 'position'> | null
  readonly reveal: boolean
}

/** Events of a stream, or things, that are read at once. */
const READ_PAGE = 50
/** JSON bytes of data in one answer, about. */
const MAX_BYTES = 8 * 1024 * 1024
/** Events that are looked at for one answer. */
const MAX_LOOKED_AT = 5_000
/** JSON bytes of the events that a state is folded from, at the most. */
const MOST_FOLDED = 32 * 1024 * 1024

/**
 * A part of the story of a thing.
 * @param signal ends it.
 * @returns null when there is no such thing, or there was none at that point.
 * @throws UnreadableEvent when an event that its state is made of does not fit its type.
 */
export async function storyOf(
  app: Application,
  thing: Thing,
  { after, limit, until, since, reveal }: StoryOptions,
  signal: AbortSignal,
): Promise<StoryPage | null> {
  const streams = await storyStreams(app, thing)
  if (streams === null) return null
  const folded = await foldedAt(app, streams.root, until, { mostBytes: MOST_FOLDED })
  if (folded === null) return null
  const { items, next } = await eventsIn(app, thing, streams, { after, limit, until, since }, signal)
  const state = stateIn(folded, streams)
  // one of several things in its stream had not begun
  if (streams.part && state === null && items.length === 0 && after === LOG_START && since === null)
    return null
  const { events, revealed } = await shown(
    app,
    items.map(({ event }) => event),
    null,
    reveal,
  )
  const told = events.map((event, index) => ({
    ...event,
    sentence: sentence(app, items[index]!),
    about: streams.part ? thing : thingIn(event.stream),
    caused_by: causeOf(event),
    causes: events.filter((one) => causeOf(one) === event.event_id).map(({ event_id }) => event_id),
  }))
  const before = since && (await foldedAt(app, streams.root, since, { mostBytes: MOST_FOLDED }))
  return {
    story: {
      kind: thing.kind,
      id: thing.id,
      stream: streams.root,
      revision: folded.last.revision,
      recorded_at: folded.last.metadata.recorded_at,
      state: maskedState(state, folded.sensitive),
      changes:
        since === null || folded.isCut || before?.isCut
          ? null
          : differences(
              before && stateIn(before, streams),
              state,
              [before, folded].flatMap((one) => [...(one?.sensitive ?? [])]),
            ),
      events: told,
    },
    next: next === null ? null : String(next),
    revealed,
  }
}

/** What the thing came to; null: it is gone, or too large to be worked out here. */
function stateIn({ state, isCut }: Folded, { part }: StoryStreams): unknown {
  if (isCut) return null
  return part ? part.of(state) : state
}

/** An event, and the one before it in its stream where that was read. */
interface Item {
  readonly event: StoredEvent
  readonly before: StoredEvent | undefined
}

/** The events of a part, in log order. @returns `next` null at the end. */
async function eventsIn(
  app: Application,
  thing: Thing,
  { root, others, part }: StoryStreams,
  { after, limit, until, since }: Omit<StoryOptions, 'reveal'>,
  signal: AbortSignal,
): Promise<{ readonly items: readonly Item[]; readonly next: bigint | null }> {
  const from = since?.position !== undefined && since.position > after ? since.position : after
  const toTime = until.asOf === undefined ? {} : { toTime: until.asOf }
  const span = since?.asOf === undefined ? toTime : { ...toTime, fromTime: since.asOf + 1 }
  const sources = [
    ...[root, ...others].map((stream) => itemsOf(app.log, stream, from)),
    firstItems(beginnings(app, thing, from, READ_PAGE)),
  ]
  const isOver = endOf(toTime)
  const heads = await Promise.all(sources.map((source) => source.next()))
  const items: Item[] = []
  let readTo = from
  let bytes = 0
  for (let lookedAt = 0; ; lookedAt += 1) {
    signal.throwIfAborted()
    const at = earliest(heads.map(({ value }) => value?.event.position ?? null))
    const item = heads[at]?.value
    if (!item || isOver(item.event)) return { items, next: null }
    const { event } = item
    if (until.position !== undefined && event.position > until.position) return { items, next: null }
    if (items.length >= limit || lookedAt >= MAX_LOOKED_AT || bytes >= MAX_BYTES)
      return { items, next: readTo }
    readTo = event.position
    if (fits(event, span) && isUnder(thing, event) && (part?.holds(event) ?? true)) {
      items.push(item)
      bytes += event.data.length
    }
    heads[at] = await sources[at]!.next()
  }
}

/** Which of some positions is the first; -1: none is there. */
function earliest(positions: readonly (bigint | null)[]): number {
  return positions.reduce<number>((first, position, index) => {
    if (position === null) return first
    return first < 0 || position < positions[first]! ? index : first
  }, -1)
}

/** The events of a stream behind a position in the log. */
async function* itemsOf(log: EventLog, stream: string, after: bigint): AsyncGenerator<Item, void, undefined> {
  const from = await revisionAfter(log, stream, after)
  let before: StoredEvent | undefined
  for await (const event of eventsOf(log, stream, { from: Math.max(0, from - 1), pageSize: READ_PAGE })) {
    if (event.revision >= from) yield { event, before }
    before = event
  }
}

async function* firstItems(events: AsyncIterable<StoredEvent>): AsyncGenerator<Item, void, undefined> {
  for await (const event of events) yield { event, before: undefined }
}

/** The revision of the first event of a stream behind a position: both ascend, so that it is found by halving. */
async function revisionAfter(log: EventLog, stream: string, after: bigint): Promise<number> {
  if (after === LOG_START) return 0
  const [last] = await log.readStream(stream, { direction: 'backwards', maxCount: 1 })
  let low = 0
  let high = last === undefined ? 0 : last.revision + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [event] = await log.readStream(stream, { from: middle, maxCount: 1 })
    if (event && event.position <= after) low = middle + 1
    else high = middle
  }
  return low
}

function sentence(app: Application, { event, before }: Item): string {
  const decoded = decodedOrNull(app, event)
  if (!decoded) return `${wordsOf(event.type)}.`
  return sentenceOf(decoded, (before && decodedOrNull(app, before)) ?? undefined)
}

/** Null where an event does not fit its type: it is shown without its data. */
function decodedOrNull({ registry }: Application, event: StoredEvent) {
  try {
    return registry.decode(event)
  } catch {
    return null
  }
}

function thingIn(stream: string): Thing | null {
  const { category, id } = parseStream(stream)
  return thingOf(category, id)
}

function causeOf({ metadata }: ShownEvent): string | null {
  const { causation_id: cause, correlation_id: request } = metadata
  return cause === undefined || cause === request ? null : cause
}
