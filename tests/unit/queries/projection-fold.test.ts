import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { EventRegistry, type RecordedEvent } from '../../../application/commands/event-registry.ts'
import { bigint, orNull, table, text } from '../../../application/queries/table.ts'
import { eventType } from '../../../domain/kernel/event-type.ts'
import { EmployeeChangesRecorded } from '../../../domain/parties/employee-sync.ts'
import { employeeRegister } from '../../../projections/parties/employee-register.ts'
import { Fold } from '../../../projections/runtime/fold.ts'
import { type Handler, projection } from '../../../projections/runtime/projection.ts'
import { runs } from '../../support/generated.ts'
import { recorded, specifyProjection } from '../../support/projection-spec.ts'

const Counted = eventType('Counted', { counter: z.string(), by: z.number() })
const Cleared = eventType('Cleared', { counter: z.string() })
const aggregate = { category: 'counter', events: [Counted, Cleared], initialState: null, evolve: () => null }
const registry = new EventRegistry([aggregate])

const countersTable = table('counters', {
  key: ['counter'],
  columns: { counter: text(), total: bigint(), note: orNull(text()) },
})
const counters = projection({
  name: 'counters',
  version: 1,
  tables: [countersTable],
  handlers: (on) => [
    on(Counted, {
      reads: ({ data }) => ({ counters: [[data.counter]] }),
      apply({ data }, { counters }) {
        const row = counters.get(data.counter)
        if (row) counters.change([data.counter], { total: row.total + data.by })
        else counters.put({ counter: data.counter, total: data.by })
        if (data.by >= 0) return
        counters.change([data.counter], { note: 'changed twice' })
        throw new Error('negative')
      },
    }),
    on(Cleared, { apply: ({ data }, { counters }) => counters.remove(data.counter) }),
  ],
})

const counted = (counter: string, by: number) => Counted.of({ counter, by })
const events = (...happened: Parameters<typeof recorded>[1][number]['events']) =>
  recorded(registry, [{ stream: 'counter-1', events: happened }])

function apply(fold: Fold, event: RecordedEvent): void {
  fold.apply(
    counters.handlers.filter((handler) => handler.type === event.type),
    event,
  )
}

describe('folding events into tables', () => {
  it('hands out rows whole, with null for columns never set', () => {
    const fold = new Fold(counters.tables)
    fold.forget(true)
    for (const event of events(counted('a', 1), counted('a', 2))) apply(fold, event)
    expect(fold.take()).toEqual([
      { table: 'counters', put: [{ counter: 'a', total: 3, note: null }], removed: [] },
    ])
  })

  it('undoes what a failing event did, and only that', () => {
    const fold = new Fold(counters.tables)
    fold.forget(true)
    const [first, second] = events(counted('a', 1), counted('a', -5))
    apply(fold, first!)
    expect(() => apply(fold, second!)).toThrow('negative')
    expect(fold.take()).toEqual([
      { table: 'counters', put: [{ counter: 'a', total: 1, note: null }], removed: [] },
    ])
  })

  it('undoes the first write of a row, too', () => {
    const fold = new Fold(counters.tables)
    fold.forget(true)
    expect(() => apply(fold, events(counted('a', -1))[0]!)).toThrow('negative')
    expect(fold.changedRows).toBe(0)
  })

  it('reads what is being written while the write is under way, and after it', () => {
    const fold = new Fold(counters.tables)
    fold.forget(true)
    const [one, two, three] = events(counted('a', 1), counted('a', 2), counted('a', 3))
    apply(fold, one!)
    const writing = fold.take()
    apply(fold, two!)
    expect(writing[0]!.put).toEqual([{ counter: 'a', total: 1, note: null }])
    fold.written()
    apply(fold, three!)
    expect(fold.take()[0]!.put).toEqual([{ counter: 'a', total: 6, note: null }])
  })

  it('knows rows that were fetched as they were written since, whatever made it fetch them', () => {
    const fold = new Fold(counters.tables)
    // an event that reads several tables fetches from all of them when it lacks rows of the first
    fold.learn('counters', [['a'], ['b']], [{ counter: 'a', total: 4, note: null }])
    const [one, other, ...later] = events(counted('a', 1), counted('b', 1), counted('a', 1), counted('b', 1))
    for (const event of [one!, other!]) apply(fold, event)
    fold.take()
    fold.written()
    for (const event of later) apply(fold, event)
    expect(fold.take()[0]!.put).toEqual([
      { counter: 'a', total: 6, note: null },
      { counter: 'b', total: 2, note: null },
    ])
  })

  it('knows removed rows as absent', () => {
    const fold = new Fold(counters.tables)
    fold.forget(true)
    for (const event of events(counted('a', 1), Cleared.of({ counter: 'a' }))) apply(fold, event)
    expect(fold.take()).toEqual([{ table: 'counters', put: [], removed: [{ counter: 'a' }] }])
    fold.written()
    expect(fold.missing([{ counters: [['a']] }]).size).toBe(0)
  })

  it('asks only for rows that are not in memory, each once', () => {
    const fold = new Fold(counters.tables)
    fold.learn('counters', [['a'], ['b']], [{ counter: 'a', total: 4, note: null }])
    const reads = [{ counters: [['a'], ['b'], ['c']] }, { counters: [['c']] }]
    expect([...fold.missing(reads)]).toEqual([['counters', [['c']]]])
  })

  it('refuses a row that the reads do not name, an unknown column and an unknown table', () => {
    const fold = new Fold(counters.tables)
    expect(() => apply(fold, events(counted('a', 1))[0]!)).toThrow(/reads do not name/)
    const bad = (apply: Handler['apply']): Handler => ({ type: Cleared.name, reads: () => ({}), apply })
    const [event] = events(Cleared.of({ counter: 'a' }))
    const unknownColumn = bad((_, { counters: of }) => {
      of!.put({ counter: 'a' })
      of!.change(['a'], { nonsense: 1 } as never)
    })
    expect(() => fold.apply([unknownColumn], event!)).toThrow(/no column nonsense/)
    const keyless = bad((_, { counters: of }) => of!.put({ total: 1 }))
    expect(() => fold.apply([keyless], event!)).toThrow(/key counter is null/)
    expect(() => fold.holds({ elsewhere: [['a']] })).toThrow(/no table elsewhere/)
  })

  it('forgets its rows when they are too many, and fetches them again', () => {
    const fold = new Fold(counters.tables, { rememberedRows: 2 })
    fold.forget(true)
    for (const event of events(counted('a', 1), counted('b', 1), counted('c', 1))) apply(fold, event)
    fold.holds({ counters: [] })
    fold.take()
    fold.written()
    // the table is no longer all in memory, so that absence means nothing any more
    expect([...fold.missing([{ counters: [['a'], ['c'], ['d']] }])]).toEqual([
      ['counters', [['a'], ['c'], ['d']]],
    ])
  })

  it('gives the same rows however events are split into pages', () => {
    const spec = specifyProjection(employeeRegister)
    const change = fc.record({
      subject: fc.constantFrom('person/1', 'person/2'),
      action: fc.constantFrom('hire' as const, 'terminate' as const, 'update' as const),
      record: fc.constantFrom('sld1.person/1.AAAA', 'sld1.person/1.BBBB'),
      effective_date: fc.constantFrom('2026-01-01', '2026-02-01', null),
    })
    const sync = fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => ({
      stream: 'employeeSync-1',
      events: [
        EmployeeChangesRecorded.of({
          file_id: 'f'.repeat(24),
          employer_id: 'e'.repeat(24),
          chunk: 0,
          last: true,
          changes: changes as never,
        }),
      ],
    }))
    fc.assert(
      fc.property(fc.array(sync, { maxLength: 8 }), (history) => {
        spec.given(...history).rows()
      }),
      runs(20),
    )
  })
})
