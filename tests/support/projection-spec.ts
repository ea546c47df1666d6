import { expect } from 'vitest'
import { EventRegistry, type RecordedEvent } from '../../application/commands/event-registry.ts'
import { aggregates } from '../../domain/catalogue.ts'
import type { Aggregate } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { Fold } from '../../projections/runtime/fold.ts'
import type { Projection, Row } from '../../projections/runtime/projection.ts'

/** Events of one stream, in order; recorded one second apart from `at` on. */
export interface Happened {
  readonly stream: string
  readonly events: readonly DomainEvent[]
  /** ISO time of the first one. */
  readonly at?: string
}

type Tables = Readonly<Record<string, readonly Row[]>>

const STARTED = '2026-03-01T12:00:00.000Z'
export const TENANT = 'a'.repeat(24)

/**
 * `given(what happened).thenRows(rows by table)` for one projection. Every example is folded as one page,
 * event by event with nothing remembered in between, and in pages of three: the rows must be the same.
 */
export function specifyProjection(projection: Projection, more: readonly Aggregate[] = []) {
  const registry = new EventRegistry([...aggregates, ...more])
  return {
    given(...history: readonly Happened[]) {
      const rows = () => {
        const events = recorded(registry, history)
        const whole = project(projection, events, events.length)
        for (const pageSize of [1, 3]) expect(project(projection, events, pageSize)).toEqual(whole)
        return whole
      }
      return {
        /** Rows by table, in key order; columns left out are not looked at. */
        thenRows(expected: Tables) {
          const found = rows()
          for (const [table, wanted] of Object.entries(expected)) {
            expect(found[table]).toHaveLength(wanted.length)
            expect(found[table]).toMatchObject(wanted)
          }
        },
        rows,
        /** Folding the last event fails. */
        thenFails(message: RegExp) {
          const events = recorded(registry, history)
          project(projection, events.slice(0, -1), 1)
          expect(() => project(projection, events, 1)).toThrow(message)
        },
      }
    },
  }
}

/** Events as they come out of the log: encoded, stored and decoded. */
export function recorded(registry: EventRegistry, history: readonly Happened[]): RecordedEvent[] {
  const revisions = new Map<string, number>()
  const events: RecordedEvent[] = []
  for (const { stream, events: happened, at } of history) {
    for (const [index, event] of happened.entries()) {
      const revision = (revisions.get(stream) ?? -1) + 1
      revisions.set(stream, revision)
      const recordedAt = new Date(Date.parse(at ?? STARTED) + index * 1000).toISOString()
      const position = BigInt(events.length + 1)
      const eventId = `00000000-0000-8000-8000-${String(position).padStart(12, '0')}`
      const encoded = registry.encode(event, {
        tenant_id: TENANT,
        environment: 'live',
        actor: { type: 'system', id: 'test' },
        correlation_id: 'test',
        causation_id: 'test',
        recorded_at: recordedAt,
      })
      events.push(registry.decode({ ...encoded, eventId, position, stream, revision }))
    }
  }
  return events
}

/** Folds events in pages of a size over tables kept as a database would: as JSON, by key. */
function project(projection: Projection, events: readonly RecordedEvent[], pageSize: number): Tables {
  const stored = new Map(projection.tables.map((table) => [table.name, new Map<string, string>()]))
  for (let at = 0; at < events.length; at += pageSize) {
    const fold = new Fold(projection.tables)
    for (const event of events.slice(at, at + pageSize)) {
      const handlers = projection.handlers.filter((handler) => handler.type === event.type)
      for (const [name, keys] of fold.missing(handlers.map((handler) => handler.reads(event)))) {
        const rows = keys.flatMap((key) => {
          const json = stored.get(name)?.get(JSON.stringify(key))
          return json === undefined ? [] : [JSON.parse(json) as Row]
        })
        fold.learn(name, keys, rows)
      }
      fold.apply(handlers, event)
    }
    for (const { table, put, removed } of fold.take()) {
      const { key } = projection.tables.find((one) => one.name === table)!
      const keyOf = (row: Row) => JSON.stringify(key.map((column) => row[column]))
      for (const row of put) stored.get(table)!.set(keyOf(row), JSON.stringify(row))
      for (const row of removed) stored.get(table)!.delete(keyOf(row))
    }
  }
  return Object.fromEntries(
    [...stored].map(([table, rows]) => [
      table,
      [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, json]) => JSON.parse(json) as Row),
    ]),
  )
}
