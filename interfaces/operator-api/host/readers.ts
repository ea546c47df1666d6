import { READER_KINDS, type ReaderKind } from '../../../application/ports/dead-letters.ts'
import { badRequest } from './api.ts'
import type { OperatorServices } from './services.ts'

/** Readers of the log that have work. */
export const WITH_WORK: readonly ReaderKind[] = ['process_manager', 'integration_events']

/**
 * Refuses the name of a reader of the log that neither this release nor the database knows: under a wrong name, an empty list
 * would look like health.
 * @param name null: none is named. @throws HttpError 400, with all names.
 */
export async function expectReader(
  { deadLetters }: Pick<OperatorServices, 'deadLetters'>,
  field: string,
  name: string | null,
  kinds: readonly ReaderKind[] = READER_KINDS,
): Promise<void> {
  if (name === null) return
  const known = (await deadLetters.readers()).filter(({ kind }) => kinds.includes(kind))
  if (known.some((one) => one.name === name)) return
  const names = new Set(known.map((one) => one.name))
  throw badRequest(field, `${field} must be one of ${[...names].join(', ')}`)
}
