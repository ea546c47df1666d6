import type { z } from 'zod'
import type { EventType } from '../../domain/kernel/event-type.ts'
import { type Place, sensitiveValues } from '../../domain/kernel/sealed.ts'
import type { PersonalData } from '../ports/personal-data.ts'

type SealedDraft<Draft, Data> = {
  [Name in keyof Draft]: Name extends keyof Data ? Data[Name] : never
}

/**
 * Seals the plain texts at the sealed fields of an event's data, each bound to its place as the event type declares.
 * @param draft the data, or as much of it as the binding refers to; it is changed in place, since it may be large.
 * @param subjectOf the data subject under whose key the text at a place is sealed; null leaves one in plain text that may be.
 * @returns the draft, sealed.
 * @throws Error when a subject is not of the kind that the field declares.
 */
export async function sealFields<Schema extends z.ZodType, Draft extends object>(
  personalData: Pick<PersonalData, 'seal'>,
  type: EventType<string, Schema>,
  draft: Draft,
  subjectOf: (place: Place) => string | null,
): Promise<SealedDraft<Draft, z.output<Schema>>> {
  const items = sensitiveValues(type.schema, draft).flatMap((place) => {
    const { sealed, value: plaintext } = place
    if (!sealed) return []
    const subject = subjectOf(place)
    if (subject === null && sealed.mayBePlain) return []
    if (!subject?.startsWith(`${sealed.subject}/`)) {
      throw new Error(`${type.name}: ${place.path.join('.')} is sealed under the key of a ${sealed.subject}`)
    }
    return [{ place, subject, context: sealed.boundTo(place), plaintext }]
  })
  if (items.length > 0) {
    const values = await personalData.seal(items)
    for (const [index, { place }] of items.entries()) place.holder[place.key] = values[index]!
  }
  return draft as SealedDraft<Draft, z.output<Schema>>
}

/** The data subject under whose key an employer's fields are sealed. */
export function employerSubject(personalData: Pick<PersonalData, 'subjectId'>, employerId: string): string {
  return personalData.subjectId('employer', employerId)
}

/** The data subject of a bank connection: its employer, else itself. */
export function connectionSubject(
  personalData: Pick<PersonalData, 'subjectId'>,
  { employer_id, connection_id }: { readonly employer_id: string | null; readonly connection_id: string },
): string {
  return employerSubject(personalData, employer_id ?? connection_id)
}

/**
 * The data subject of a person, by what identifies it within its employer. Rows that carry personal
 * values but identify no person share one subject of the employer.
 */
export function personSubject(
  personalData: Pick<PersonalData, 'subjectId'>,
  employerId: string,
  identity: string | null,
): string {
  return personalData.subjectId('person', `${employerId}|${identity ?? 'unidentified'}`)
}
