import { BankAccountCreated, bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import { BankConnectionLinked } from '../../../domain/banking/linking/bank-connection.ts'
import { parseStream } from '../../../domain/kernel/decider.ts'
import type { EventType } from '../../../domain/kernel/event-type.ts'
import { type SealedField, sensitiveFields } from '../../../domain/kernel/sealed.ts'
import { PersonalDataErased } from '../../../domain/operations/data-subject.ts'
import { OperatorActed } from '../../../domain/operations/operator-action.ts'
import { CarrierRegistered } from '../../../domain/parties/carrier.ts'
import { EmployerRegistered } from '../../../domain/parties/employer.ts'
import { IntakeCompleted, intake } from '../../../domain/policies/intake.ts'
import { webhookEvent } from '../../../domain/webhooks/webhook-event.ts'
import type { Application } from '../../commands/application.ts'
import { employerSubject, personSubject } from '../../commands/sealing.ts'
import { TimeSlice } from '../../commands/time-slices.ts'
import { LOG_START, type StoredEvent } from '../../ports/event-log.ts'

/**
 * Which streams hold something of data subjects. There is no index by subject: the log itself is read, only events of the
 * types whose schemas can hold something of such a subject, so that nothing depends on how far read models have come.
 */

type Parts = Pick<Application, 'log' | 'registry' | 'personalData'>

/** Events read at once, at the most: a page ends by its size as well. */
const READ_PAGE = 1_000

/** A stream with something of the subjects. */
export interface SubjectStream {
  readonly stream: string
  /** Place of its first event in the log. */
  readonly first: bigint
}

/** Whose streams they are. */
export interface Owner {
  /** Id of the employer, connection, carrier or bank account. */
  readonly id: string
  /** Fields at the top of an event's data that say whose it is, the first that is not null; of bank accounts see {@link OF_ACCOUNT}. */
  readonly fields: readonly string[]
}

/** A bank account is its employer's, else its carrier's, and may move from one to another. */
const OF_ACCOUNT = ['employer_id', 'carrier_id']

/** What has a data key of an employer's kind: the events that tell of each, and what is its own. */
const OWNERS: readonly {
  readonly type: EventType
  readonly id: string
  readonly fields: readonly string[]
}[] = [
  { type: EmployerRegistered, id: 'employer_id', fields: ['employer_id', 'owner_id'] },
  // of its customers a carrier owns nothing
  { type: CarrierRegistered, id: 'carrier_id', fields: ['owner_id'] },
  { type: BankConnectionLinked, id: 'connection_id', fields: ['connection_id'] },
  { type: BankAccountCreated, id: 'bank_account_id', fields: [] },
]

/** The owner that a request names by its own id; null: none. */
export function ownerNamed(named: Readonly<Record<string, unknown>>): Owner | null {
  for (const { id: field, fields } of OWNERS) {
    const id = named[field]
    if (typeof id === 'string') return { id, fields }
  }
  return null
}

/** Who has a data key of an employer's kind; null: nobody is found. @param signal ends the search. */
export async function ownerOf(parts: Parts, subject: string, signal: AbortSignal): Promise<Owner | null> {
  const types = OWNERS.map(({ type }) => type.name)
  for await (const event of eventsOfTypes(parts, types, await parts.log.head(), signal)) {
    const owner = OWNERS.find(({ type }) => type.name === event.type)!
    const id = dataOf(event)[owner.id]
    if (typeof id === 'string' && employerSubject(parts.personalData, id) === subject) {
      return { id, fields: owner.fields }
    }
  }
  return null
}

/**
 * The streams with something of the subjects, in the order of their first events.
 * @param owner null where the subjects are people.
 * @param until events behind this position do not count.
 * @throws SharedSubject where a subject stands for rows that identify nobody.
 */
export async function subjectStreams(
  parts: Parts,
  subjects: ReadonlySet<string>,
  owner: Owner | null,
  until: bigint,
  signal: AbortSignal,
): Promise<readonly SubjectStream[]> {
  const found = new Map<string, SubjectStream>()
  for await (const event of eventsOfTypes(parts, typesFor(parts, owner), until, signal)) {
    if (found.has(event.stream) || !names(event, subjects, owner)) continue
    if (owner !== null && mayBeAnothersIntake(event)) continue
    const first =
      event.revision === 0 ? event : (await parts.log.readStream(event.stream, { maxCount: 1 }))[0]!
    refuseShared(parts, subjects, [first, event])
    found.set(event.stream, { stream: event.stream, first: first.position })
  }
  return [...found.values()].sort((a, b) => (a.first < b.first ? -1 : 1))
}

/**
 * An intake names the employer that its FEIN is reserved for, which may be another tenant's, or another's with the same
 * nine digits; one that was completed was checked to be of this employer.
 */
function mayBeAnothersIntake({ stream, type }: StoredEvent): boolean {
  return parseStream(stream).category === intake.category && type !== IntakeCompleted.name
}

/** A subject stands for rows of several people: those of an employer's reports that identify nobody. */
export class SharedSubject extends Error {
  override readonly name = 'SharedSubject'
  constructor() {
    super(
      'subject stands for all rows of an employer that identify nobody: nothing in it is known to be of one person',
    )
  }
}

function refuseShared(
  { personalData }: Parts,
  subjects: ReadonlySet<string>,
  events: readonly StoredEvent[],
): void {
  for (const event of events) {
    const { employer_id: id } = dataOf(event)
    if (typeof id === 'string' && subjects.has(personSubject(personalData, id, null)))
      throw new SharedSubject()
  }
}

/** Whether an event holds something of the subjects, or is their owner's. */
export function names(event: StoredEvent, subjects: ReadonlySet<string>, owner: Owner | null): boolean {
  for (const subject of subjects) {
    // sealed values name their subject, as does what tells of a subject itself
    if (event.data.includes(`${subject}.`) || event.data.includes(`"${subject}"`)) return true
  }
  if (owner === null || !event.data.includes(`"${owner.id}"`)) return false
  return fieldsIn(event, owner).some((field) => dataOf(event)[field] === owner.id)
}

/** What the events of a stream have told so far of whose it is. */
export interface Whose {
  /** The fields that say so, as they were told last. */
  readonly told: Readonly<Record<string, unknown>>
  /** Whom they name; null: nobody; undefined: the first event did not say, and the stream is no one's alone. */
  readonly id: string | null | undefined
  /** All of it is the owner's, until another is named. */
  readonly isOwned: boolean
  /** What the first event said of both: it may be sealed for an owner that no field names. */
  readonly first: { readonly id: string | null | undefined; readonly isOwned: boolean }
}

/** Whose a stream is from an event on. @param before null: the event is its first one. */
export function whoseFrom(
  event: StoredEvent,
  before: Whose | null,
  subjects: ReadonlySet<string>,
  owner: Owner,
): Whose {
  const fields = fieldsIn(event, owner)
  const data = dataOf(event)
  const said = fields.filter((field) => data[field] !== undefined)
  if (before && (before.id === undefined || said.length === 0)) return before
  const told = { ...before?.told, ...Object.fromEntries(said.map((field) => [field, data[field]])) }
  const id = said.length === 0 ? undefined : ownerIn(told, fields)
  const first = before?.first ?? { id, isOwned: id === owner.id || names(event, subjects, null) }
  return { told, id, isOwned: id === owner.id || (first.isOwned && id === first.id), first }
}

/** Whether an event of a stream that is no one's alone tells of another owner. */
export function isOthers(event: StoredEvent, owner: Owner): boolean {
  const data = dataOf(event)
  return fieldsIn(event, owner).some((field) => typeof data[field] === 'string' && data[field] !== owner.id)
}

function ownerIn(told: Readonly<Record<string, unknown>>, fields: readonly string[]): string | null {
  const id = fields.map((field) => told[field]).find((value) => typeof value === 'string')
  return (id as string | undefined) ?? null
}

function fieldsIn({ stream }: StoredEvent, { fields }: Owner): readonly string[] {
  return parseStream(stream).category === bankAccount.category ? OF_ACCOUNT : fields
}

/** The types of events that can hold something of a person, or of an owner. */
function typesFor({ registry }: Pick<Parts, 'registry'>, owner: Owner | null): readonly string[] {
  const kind: SealedField['subject'] = owner === null ? 'person' : 'employer'
  const fields = owner?.fields ?? []
  const others = webhookEvent.events.map(({ name }) => name)
  const ofAccounts = owner === null ? [] : bankAccount.events.map(({ name }) => name)
  return registry.types
    .filter(({ name, schema }) => {
      if (others.includes(name)) return false
      if (name === PersonalDataErased.name || name === OperatorActed.name) return true
      if (ofAccounts.includes(name)) return true
      const { shape = {} } = schema as { readonly shape?: Readonly<Record<string, unknown>> }
      return (
        fields.some((field) => field in shape) ||
        sensitiveFields(schema).some(({ sealed }) => sealed?.subject === kind)
      )
    })
    .map(({ name }) => name)
}

/** Events of some types up to a position, in log order. */
export async function* eventsOfTypes(
  { log }: Pick<Parts, 'log'>,
  types: readonly string[],
  until: bigint,
  signal: AbortSignal,
): AsyncGenerator<StoredEvent, void, undefined> {
  const slice = new TimeSlice()
  for (let after = LOG_START; after < until; ) {
    signal.throwIfAborted()
    const { events, checkpoint, atHead } = await log.readAll({ after, maxCount: READ_PAGE, types })
    for (const event of events) {
      if (event.position > until) return
      yield event
      const pause = slice.over()
      if (pause) await pause
    }
    if (atHead) return
    after = checkpoint
  }
}

/** What stands in an event; nothing where another program wrote something else. */
function dataOf({ data }: StoredEvent): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
