import { z } from 'zod'
import {
  correctLegacyRecord,
  legacyRecordOf,
  recordLegacyCollection,
} from '../../../application/banking/legacy/legacy-collections.ts'
import {
  BATCH_LINES,
  type ImportLine,
  importLegacyCollections,
  importNameOf,
  importProgress,
  REFUSALS_REPORTED,
} from '../../../application/banking/legacy/legacy-import.ts'
import { listLegacyCollections } from '../../../application/banking/legacy/list-legacy-collections.ts'
import type { Application } from '../../../application/commands/application.ts'
import { TimeSlice } from '../../../application/commands/time-slices.ts'
import {
  datedAt,
  LEGACY_STATUSES,
  type LegacyCollection,
  legacyCollection,
  legacyGroupOf,
} from '../../../domain/banking/legacy/legacy-collection.ts'
import { MAX_LINES } from '../../../domain/banking/legacy/legacy-import.ts'
import { create, created } from '../../endpoints/creations.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { date, id, ofOne, optional, text, wholeNumber, word } from '../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../endpoints/lists.ts'
import { noSuch } from '../../endpoints/not-found.ts'
import { checkClosed } from '../../endpoints/unknown-fields.ts'
import { parseJson } from '../../http/json/strict-json.ts'
import { type BodyLine, MAX_LINE_BYTES } from '../../http/lines.ts'
import { contextOf, endpoint, keyed, notFound, operatorApi } from '../host/api.ts'
import { ofPolicy, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

const Input = z.object({
  employer_id: id(),
  policy_id: optional(id()).describe('A policy of the employer'),
  carrier_id: optional(id()).describe('Default: the policy’s; without a policy nobody’s'),
  period_start: date(),
  period_end: date().describe('As of which the record is dated'),
  premium_cents: wholeNumber().min(1),
  status: word(...LEGACY_STATUSES),
})

const Record = z
  .object({
    transaction_id: id(),
    ...owner,
    employer_id: id(),
    carrier_id: id().nullable(),
    policy_id: id().nullable(),
    period_start: z.string(),
    period_end: z.string(),
    premium_cents: z.int(),
    status: z.enum(LEGACY_STATUSES),
    status_group: z.enum(['in_flight', 'money_landed', 'failed']),
    return_code: z.string().nullable(),
    import: z
      .object({ import_id: z.string().describe('As it was sent, or told in the answer'), line: z.int() })
      .nullable()
      .describe('The import that it came with; null: it was recorded by itself'),
    created_at: shownTime().describe('The beginning of the last day of its period'),
    recorded_at: shownTime().describe('When this service heard of it'),
  })
  .meta({ id: 'LegacyCollection' })

const ListedRecord = Record.omit({ import: true, recorded_at: true }).meta({ id: 'ListedLegacyCollection' })

const Refusal = z.object({ line: z.int(), reason: z.string() }).meta({ id: 'RefusedLine' })
const Imported = z
  .object({
    import_id: z.string(),
    stored: z.int(),
    repeated: z.int().describe('Lines that were stored before'),
    refused: z.array(Refusal).readonly().describe(`At most ${REFUSALS_REPORTED}, the first ones`),
    refused_count: z.int(),
  })
  .meta({ id: 'LegacyImport' })
const Progress = z
  .object({
    import_id: z.string(),
    stored: z.int().describe('Lines that are stored'),
    last_line: z.int(),
    begun_at: shownTime(),
    updated_at: shownTime(),
  })
  .meta({ id: 'LegacyImportProgress' })

const RECORD = 'record of the legacy service'
const one = ofOne('transaction_id', RECORD)
const importName = () => text(200)

export const legacyCollectionEndpoints = [
  endpoint({
    operation: 'recordLegacyCollection',
    route: 'POST /legacy-collections',
    summary: 'Record what the legacy service has of a debit',
    description:
      'A collection stands in the ledger of its employer, and keeps the same premium from being collected again.',
    body: Input,
    ...created(Record),
    errors: { 404: 'There is no such employer, or it has no such policy, or its tenant no such carrier' },
    command: { name: 'legacy-collections add' },
    refuses: {
      400: ['other_carrier', 'period_ends_before_start'],
      404: ['carrier_not_found', 'employer_not_found', 'policy_not_found'],
    },
    handle(call) {
      const { app } = call.host
      return create(keyed(call), 'POST /legacy-collections', {
        create: (context) => recordLegacyCollection(app, call.body, context),
        show: (record) => shown(app, record),
        repeated: legacyCollection,
      })
    },
  }),
  endpoint({
    operation: 'importLegacyCollections',
    route: 'POST /legacy-collections/import',
    summary: 'Import records of the legacy service, one a line',
    description:
      'Each line is a record as `POST /legacy-collections` takes it, at most ' +
      `${MAX_LINE_BYTES / 1024} KiB; an import has at most ${MAX_LINES.toLocaleString('en-US')} lines. They are stored while ` +
      'they come. Sent again under its `import_id`, whole, after whatever became of the first attempt, every line is ' +
      'stored once: lines are known by their number, blank ones counted. A line that cannot be stored is refused for ' +
      'itself, and may be corrected in its place.',
    query: z.object({
      import_id: importName()
        .optional()
        .describe('Your name of the import; else it gets one, and is told in the answer'),
    }),
    line: Input,
    answers: { 200: Imported },
    async handle(call) {
      const { app } = call.host
      const name = call.query.import_id ?? app.randomness.id()
      const context = contextOf(call)
      const outcome = await importLegacyCollections(app, name, readLines(call.lines(BATCH_LINES)), context)
      const { stored, repeated, refused: refused_count, refusals: refused } = outcome
      return { import_id: name, stored, repeated, refused, refused_count }
    },
  }),
  endpoint({
    operation: 'showLegacyImport',
    route: 'GET /legacy-collections/import',
    summary: 'Show how far an import is',
    query: z.object({ import_id: importName() }),
    answers: { 200: Progress },
    errors: { 404: 'No line is stored under this `import_id`' },
    command: { name: 'legacy-collections progress' },
    async handle({ host: { app }, query: { import_id } }) {
      const progress = await importProgress(app, import_id)
      if (!progress) throw notFound(`No line of an import ${import_id} is stored`)
      const { begun, lines, updated_at } = progress
      return {
        import_id,
        stored: lines.size,
        last_line: lines.last,
        begun_at: begun!.at,
        updated_at: updated_at!,
      }
    },
  }),
  endpoint({
    operation: 'listLegacyCollections',
    route: 'GET /legacy-collections',
    summary: 'List records of the legacy service, newest first',
    ...listOf(ListedRecord, {
      ...scope,
      ...ofPolicy,
      status: narrowing(word(...LEGACY_STATUSES)),
    }),
    columns: 'transaction_id period_end environment status premium_cents employer_id policy_id',
    handle: ({ host: { app }, query }) =>
      listed(
        query,
        (wanted) => listLegacyCollections(app, query, wanted),
        ({ amount_cents: premium_cents, ...record }) => ({
          ...record,
          premium_cents,
          status_group: legacyGroupOf(record.status),
        }),
      ),
  }),
  endpoint({
    operation: 'showLegacyCollection',
    route: 'GET /legacy-collections/{transaction_id}',
    summary: 'Show a record of the legacy service',
    ...one,
    answers: { 200: Record },
    async handle({ host: { app }, params: { transaction_id } }) {
      const record = await legacyRecordOf(app, transaction_id)
      if (!record) throw noSuch(RECORD)
      return shown(app, record)
    },
  }),
  endpoint({
    operation: 'correctLegacyCollection',
    route: 'POST /legacy-collections/{transaction_id}/correct',
    summary: 'Put right how a record of the legacy service stands',
    description:
      'To any status, whatever it is: by the new one it keeps a debit from being collected, or does so no more. What it ' +
      'has stopped already is raised anew by `POST /debits/{transaction_id}/release`. The same status again changes nothing.',
    ...one,
    body: z.object({
      status: word(...LEGACY_STATUSES),
      reason: text().describe('For its history, which partners read. Names nobody: it is kept as it is'),
    }),
    answers: { 200: Record },
    async handle(call) {
      const { app } = call.host
      const record = await correctLegacyRecord(app, call.params.transaction_id, call.body, contextOf(call))
      if (!record) throw noSuch(RECORD)
      return shown(app, accepted(record))
    },
  }),
]

/** A record; its import by the name that the operator knows it by. */
async function shown(app: Pick<Application, 'log' | 'registry'>, record: LegacyCollection) {
  const { changes: _changes, import: source, ...fields } = record
  const { status, period_end } = fields
  return {
    ...fields,
    status_group: legacyGroupOf(status),
    created_at: datedAt(period_end),
    import: source && { ...source, import_id: await importNameOf(app, source.import_id) },
  }
}

/** What the lines of an import say. */
async function* readLines(
  batches: AsyncIterable<readonly BodyLine[]>,
): AsyncGenerator<readonly ImportLine[]> {
  const slice = new TimeSlice()
  for await (const batch of batches) {
    const read: ImportLine[] = []
    for (const line of batch) {
      read.push(readLine(line))
      const pause = slice.over()
      if (pause) await pause
    }
    yield read
  }
}

function readLine({ line, bytes }: BodyLine): ImportLine {
  const refused = (reason: string) => ({ line, reason })
  if (line > MAX_LINES) return refused(`an import has at most ${MAX_LINES} lines`)
  if (bytes === null) return refused(`the line is longer than ${MAX_LINE_BYTES / 1024} KiB`)
  const parsed = parseJson(bytes)
  if (!parsed.ok) return refused(parsed.message.replace(/^The body/, 'The line'))
  if (typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) {
    return refused('The line must be a JSON object')
  }
  if (parsed.leftOut) return refused(`${parsed.leftOut[0]} is a name that is not kept`)
  const result = checkClosed(Input, parsed.value, 'field')
  if ('faults' in result) return refused(operatorApi.refuse(result.faults).message)
  return { row: { line, ...result.value } }
}
