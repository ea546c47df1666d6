import { BankAccountCreated } from '../../../domain/banking/accounts/bank-account.ts'
import { BankConnectionLinked } from '../../../domain/banking/linking/bank-connection.ts'
import { parseStream } from '../../../domain/kernel/decider.ts'
import type { EventType } from '../../../domain/kernel/event-type.ts'
import { type SealedField, sensitiveFields } from '../../../domain/kernel/sealed.ts'
import { PersonalDataErased } from '../../../domain/operations/data-subject.ts'
import { OperatorActed } from '../../../domain/operations/operator-action.ts'
import { CarrierRegistered } from '../../../domain/parties/carrier.ts'
import { EmployerRegistered } from '../../../domain/parties/employer.ts'
import { webhookEvent } from '../../../domain/webhooks/webhook-event.ts'
import type { Application } from '../../commands/application.ts'
import { employerSubject, personSubject } from '../../commands/sealing.ts'
import { LOG_START, type StoredEvent } from '../../ports/event-log.ts'

/**
 * Which streams hold something of data subjects. There is no index by subject: the log itself is read once, only events of
 * the types whose schemas can hold something of such a subject, so that nothing depends on how far read models have come.
 */

type Parts = Pick<Application, 'log' | 'registry' | 'personalData'>

/** Events read at once. */
const READ_PAGE = 50

/** A stream with something of the subjects. */
export interface SubjectStream {
  readonly stream: string
  /** Place of its first event in the log. */
  readonly first: bigint
  /** All of it is the owner's; of others, only events that name it. */
  readonly isOwned: boolean
}

/** Whose streams they are. */
export interface Owner {
  /** Id of the employer, connection, carrier or bank account. */
  readonly id: string
  /** Fields at the top of an event's data that make the event the owner's. */
  readonly fields: readonly string[]
}

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
    if (found.has(event.stream) || parseStream(event.stream).category === webhookEvent.category) continue
    if (!names(event, subjects, owner)) continue
    const first =
      event.revision === 0 ? event : (await parts.log.readStream(event.stream, { maxCount: 1 }))[0]!
    refuseShared(parts, subjects, [first, event])
    const isOwned = owner !== null && names(first, subjects, owner)
    found.set(event.stream, { stream: event.stream, first: first.position, isOwned })
  }
  return [...found.values()].sort((a, b) => (a.first < b.first ? -1 : 1))
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
  const data = dataOf(event)
  return owner.fields.some((field) => data[field] === owner.id)
}

/** Whether an event tells of another owner. */
export function isOthers(event: StoredEvent, { id, fields }: Owner): boolean {
  const data = dataOf(event)
  return fields.some((field) => typeof data[field] === 'string' && data[field] !== id)
}

/** The types of events that can hold something of a person, or of an owner. */
function typesFor({ registry }: Pick<Parts, 'registry'>, owner: Owner | null): readonly string[] {
  const kind: SealedField['subject'] = owner === null ? 'person' : 'employer'
  const fields = owner?.fields ?? []
  return registry.types
    .filter(({ name, schema }) => {
      if (name === PersonalDataErased.name || name === OperatorActed.name) return true
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
  for (let after = LOG_START; after < until; ) {
    signal.throwIfAborted()
    const { events, checkpoint, atHead } = await log.readAll({ after, maxCount: READ_PAGE, types })
    for (const event of events) {
      if (event.position > until) return
      yield event
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
