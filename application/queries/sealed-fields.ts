import { streamOf } from '../../domain/kernel/decider.ts'
import { isSealed, type Sealed } from '../../domain/kernel/sealed.ts'
import { EmployeeChangesRecorded, employeeSync } from '../../domain/parties/employee-sync.ts'
import { EmployerRegistered, employer } from '../../domain/parties/employer.ts'
import { PayrollRowsRecorded, payrollFile } from '../../domain/payroll/payroll-file.ts'
import { type PersonalData, sealContext } from '../ports/personal-data.ts'

/**
 * Where sealed values stand in events, and what each is bound to. Writers build contexts with these
 * functions, so that readers of events, states and read models open every copy the same way.
 */

/** Shown in place of a sensitive value. */
export const MASK = '•••'
/** Shown when a value does not open: it was tampered with, or copied from elsewhere. */
export const UNREADABLE = '(unreadable)'

/** What a sealed field of an employer is bound to, whichever event wrote it last. */
export function employerContext(employerId: string, field: string): string {
  return sealContext(streamOf(employer, employerId), EmployerRegistered.name, field)
}

/** The data subject under whose key an employer's fields are sealed. */
export function employerSubject(personalData: Pick<PersonalData, 'subjectId'>, employerId: string): string {
  return personalData.subjectId('employer', employerId)
}

/**
 * The data subject of a person, by what identifies it within its employer. Rows that carry personal
 * values but identify nobody share one subject of the employer.
 */
export function personSubject(
  personalData: Pick<PersonalData, 'subjectId'>,
  employerId: string,
  identity: string | null,
): string {
  return personalData.subjectId('person', `${employerId}|${identity ?? 'unidentified'}`)
}

/** What the sealed person of a row is bound to, wherever a copy of it stands. */
export function rowPersonContext(fileId: string, rowNumber: number): string {
  return sealContext(streamOf(payrollFile, fileId), PayrollRowsRecorded.name, `rows.${rowNumber}.person`)
}

/** What the record of a change is bound to, by its chunk and its place in the chunk (both from 0). */
export function changeRecordContext(fileId: string, chunk: number, index: number): string {
  const field = `chunks.${chunk}.changes.${index}.record`
  return sealContext(streamOf(employeeSync, fileId), EmployeeChangesRecorded.name, field)
}

/** Steps from the root of the data to a value. */
type Path = readonly (string | number)[]

/** The event types whose sealed values are bound by a rule of their own. */
const RULES: Readonly<Record<string, (data: Readonly<Record<string, unknown>>, path: Path) => string>> = {
  EmployerRegistered: employerField,
  EmployerDetailsChanged: employerField,
  PayrollFileReceived: (data, path) => rowPerson(data, 'rows', path, 'n'),
  PayrollFileProcessed: (data, [, ...path]) =>
    rowPerson({ ...(data.validation as object), file_id: data.file_id }, 'failures', path, 'row_number'),
  PayrollRowsRecorded: (data, path) => rowPerson(data, 'rows', path, 'n'),
  PayrollRowsValidated: (data, path) => rowPerson(data, 'failures', path, 'row_number'),
  EmployeeChangesRecorded: (data, path) =>
    changeRecordContext(String(data.file_id), Number(data.chunk), Number(path[1])),
}

function employerField(data: Readonly<Record<string, unknown>>, path: Path): string {
  return employerContext(String(data.employer_id), path.join('.'))
}

function rowPerson(
  data: Readonly<Record<string, unknown>>,
  list: string,
  path: Path,
  numberField: string,
): string {
  const row = (data[list] as readonly Record<string, unknown>[])[Number(path[1])]
  return rowPersonContext(String(data.file_id), Number(row?.[numberField]))
}

/** The context of a sealed value at a path of an event's data. */
export function contextOf(
  event: { readonly stream: string; readonly type: string; readonly data: unknown },
  path: Path,
): string {
  const rule = RULES[event.type]
  return rule
    ? rule(event.data as Record<string, unknown>, path)
    : sealContext(event.stream, event.type, path.join('.'))
}

/** Fields that are not personal and still nobody's to read by the way: hashes of secrets, places in the vault. */
const GUARDED = new Set(['secret_hash', 'key_hash', 'secret_ref', 'token_hash'])

interface Place {
  readonly holder: Record<string | number, unknown>
  readonly key: string | number
  readonly value: unknown
  readonly path: Path
}

/** A copy of the data, and where sensitive values stand in the copy. */
function copyWithPlaces(data: unknown): { copy: unknown; places: readonly Place[] } {
  const root = { data: structuredClone(data) as unknown }
  const places: Place[] = []
  const walk = (holder: Record<string | number, unknown>, key: string | number, path: Path): void => {
    const value = holder[key]
    if (isSealed(value) || (typeof value === 'string' && GUARDED.has(String(key)))) {
      places.push({ holder, key, value, path })
    } else if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        walk(value as unknown as Record<number, unknown>, index, [...path, index])
      }
    } else if (typeof value === 'object' && value !== null) {
      for (const name of Object.keys(value)) walk(value as Record<string, unknown>, name, [...path, name])
    }
  }
  walk(root, 'data', [])
  return { copy: root.data, places }
}

/** A copy of an event's data or a folded state with every sensitive value masked. */
export function masked(data: unknown): unknown {
  const { copy, places } = copyWithPlaces(data)
  if (places.length === 0) return data
  for (const { holder, key } of places) holder[key] = MASK
  return copy
}

/**
 * Copies of events' data with sealed values opened; those whose key was destroyed read as erased.
 * @returns the copies in order, and how many values were opened.
 */
export async function opened(
  personalData: Pick<PersonalData, 'open'>,
  events: readonly { readonly stream: string; readonly type: string; readonly data: unknown }[],
): Promise<{ readonly data: readonly unknown[]; readonly revealed: number }> {
  const sealed: { place: Place; value: Sealed; context: string }[] = []
  const data = events.map((event) => {
    const { copy, places } = copyWithPlaces(event.data)
    for (const place of places) {
      if (!isSealed(place.value)) continue
      sealed.push({ place, value: place.value, context: contextOf(event, place.path) })
    }
    return copy
  })
  const texts = await openAll(personalData, sealed)
  for (const [index, { place }] of sealed.entries()) place.holder[place.key] = texts[index]
  return { data, revealed: sealed.length }
}

/** Opens values all at once; when one of them does not open, one by one, so that the others do. */
export async function openAll(
  personalData: Pick<PersonalData, 'open'>,
  items: readonly { readonly value: Sealed; readonly context: string }[],
): Promise<readonly string[]> {
  if (items.length === 0) return []
  try {
    return await personalData.open(items)
  } catch (error) {
    if (!isUnreadable(error)) throw error
  }
  const texts: string[] = []
  for (const item of items) {
    try {
      texts.push((await personalData.open([item]))[0]!)
    } catch (error) {
      if (!isUnreadable(error)) throw error
      texts.push(UNREADABLE)
    }
  }
  return texts
}

/** Told apart from a database that does not answer, which must not read as a tampered value. */
function isUnreadable(error: unknown): boolean {
  return error instanceof Error && error.name === 'SealedValueError'
}
