import { createHash } from 'node:crypto'
import {
  CHUNK_ROWS,
  type ImportedRow,
  importedId,
  type LegacyImport,
  type LegacyImportBegun,
  type LegacyImportEvent,
  legacyImport,
  type StoreRows,
  statusOfLine,
} from '../../../domain/banking/legacy/legacy-import.ts'
import { type Decider, streamOf } from '../../../domain/kernel/decider.ts'
import type { EventOf } from '../../../domain/kernel/event-type.ts'
import { isRejection, orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { decideAll, type Loaded } from '../../commands/command-handler.ts'
import { eventsOf } from '../../commands/events-of.ts'
import { TimeSlice } from '../../commands/time-slices.ts'
import { within } from '../../commands/verbs.ts'
import { WrongExpectedRevision } from '../../ports/event-log.ts'
import { LegacyOwners } from './legacy-owners.ts'

/** A line of an import: what it says, or why nobody can read it. */
export type ImportLine = { readonly row: ImportedRow } | RefusedLine

export interface RefusedLine {
  readonly line: number
  readonly reason: string
}

/** What became of the lines of an import that were sent. */
export interface ImportOutcome {
  readonly stored: number
  /** Stored before, and the same. */
  readonly repeated: number
  readonly refused: number
  /** The first {@link REFUSALS_REPORTED} of those that were refused. */
  readonly refusals: readonly RefusedLine[]
}

/** Refused lines that an answer names, at the most. */
export const REFUSALS_REPORTED = 1_000
/** Events read at once when an import goes on: each has a thousand lines. */
const READ_PAGE = 4
/** Chunks that the read model may be behind, and that a question for earlier collections waits for. */
const CHUNKS_AHEAD = 20
/** How long an import waits for a read model before it goes on without, in real milliseconds. */
const FOLLOW_MS = 5_000

/** The id of an import, by what the operator calls it; it ends in zeros, see `importedId`. */
export function importIdOf(name: string): string {
  return importedId(createHash('sha256').update(`legacy-import/${name}`).digest('hex').slice(0, 24), 0)
}

/**
 * Stores the lines of an import that are not stored yet, as they come, in chunks. Another attempt with the same name may
 * run at the same time: each line is stored once.
 * @param batches {@link CHUNK_ROWS} lines each at the most, in their order.
 */
export async function importLegacyCollections(
  app: Application,
  name: string,
  batches: AsyncIterable<readonly ImportLine[]>,
  context: CommandContext,
): Promise<ImportOutcome> {
  const run = new ImportRun(app, name, context)
  let storing: Promise<void> = Promise.resolve()
  try {
    for await (const batch of batches) {
      const sorted = await run.sortOut(batch)
      // the next lines are read and looked at while these are being stored
      await storing
      storing = run.store(sorted)
      storing.catch(() => undefined)
    }
  } finally {
    await storing
  }
  await run.readable()
  // each batch tells first what is no record, then what fits nothing
  run.refusals.sort((one, other) => one.line - other.line)
  return run
}

/** How far an import is, null when nothing of it is stored. */
export async function importProgress(
  app: Pick<Application, 'log' | 'registry'>,
  name: string,
): Promise<LegacyImport | null> {
  const { state } = await loadImport(app, importIdOf(name))
  return state.begun ? state : null
}

/** What the operator calls an import that has begun, by its id. */
export async function importNameOf(
  { log, registry }: Pick<Application, 'log' | 'registry'>,
  importId: string,
): Promise<string> {
  const [begun] = await log.readStream(streamOf(legacyImport, importId), { from: 0, maxCount: 1 })
  return (registry.decode(begun!, false).data as EventOf<typeof LegacyImportBegun>['data']).name
}

/** Reads an import on from where it was read before, a few large events at a time. */
async function loadImport(
  { log, registry }: Pick<Application, 'log' | 'registry'>,
  importId: string,
  from: Loaded<LegacyImport> = { state: legacyImport.initialState, revision: -1 },
): Promise<Loaded<LegacyImport>> {
  const stream = streamOf(legacyImport, importId)
  const slice = new TimeSlice()
  let { state, revision } = from
  for await (const stored of eventsOf(log, stream, { from: revision + 1, pageSize: READ_PAGE })) {
    state = legacyImport.evolve(state, registry.decode(stored, false) as unknown as LegacyImportEvent)
    revision = stored.revision
    const pause = slice.over()
    if (pause) await pause
  }
  return { state, revision }
}

/** Rows that belong to one tenant and environment. */
type Group = Pick<StoreRows, 'tenantId' | 'environment'> & { readonly rows: ImportedRow[] }

class ImportRun implements ImportOutcome {
  stored = 0
  repeated = 0
  refused = 0
  readonly refusals: RefusedLine[] = []
  readonly #app: Application
  readonly #name: string
  readonly #importId: string
  readonly #context: CommandContext
  readonly #owners: LegacyOwners
  #at: Loaded<LegacyImport> | null = null
  /** Where the last chunks stand in the log. */
  readonly #positions: bigint[] = []
  #isFollowed = true
  /** Whether another attempt was met. */
  #isContended = false

  constructor(app: Application, name: string, context: CommandContext) {
    this.#app = app
    this.#name = name
    this.#importId = importIdOf(name)
    this.#context = context
    this.#owners = new LegacyOwners(app)
  }

  /** Refuses what cannot be stored, and groups what is left by whose it is. */
  async sortOut(batch: readonly ImportLine[]): Promise<readonly Group[]> {
    this.#at ??= await loadImport(this.#app, this.#importId)
    const rows: ImportedRow[] = []
    for (const line of batch) {
      if ('row' in line) rows.push(line.row)
      else this.#refuse(line)
    }
    const fresh = this.#fresh(this.#at.state, rows)
    const owned = await this.#owners.of(fresh)
    const groups: Group[] = []
    for (const [index, one] of owned.entries()) {
      if (isRejection(one)) {
        this.#refuse({ line: fresh[index]!.line, reason: one.message })
        continue
      }
      const { tenantId, environment, record } = one
      const isSame = (group: Group) => group.tenantId === tenantId && group.environment === environment
      const group = groups.find(isSame)
      if (group) group.rows.push(record)
      else groups.push({ tenantId, environment, rows: [record] })
    }
    return groups
  }

  async store(groups: readonly Group[]): Promise<void> {
    for (const group of groups) await this.#append(group)
    if (this.#positions.length > CHUNKS_AHEAD && this.#isFollowed) {
      const behind = this.#positions.shift()!
      // one that does not come along, because it stands still, holds up no import
      this.#isFollowed = await this.#reached(behind)
    }
  }

  /** Waits until what was stored can be read. */
  async readable(): Promise<void> {
    const last = this.#positions.at(-1)
    if (last !== undefined) await this.#app.readModels.awaitProjections(legacyImport, last)
  }

  /** What of some rows is not stored yet; of the others it is told how they stand. */
  #fresh<Row extends ImportedRow>(state: LegacyImport, rows: readonly Row[]): readonly Row[] {
    return rows.filter((row) => {
      const status = statusOfLine(state, row)
      if (status === 'repeated') this.repeated += 1
      if (status === 'changed') {
        this.#refuse({ line: row.line, reason: 'the line was imported before, and said something else' })
      }
      return status === 'fresh'
    })
  }

  /** Appends the rows of a group; on a conflict those that the other attempt has not stored. */
  async #append({ tenantId, environment, rows }: Group): Promise<void> {
    const { commands, clock } = this.#app
    const decider: Decider<LegacyImport, StoreRows, LegacyImportEvent> = legacyImport
    const whose = { importId: this.#importId, name: this.#name, tenantId, environment }
    const context = within(this.#context, { tenant_id: tenantId, environment })
    // what was sorted out before another attempt was met may be stored by now
    let left: readonly ImportedRow[] = this.#isContended ? this.#fresh(this.#at!.state, rows) : rows
    while (left.length > 0) {
      const at = this.#at!
      const command: StoreRows = { type: 'Store', ...whose, rows: left, at: clock.now() }
      const decided = orThrow(decideAll(decider, [command], at.state))
      try {
        const after = await commands.appendAt(decider, this.#importId, at, decided.events, context)
        this.#at = after
        this.#positions.push(after.position)
        this.stored += left.length
        return
      } catch (error) {
        if (!(error instanceof WrongExpectedRevision)) throw error
        this.#isContended = true
        this.#at = await loadImport(this.#app, this.#importId, at)
        left = this.#fresh(this.#at.state, left)
      }
    }
  }

  #refuse(refusal: RefusedLine): void {
    this.refused += 1
    if (this.refusals.length < REFUSALS_REPORTED) this.refusals.push(refusal)
  }

  #reached(position: bigint): Promise<boolean> {
    return this.#app.readModels.reached(['legacy-collections'], position, { timeoutMs: FOLLOW_MS })
  }
}

/** Lines that make a batch. */
export const BATCH_LINES = CHUNK_ROWS
