import type { z } from 'zod'
import { OperatorCreated, OperatorRevoked, OperatorTokenRotated } from '../../../domain/access/operators.ts'
import type { EventType } from '../../../domain/kernel/event-type.ts'
import { ValueReserved } from '../../../domain/kernel/reservation.ts'
import { hiddenValues, isSealed, subjectOf } from '../../../domain/kernel/sealed.ts'
import { PersonalDataErased } from '../../../domain/operations/data-subject.ts'
import { OperatorActed } from '../../../domain/operations/operator-action.ts'
import { EmployeeChangesRecorded, EmployeeSyncReceived } from '../../../domain/parties/employee-sync.ts'
import { FinancingSettingsChanged } from '../../../domain/payments/financing/financing-settings.ts'
import * as payroll from '../../../domain/payroll/payroll-file-events.ts'
import {
  IntakeCompleted,
  IntakeReceived,
  IntakeRefused,
  IntakeUnfinished,
} from '../../../domain/policies/intake.ts'
import { PolicyNotActivated } from '../../../domain/policies/policy.ts'

/**
 * What of an event is about some data subjects. Of an event that holds rows of several people only their own rows are
 * taken, and nothing that is made of the rows of others, such as totals. What an event type is not known to say of a person
 * is left out, so that a new type tells too little rather than of somebody else.
 */

/** Whose part is taken, as far as the events of one stream have told it: these are shown in their order. */
export interface Own {
  /** Data subjects: all of people, or one of an employer. */
  readonly subjects: ReadonlySet<string>
  /** Whether the stream belongs to the subject, which is an employer then. */
  readonly isOwner: boolean
  /** Numbers of its rows in the payroll file. */
  readonly rows: Set<number>
  /** Chunks of the file in which they stand. */
  readonly chunks: Set<number>
  /** Of people who are operators. */
  readonly operators: Set<string>
}

/** What a stream begins with. */
export function ownOf(subjects: ReadonlySet<string>, isOwner: boolean): Own {
  return { subjects, isOwner, rows: new Set(), chunks: new Set(), operators: new Set() }
}

type Data = Readonly<Record<string, unknown>>
type Part = (data: never, own: Own) => Data | null

function part<Type extends EventType>(
  type: Type,
  of: (data: z.output<Type['schema']>, own: Own) => Data | null,
): readonly [string, Part] {
  return [type.name, of as Part]
}

const whole = (data: object) => data as Data
const isNull = () => null

/** Whether a sealed value is of one of the subjects. */
function isOwn(value: unknown, { subjects }: Pick<Own, 'subjects'>): boolean {
  return isSealed(value) && subjects.has(subjectOf(value))
}

/** Rows of a payroll file that name the person; their numbers are kept for what is made of them. */
function ownRows<Row extends { readonly n: number; readonly person?: string | undefined }>(
  rows: readonly Row[],
  own: Own,
): readonly Row[] {
  const found = rows.filter(({ person }) => isOwn(person, own))
  for (const { n } of found) own.rows.add(n)
  return found
}

const ownTuples = <Tuple extends readonly [number, ...unknown[]]>(tuples: readonly Tuple[], own: Own) =>
  tuples.filter(([n]) => own.rows.has(n))

const ownFailures = <Failure extends { readonly row_number: number }>(
  failures: readonly Failure[],
  own: Own,
) => failures.filter(({ row_number }) => own.rows.has(row_number))

/** A part of a chunk in which the person has a row, null of any other. */
const inOwnChunk = ({ chunk }: { readonly chunk: number }, own: Own, data: Data): Data | null =>
  own.chunks.has(chunk) ? data : null

/** What events say of people, by type. */
const OF_PERSON: ReadonlyMap<string, Part> = new Map([
  part(payroll.PayrollFileReceived, ({ file_id, tenant_id, environment, ...data }, own) => ({
    file_id,
    tenant_id,
    environment,
    employer_id: data.employer_id,
    policy_id: data.policy_id,
    source: data.source,
    period: data.period,
    ...(data.rows && { rows: ownRows(data.rows, own) }),
  })),
  part(payroll.PayrollRowsRecorded, ({ file_id, chunk, rows }, own) => {
    const found = ownRows(rows, own)
    if (found.length === 0) return null
    own.chunks.add(chunk)
    return { file_id, chunk, rows: found }
  }),
  part(payroll.PayrollFileNormalized, ({ file_id, policy_revision }) => ({ file_id, policy_revision })),
  part(payroll.PayrollRowsValidated, ({ file_id, chunk, failures }, own) =>
    inOwnChunk({ chunk }, own, { file_id, chunk, failures: ownFailures(failures, own) }),
  ),
  part(payroll.PayrollWagesCalculated, ({ file_id, chunk, wages }, own) =>
    inOwnChunk({ chunk }, own, { file_id, chunk, wages: ownTuples(wages, own) }),
  ),
  part(payroll.PayrollPremiumCalculated, ({ file_id, chunk, premiums }, own) =>
    inOwnChunk({ chunk }, own, { file_id, chunk, premiums: ownTuples(premiums, own) }),
  ),
  part(payroll.PayrollFileProcessed, ({ file_id, policy_revision, validation, wages, premium }, own) => ({
    file_id,
    policy_revision,
    validation: { failures: ownFailures(validation.failures, own) },
    wages: { wages: ownTuples(wages.wages, own) },
    premium: premium && { premiums: ownTuples(premium.premiums, own) },
  })),
  // the error may quote the row of somebody else
  part(payroll.PayrollFileFailed, ({ file_id, stage }) => ({ file_id, stage })),
  part(EmployeeSyncReceived, ({ file_id, sync_id, tenant_id, environment, employer_id, sender_id }) => ({
    file_id,
    sync_id,
    tenant_id,
    environment,
    employer_id,
    sender_id,
  })),
  part(EmployeeChangesRecorded, ({ file_id, employer_id, chunk, changes }, own) => {
    const found = changes.filter(({ record }) => isOwn(record, own))
    return found.length === 0 ? null : { file_id, employer_id, chunk, changes: found }
  }),
  part(IntakeReceived, ({ intake_id, tenant_id, environment, carrier_id, employer_id, owners }, own) => ({
    intake_id,
    tenant_id,
    environment,
    carrier_id,
    employer_id,
    owners: owners.filter(({ person }) => isOwn(person, own)),
  })),
  part(IntakeCompleted, whole),
  part(IntakeRefused, whole),
  part(IntakeUnfinished, whole),
  part(FinancingSettingsChanged, ({ tenant_id, settings }, own) => {
    const recipients = settings.recipients.filter(({ address }) => isOwn(address, own))
    return recipients.length === 0 ? null : { tenant_id, settings: { recipients } }
  }),
  part(OperatorCreated, ({ operator_id, name, role, created_at, expires_at }, own) => {
    if (!isOwn(name, own)) return null
    own.operators.add(operator_id)
    return { operator_id, name, role, created_at, expires_at }
  }),
  part(OperatorTokenRotated, ({ operator_id, expires_at }, own) =>
    own.operators.has(operator_id) ? { operator_id, expires_at } : null,
  ),
  part(OperatorRevoked, ({ operator_id, reason }, own) =>
    own.operators.has(operator_id) ? { operator_id, reason } : null,
  ),
  part(PersonalDataErased, (data, { subjects }) => (subjects.has(data.subject) ? whole(data) : null)),
  part(OperatorActed, (data, { subjects }) => (subjects.has(data.target) ? whole(data) : null)),
])

/** What events that name others say of the employer that they belong to: totals of rows are its own, rows are not. */
const OF_OWNER: ReadonlyMap<string, Part> = new Map([
  part(payroll.PayrollFileReceived, ({ rows: _, ...data }) => data),
  part(payroll.PayrollRowsRecorded, isNull),
  part(payroll.PayrollRowsValidated, ({ failures: _, ...data }) => data),
  part(payroll.PayrollWagesCalculated, ({ wages: _, ...data }) => data),
  part(payroll.PayrollPremiumCalculated, ({ premiums: _, ...data }) => data),
  part(payroll.PayrollFileProcessed, ({ validation, wages, premium, ...data }) => ({
    ...data,
    validation: { green: validation.green, red: validation.red },
    wages: { rows_processed: wages.rows_processed, auditable_cents: wages.auditable_cents },
    premium: premium && { rows_processed: premium.rows_processed, premium_cents: premium.premium_cents },
  })),
  part(payroll.PayrollFileFailed, ({ file_id, stage }) => ({ file_id, stage })),
  part(EmployeeChangesRecorded, isNull),
  part(IntakeReceived, ({ owners: _, ...data }) => data),
  // of an employer only its FEIN is reserved, perhaps by another's request, before it was registered
  part(ValueReserved, isNull),
  // the policy that has the number may be another's
  part(PolicyNotActivated, ({ policy_id, reason }) => ({ policy_id, reason })),
  part(FinancingSettingsChanged, isNull),
  part(OperatorCreated, isNull),
  part(PersonalDataErased, (data, { subjects }) => (subjects.has(data.subject) ? whole(data) : null)),
  part(OperatorActed, (data, { subjects }) => (subjects.has(data.target) ? whole(data) : null)),
])

/** Whether it is known what an event type says of a person, and of an employer. */
export function isKnown(type: string): boolean {
  return OF_PERSON.has(type) && OF_OWNER.has(type)
}

/**
 * What an event says of the subjects, their sealed values as they are stored, those of others and secrets left out.
 * @param event as its type declares it; the events before it in its stream were asked for before.
 * @returns null: nothing.
 */
export function ownPart(
  {
    type,
    data,
    schema,
  }: { readonly type: string; readonly data: unknown; readonly schema: EventType['schema'] },
  own: Own,
): Data | null {
  const of = (own.isOwner ? OF_OWNER : OF_PERSON).get(type)
  if (!of && !own.isOwner) return null
  const taken = of ? of(data as never, own) : (data as Data)
  if (taken === null) return null
  // what is in plain text where it is nobody's is the employer's all the same
  const hidden = new Set(
    hiddenValues(schema, data)
      .map(({ value }) => value)
      .filter((value) => !isOwn(value, own)),
  )
  return without(taken, hidden) as Data
}

/** A copy without some texts: items of lists and fields of objects that are one of them are left out. */
function without(value: unknown, hidden: ReadonlySet<unknown>): unknown {
  if (Array.isArray(value)) {
    return value.filter((one) => !isHidden(one, hidden)).map((one) => without(one, hidden))
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => !isHidden(one, hidden))
      .map(([key, one]) => [key, without(one, hidden)]),
  )
}

const isHidden = (value: unknown, hidden: ReadonlySet<unknown>) =>
  typeof value === 'string' && hidden.has(value)
