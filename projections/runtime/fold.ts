import type { RecordedEvent } from '../../application/commands/event-registry.ts'
import { FoldError } from './failures.ts'
import type { FoldedTable, Handler, Row, TableDefinition } from './projection.ts'
import type { TableChanges } from './store.ts'

type Rows = Map<string, Row | null>

/** What one event changed, as it was before; parallel lists, because this is written for every row of every event. */
class Journal {
  readonly #rows: Rows[] = []
  readonly #ids: string[] = []
  readonly #before: (Row | null | undefined)[] = []

  begin(): void {
    this.#rows.length = 0
    this.#ids.length = 0
    this.#before.length = 0
  }

  note(rows: Rows, id: string, before: Row | null | undefined): void {
    this.#rows.push(rows)
    this.#ids.push(id)
    this.#before.push(before)
  }

  undo(): void {
    for (let at = this.#rows.length - 1; at >= 0; at -= 1) {
      const before = this.#before[at]
      if (before === undefined) this.#rows[at]!.delete(this.#ids[at]!)
      else this.#rows[at]!.set(this.#ids[at]!, before)
    }
  }
}

const KEY_SEPARATOR = '\u0000'

function idOf(key: readonly unknown[]): string {
  return key.length === 1 ? String(key[0]) : key.join(KEY_SEPARATOR)
}

function keyOf({ key }: TableDefinition, id: string): readonly string[] {
  return key.length === 1 ? [id] : id.split(KEY_SEPARATOR)
}

/**
 * One table in memory. A row is looked up in what this page changed, then in what is being written,
 * then among the rows known from before; `null` stands for a row that is known not to exist. Rows
 * are never changed in place, so that what is being written stays as it was.
 */
class TableFold implements FoldedTable {
  readonly definition: TableDefinition
  readonly #columns: readonly string[]
  readonly #journal: Journal
  /** Set once rows of it were fetched: only then are its rows worth remembering, and those known must not grow old. */
  isRead = false
  /** True while every row there is stands in memory, so that what is not there does not exist. */
  isComplete = false
  changed: Rows = new Map()
  writing: Rows = new Map()
  readonly known: Rows = new Map()

  constructor(definition: TableDefinition, journal: Journal) {
    this.definition = definition
    this.#columns = Object.keys(definition.columns)
    this.#journal = journal
    for (const column of definition.key) {
      if (!(column in definition.columns)) throw new Error(`${definition.name}: key ${column} is no column`)
    }
  }

  lookUp(id: string): Row | null | undefined {
    const changed = this.changed.get(id)
    if (changed !== undefined) return changed
    const writing = this.writing.get(id)
    if (writing !== undefined) return writing
    const known = this.known.get(id)
    return known === undefined && this.isComplete ? null : known
  }

  get(...key: readonly unknown[]): Readonly<Row> | undefined {
    const row = this.lookUp(idOf(key))
    if (row === undefined) {
      throw new FoldError(`${this.definition.name}: a row was asked for that the handler's reads do not name`)
    }
    return row ?? undefined
  }

  put(row: Row): void {
    const whole: Row = {}
    for (const column of this.#columns) whole[column] = storable(row[column])
    const key: unknown[] = []
    for (const column of this.definition.key) {
      const value = whole[column]
      if (value === null) throw new FoldError(`${this.definition.name}: key ${column} is null`)
      if (typeof value === 'string' && value.includes(KEY_SEPARATOR)) {
        throw new FoldError(`${this.definition.name}: key ${column} holds U+0000`)
      }
      key.push(value)
    }
    this.#set(idOf(key), whole)
  }

  change(key: readonly unknown[], columns: Row): void {
    const row = this.get(...key)
    if (!row) throw new FoldError(`${this.definition.name}: the row to change is not there`)
    const changed: Row = { ...row }
    for (const column in columns) {
      if (!(column in changed)) throw new FoldError(`${this.definition.name} has no column ${column}`)
      if (this.definition.key.includes(column)) {
        throw new FoldError(`${this.definition.name}: key ${column} cannot change`)
      }
      changed[column] = storable(columns[column])
    }
    this.#set(idOf(key), changed)
  }

  remove(...key: readonly unknown[]): void {
    this.#set(idOf(key), null)
  }

  #set(id: string, row: Row | null): void {
    this.#journal.note(this.changed, id, this.changed.get(id))
    this.changed.set(id, row)
  }
}

/** A value as the database gives it back, so that rows read alike from memory and from a table. */
function storable(value: unknown): unknown {
  if (value === undefined) return null
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/** Keys of rows, by table. */
export type Keys = ReadonlyMap<string, readonly (readonly unknown[])[]>

/**
 * The tables of a projection while events are folded into them, in memory. Changes collect until
 * they are taken for writing; an event that fails leaves no trace.
 */
export class Fold {
  readonly #tables = new Map<string, TableFold>()
  readonly #byName: Readonly<Record<string, FoldedTable>>
  readonly #journal = new Journal()
  readonly #rememberedRows: number

  /** @param options.rememberedRows rows per table kept after they were written, default 20,000. */
  constructor(tables: readonly TableDefinition[], options: { rememberedRows?: number } = {}) {
    for (const definition of tables)
      this.#tables.set(definition.name, new TableFold(definition, this.#journal))
    this.#byName = Object.fromEntries(this.#tables)
    this.#rememberedRows = options.rememberedRows ?? 20_000
  }

  /** Whether every row an event reads is in memory already. */
  holds(reads: ReturnType<Handler['reads']>): boolean {
    for (const name in reads) {
      const table = this.#table(name)
      for (const key of reads[name]!) if (table.lookUp(idOf(key)) === undefined) return false
    }
    return true
  }

  /** Which rows have to be fetched before these reads are possible. */
  missing(all: Iterable<ReturnType<Handler['reads']>>): Keys {
    const missing = new Map<string, Map<string, readonly unknown[]>>()
    for (const reads of all) {
      for (const name in reads) {
        const table = this.#table(name)
        for (const key of reads[name]!) {
          const id = idOf(key)
          if (table.lookUp(id) !== undefined) continue
          const keys = missing.get(name) ?? new Map<string, readonly unknown[]>()
          missing.set(name, keys.set(id, key))
        }
      }
    }
    return new Map([...missing].map(([name, keys]) => [name, [...keys.values()]]))
  }

  /** Takes fetched rows in; keys without a row are known to be absent from then on. */
  learn(name: string, keys: readonly (readonly unknown[])[], rows: readonly Row[]): void {
    const table = this.#table(name)
    table.isRead = true
    for (const key of keys) {
      const id = idOf(key)
      if (table.lookUp(id) === undefined) table.known.set(id, null)
    }
    for (const row of rows) {
      const id = idOf(table.definition.key.map((column) => row[column]))
      if (table.known.get(id) === null) table.known.set(id, row)
    }
  }

  /** Applies one event. @throws whatever the handler throws, with everything the event did undone. */
  apply(handlers: readonly Handler[], event: RecordedEvent): void {
    this.#journal.begin()
    try {
      for (const handler of handlers) handler.apply(event, this.#byName)
    } catch (error) {
      this.#journal.undo()
      throw error
    }
  }

  /** Rows changed and not yet taken. */
  get changedRows(): number {
    let rows = 0
    for (const table of this.#tables.values()) rows += table.changed.size
    return rows
  }

  /** Keys of the rows changed and not yet taken. */
  changedKeys(): Keys {
    const keys = new Map<string, readonly (readonly unknown[])[]>()
    for (const { definition, changed } of this.#tables.values()) {
      if (changed.size > 0)
        keys.set(
          definition.name,
          [...changed.keys()].map((id) => keyOf(definition, id)),
        )
    }
    return keys
  }

  /** Takes the changes for writing. One write at a time: {@link written} ends it. */
  take(): readonly TableChanges[] {
    const changes: TableChanges[] = []
    for (const table of this.#tables.values()) {
      if (table.changed.size === 0) continue
      table.writing = table.changed
      table.changed = new Map()
      const put: Row[] = []
      const removed: Row[] = []
      for (const [id, row] of table.writing) {
        if (row) put.push(row)
        else removed.push(this.#keyRow(table.definition, id))
      }
      changes.push({ table: table.definition.name, put, removed })
    }
    return changes
  }

  /** What was taken is in the database now. */
  written(): void {
    for (const table of this.#tables.values()) {
      const { writing, known } = table
      table.writing = new Map()
      if (!table.isRead && !table.isComplete) continue
      for (const [id, row] of writing) known.set(id, row)
      if (known.size <= this.#rememberedRows) continue
      // what is still needed is fetched again, with the next page
      known.clear()
      table.isComplete = false
    }
  }

  /**
   * Forgets everything: what was folded, and what is known of the database.
   * @param empty the tables have no rows yet, so nothing needs to be fetched.
   */
  forget(empty: boolean): void {
    for (const table of this.#tables.values()) {
      table.changed = new Map()
      table.writing = new Map()
      table.known.clear()
      table.isComplete = empty
    }
  }

  #table(name: string): TableFold {
    const table = this.#tables.get(name)
    if (!table) throw new FoldError(`There is no table ${name} in this projection`)
    return table
  }

  #keyRow(definition: TableDefinition, id: string): Row {
    const parts = keyOf(definition, id)
    return Object.fromEntries(definition.key.map((column, index) => [column, parts[index]]))
  }
}
