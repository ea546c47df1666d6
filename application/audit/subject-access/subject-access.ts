import { createHash } from 'node:crypto'
import { BankDebitInFile } from '../../../domain/banking/debits/bank-debit-events.ts'
import type { DebitedAccount } from '../../../domain/banking/debits/debited-account.ts'
import { bankTransactions } from '../../../domain/banking/linking/bank-transactions.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { type Aggregate, parseStream } from '../../../domain/kernel/decider.ts'
import type { EventType } from '../../../domain/kernel/event-type.ts'
import {
  hiddenValues,
  isSealed,
  type Sealed,
  sensitiveValues,
  subjectOf,
} from '../../../domain/kernel/sealed.ts'
import { dataSubject, dataSubjectId } from '../../../domain/operations/data-subject.ts'
import { OperatorActed } from '../../../domain/operations/operator-action.ts'
import { employeeSync } from '../../../domain/parties/employee-sync.ts'
import { payrollFile } from '../../../domain/payroll/payroll-file.ts'
import { intake } from '../../../domain/policies/intake.ts'
import { WebhookEventRaised } from '../../../domain/webhooks/webhook-event.ts'
import { keptAccount } from '../../banking/accounts/payer-accounts.ts'
import type { Application } from '../../commands/application.ts'
import type { RecordedEvent } from '../../commands/event-registry.ts'
import { eventsOf } from '../../commands/events-of.ts'
import { openAll } from '../../commands/sealed-fields.ts'
import { TimeSlice } from '../../commands/time-slices.ts'
import { INTEGRATION_SOURCES } from '../../followers/integration-messages.ts'
import type { StoredEvent } from '../../ports/event-log.ts'
import { ERASED } from '../../ports/personal-data.ts'
import { leafOf } from '../leaf.ts'
import { leafHash } from '../merkle.ts'
import { thingOf } from '../story-streams.ts'
import { employeesNow, filesNow } from './current-state.ts'
import { type Own, ownOf, ownPart } from './own-part.ts'
import { sentenceFor } from './own-sentences.ts'
import {
  eventsOfTypes,
  isOthers,
  names,
  type Owner,
  type SubjectStream,
  subjectStreams,
  type Whose,
  whoseFrom,
} from './subject-streams.ts'

/** Everything that is kept about data subjects, as JSON lines: what answers a subject access request. */

export const SUBJECT_ACCESS_FORMAT = 'compstream-subject-access/1'

/**
 * Events of a stream that are read at once: few, since several streams are open at a time, and more than the short reads
 * that requests share.
 */
const STREAM_PAGE = 33

/** What is kept about data subjects, found and not yet opened. */
export interface SubjectFindings {
  /** Data subjects, in the order in which they were named. */
  readonly subjects: readonly string[]
  readonly owner: Owner | null
  /** Place in the log up to which everything counts. */
  readonly until: bigint
  readonly streams: readonly SubjectStream[]
}

/** Finds what is kept. @throws SharedSubject; what `signal` was aborted with. */
export async function findSubjects(
  app: Application,
  subjects: readonly string[],
  owner: Owner | null,
  signal: AbortSignal,
): Promise<SubjectFindings> {
  const until = await app.log.head()
  const streams = await subjectStreams(app, new Set(subjects), owner, until, signal)
  return { subjects, owner, until, streams }
}

/** What the first line says beside what was found. */
export interface Asked {
  readonly operator_id: string
  /** Id of the request, which the event of the reveal carries as its correlation id. */
  readonly request_id: string
}

type Line = { readonly kind: 'about' | 'event' | 'state' | 'recipient' } & Readonly<Record<string, unknown>>

/**
 * The lines of a subject access: `about`; each `event` in log order, with a `state` behind the last one of a stream that is the
 * subject's own; `state`; `recipient`; and `manifest` with counts, positions, and the hash of all lines before it.
 * Memory grows with the number of streams and with the texts that their states may hold, not with the length of the log.
 * @param signal ends it.
 */
export async function* subjectAccess(
  app: Application,
  findings: SubjectFindings,
  asked: Asked,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const hash = createHash('sha256')
  const teller = new Teller(app, findings, signal)
  let lines = 0
  for await (const line of teller.lines(asked)) {
    const text = textOf(line)
    hash.update(text)
    lines += 1
    yield text
  }
  yield textOf({ kind: 'manifest', ...teller.counts, lines, sha256: hash.digest('hex') })
}

function textOf(line: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(line, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}\n`
}

/** A stream of which events are told. */
interface OpenStream extends SubjectStream {
  readonly events: AsyncGenerator<StoredEvent, void, undefined>
  readonly own: Own
  head: StoredEvent
  /** Null: the subjects are people, or no event was told yet. */
  whose: Whose | null
  /** Texts by what they are sealed as; kept where the state of the stream may hold them. */
  readonly texts: Map<string, unknown>
  /** Sensitive texts of the stream that are nobody's to see. */
  readonly hidden: Set<unknown>
  state: unknown
}

/** Categories whose state holds several people: what of it is somebody's stands in the events. */
const OF_MANY: ReadonlySet<string> = new Set(
  [payrollFile, employeeSync, intake].map(({ category }) => category),
)
/** Categories of whose texts the state holds none. */
const WITHOUT_TEXTS: ReadonlySet<string> = new Set([...OF_MANY, bankTransactions.category])
const byCategory: ReadonlyMap<string, Aggregate> = new Map(aggregates.map((one) => [one.category, one]))

class Teller {
  readonly #app: Application
  readonly #findings: SubjectFindings
  readonly #subjects: ReadonlySet<string>
  readonly #signal: AbortSignal
  #events = 0
  #first: bigint | null = null
  #last: bigint | null = null
  #revealed = 0
  #erased = 0
  #recipients = 0
  readonly #types: Record<string, number> = {}
  readonly #messages: Record<string, number> = {}
  /** Employers whose registers name a person. */
  readonly #employers = new Set<string>()
  /** Bank accounts that were told. */
  readonly #accounts = new Set<string>()
  /** Streams of which something was told. */
  readonly #streams = new Set<string>()

  constructor(app: Application, findings: SubjectFindings, signal: AbortSignal) {
    this.#app = app
    this.#findings = findings
    this.#subjects = new Set(findings.subjects)
    this.#signal = signal
  }

  get counts() {
    return {
      format: SUBJECT_ACCESS_FORMAT,
      streams: this.#streams.size,
      events: this.#events,
      first_position: this.#first,
      last_position: this.#last,
      as_of_position: this.#findings.until,
      events_by_type: this.#types,
      values_opened: this.#revealed - this.#erased,
      values_erased: this.#erased,
      recipients: this.#recipients,
    }
  }

  async *lines(asked: Asked): AsyncGenerator<Line, void, undefined> {
    const { subjects, until } = this.#findings
    yield {
      kind: 'about',
      format: SUBJECT_ACCESS_FORMAT,
      made_at: new Date(this.#app.clock.now()).toISOString(),
      made_by: asked.operator_id,
      request_id: asked.request_id,
      as_of_position: until,
      subjects: await Promise.all(subjects.map((subject) => keptOf(this.#app, subject))),
    }
    const slice = new TimeSlice()
    for await (const { open, event } of this.#inOrder()) {
      this.#signal.throwIfAborted()
      if (event) yield* this.#told(open, event)
      else if (open.whose?.isOwned) yield this.#stateOf(open)
      const pause = slice.over()
      if (pause) await pause
    }
    yield* this.#peopleNow()
    yield* this.#recipientsOf()
  }

  /** Events in log order; null behind the last one of a stream. Only streams that have begun and not ended are open. */
  async *#inOrder(): AsyncGenerator<{ readonly open: OpenStream; readonly event: StoredEvent | null }> {
    const { streams, owner, until } = this.#findings
    const open: OpenStream[] = []
    for (let next = 0; next < streams.length || open.length > 0; ) {
      open.sort((a, b) => (a.head.position < b.head.position ? -1 : 1))
      const begins = streams[next]
      if (begins && (!open[0] || begins.first < open[0].head.position)) {
        next += 1
        const events = eventsOf(this.#app.log, begins.stream, { pageSize: STREAM_PAGE })
        const { value: head } = await events.next()
        const { initialState: state } = byCategory.get(parseStream(begins.stream).category) ?? {
          initialState: null,
        }
        const own = ownOf(this.#subjects, owner !== null)
        const kept = { whose: null, texts: new Map(), hidden: new Set(), state }
        if (head) open.push({ ...begins, events, own, head, ...kept })
        continue
      }
      const [first] = open
      yield { open: first!, event: first!.head }
      const { value: following } = await first!.events.next()
      if (following && following.position <= until) first!.head = following
      else {
        open.shift()
        yield { open: first!, event: null }
      }
    }
  }

  /** What an event says of the subjects. */
  async *#told(open: OpenStream, stored: StoredEvent): AsyncGenerator<Line, void, undefined> {
    const { owner } = this.#findings
    const { category } = parseStream(stored.stream)
    if (owner !== null) open.whose = whoseFrom(stored, open.whose, this.#subjects, owner)
    const { id, isOwned } = open.whose ?? { id: undefined, isOwned: false }
    const isTheirs = owner === null || this.#isTheirs(stored, open.whose!, owner)
    // who takes a stream over has its state, with what was there before
    if (!isTheirs && id === undefined) return
    const event = decodedOrNull(this.#app, stored)
    if (!event) {
      if (!isTheirs) return
      // of what cannot be read nobody can say whose it is
      const told = { sentence: 'An event of the subject cannot be read by this release.', data: null }
      yield this.#line(stored, { ...told, recorded_at: null, actor: null, request_id: null })
      return
    }
    if (isOwned || id !== undefined) open.state = byCategory.get(category)?.evolve(open.state, event)
    const schema = schemaOf(this.#app, event)
    if (!isTheirs) {
      // also what earlier releases stored in plain text, and what tells two of them to be one
      for (const { value } of sensitiveValues(schema, event.data)) open.hidden.add(value)
      for (const [field, value] of Object.entries(event.data as object))
        if (field.endsWith('_fingerprint') && typeof value === 'string') open.hidden.add(value)
      return
    }
    const data = ownPart({ type: event.type, data: event.data, schema }, open.own)
    if (data === null) return
    const texts = await this.#opened(event, schema)
    for (const { value } of hiddenValues(schema, event.data)) if (!texts.has(value)) open.hidden.add(value)
    if (isOwned && !WITHOUT_TEXTS.has(category))
      for (const [sealed, text] of texts) open.texts.set(sealed, text)
    const { employer_id, account } = event.data as { employer_id?: string; account?: DebitedAccount }
    if (employer_id !== undefined) this.#employers.add(employer_id)
    const { recorded_at, actor, correlation_id } = event.metadata
    yield this.#line(stored, {
      recorded_at,
      sentence: sentenceFor(event, data, owner !== null),
      actor,
      request_id: correlation_id,
      data: withTexts(data, texts, NOBODY),
      ...(isOwned && account && (await this.#numbersOf(account))),
    })
    if (INTEGRATION_SOURCES.includes(event.type))
      this.#messages[event.type] = (this.#messages[event.type] ?? 0) + 1
    if (event.type === BankDebitInFile.name) {
      const { file_id, leg_id } = event.data as { readonly file_id: string; readonly leg_id: string }
      yield this.#recipient({ to: 'bank', bank_file_id: file_id, debit_id: leg_id, at: recorded_at })
    }
  }

  /** Whether an event is about an owner, so that its answer has it. */
  #isTheirs(stored: StoredEvent, { id, isOwned }: Whose, owner: Owner): boolean {
    if (id !== undefined) return isOwned
    return (isOwned || names(stored, this.#subjects, owner)) && !isOthers(stored, owner)
  }

  #line(stored: StoredEvent, told: Readonly<Record<string, unknown>>): Line {
    const { position, type, stream, revision, eventId } = stored
    this.#events += 1
    this.#streams.add(stream)
    this.#first ??= position
    this.#last = position
    this.#types[type] = (this.#types[type] ?? 0) + 1
    const leaf_hash = leafHash(leafOf(stored)).toString('base64')
    return { kind: 'event', position, type, stream, revision, event_id: eventId, ...told, leaf_hash }
  }

  #recipient(told: Readonly<Record<string, unknown>>): Line {
    this.#recipients += 1
    return { kind: 'recipient', ...told }
  }

  /** The subjects' sealed values of an event, opened, by what they are sealed as. */
  async #opened(event: RecordedEvent, schema: EventType['schema']): Promise<ReadonlyMap<string, unknown>> {
    const items = sensitiveValues(schema, event.data).flatMap((place) => {
      const { sealed, value } = place
      const isOwn = sealed && isSealed(value) && this.#subjects.has(subjectOf(value))
      return isOwn ? [{ value: value as Sealed, context: sealed.boundTo(place) }] : []
    })
    const texts = await openAll(this.#app.personalData, items)
    this.#revealed += texts.length
    this.#erased += texts.filter((text) => text === ERASED).length
    return new Map(items.map(({ value }, index) => [value, parsed(texts[index]!)]))
  }

  /** Numbers and holder of an account, which stand beside the log; each is told once. */
  async #numbersOf(account: DebitedAccount): Promise<Readonly<Record<string, unknown>>> {
    if (this.#accounts.has(account.account_ref)) return {}
    this.#accounts.add(account.account_ref)
    const numbers = await keptAccount(this.#app, account)
    if (numbers) this.#revealed += 1
    return { bank_account: numbers ?? '(erased, or no longer kept)' }
  }

  #stateOf({ stream, state, texts, hidden }: OpenStream): Line {
    const { category } = parseStream(stream)
    this.#streams.add(stream)
    const told = OF_MANY.has(category) ? null : withTexts(state, texts, hidden)
    return { kind: 'state', of: stream, state: told }
  }

  /** What read models say of people now. */
  async *#peopleNow(): AsyncGenerator<Line, void, undefined> {
    const { owner, subjects } = this.#findings
    if (owner === null) {
      for await (const row of employeesNow(this.#app, [...this.#employers], subjects)) {
        const { record, context, ...told } = row
        const [text] = await openAll(this.#app.personalData, [{ value: record, context }])
        yield { kind: 'state', of: 'employee-register', state: { ...told, record: parsed(text!) } }
      }
    }
    const files = [...this.#streams].flatMap((stream) => {
      const { category, id } = parseStream(stream)
      return category === payrollFile.category || category === employeeSync.category ? [id] : []
    })
    for await (const state of filesNow(this.#app, files)) yield { kind: 'state', of: 'payroll-files', state }
  }

  /** To whom it went, beside banks: partners by webhook, operators who opened it, other systems by integration events. */
  async *#recipientsOf(): AsyncGenerator<Line, void, undefined> {
    const { owner, until } = this.#findings
    const opened = new Set(
      [...this.#streams].flatMap((stream) => {
        const { category, id } = parseStream(stream)
        const thing = thingOf(category, id)
        return thing ? [stream, `${thing.kind}/${thing.id}`] : [stream]
      }),
    )
    for (const employer of this.#employers) opened.add(`employer-${employer}/register`)
    const types = [OperatorActed.name, ...(owner ? [WebhookEventRaised.name] : [])]
    for await (const stored of eventsOfTypes(this.#app, types, until, this.#signal)) {
      const isRaised = stored.type === WebhookEventRaised.name
      if (isRaised && !names(stored, NO_SUBJECTS, owner)) continue
      const event = decodedOrNull(this.#app, stored)
      if (!event) continue
      const { recorded_at: at, actor } = event.metadata
      if (isRaised) {
        const { tenant_id, event_id, event_type } = event.data as Readonly<Record<string, string>>
        const raised = { webhook_event_id: event_id, event_type, at, holds: RAISED }
        yield this.#recipient({ to: 'partner', tenant_id, ...raised })
        continue
      }
      const { action, target } = event.data as { readonly action: string; readonly target: string }
      if (action === 'reveal' && opened.has(target))
        yield this.#recipient({ to: 'operator', operator_id: actor.id, opened: target, at })
    }
    if (Object.keys(this.#messages).length > 0) {
      const holds =
        'ids, dates, counts and cents, nothing about a person; only where integration events are on'
      yield this.#recipient({ to: 'integration events', events_by_type: this.#messages, holds })
    }
  }
}

const RAISED = 'raised for the partner, and sent where it subscribes to events of the type'
const NOBODY: ReadonlySet<unknown> = new Set()
const NO_SUBJECTS: ReadonlySet<string> = new Set()

const WHAT_STAYS =
  'The data key was destroyed: names, numbers and records read (erased), and nobody can open them any more. That there were ' +
  'events stays, with their times, amounts, dates, class codes and states.'

/** Whether something of a data subject can be opened. */
async function keptOf({ commands, personalData }: Application, subject: string) {
  const [generation, { state }] = await Promise.all([
    personalData.keyGeneration(subject),
    commands.load(dataSubject, dataSubjectId(subject)),
  ])
  const isErased = generation !== null && generation <= state.erasedUpTo
  const erased = state.erasedUpTo > 0
  return {
    subject,
    status: isErased ? 'erased' : erased ? 'reported again after an erasure' : 'kept',
    ...(erased && { what_stays: WHAT_STAYS }),
  }
}

/** What was sealed as JSON, else the text. */
function parsed(text: string): unknown {
  if (!text.startsWith('{')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A copy with sealed texts in the clear; what is sealed for others, or hidden, is left out. */
function withTexts(
  value: unknown,
  texts: ReadonlyMap<string, unknown>,
  hidden: ReadonlySet<unknown>,
): unknown {
  const isLeftOut = (one: unknown) => hidden.has(one) || (isSealed(one) && !texts.has(one))
  if (typeof value === 'string') return texts.get(value) ?? value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    return value.filter((one) => !isLeftOut(one)).map((one) => withTexts(one, texts, hidden))
  }
  const entries = value instanceof Map ? [...value] : Object.entries(value)
  return Object.fromEntries(
    entries
      .filter(([, one]) => !isLeftOut(one))
      .map(([key, one]): [string, unknown] => [String(key), withTexts(one, texts, hidden)]),
  )
}

/** The schema of an event that was decoded. */
function schemaOf({ registry }: Application, { type }: RecordedEvent): EventType['schema'] {
  return registry.types.find(({ name }) => name === type)!.schema
}

function decodedOrNull({ registry }: Application, stored: StoredEvent): RecordedEvent | null {
  try {
    return registry.decode(stored, false)
  } catch {
    return null
  }
}
