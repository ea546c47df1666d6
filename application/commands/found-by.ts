import type { PersonalData } from '../ports/personal-data.ts'
import type { CommandContext } from './command-context.ts'

/** What is kept of a thing only as a keyed fingerprint, so that a search finds it and nobody reads it. */
export type Fingerprinted = 'email' | 'legal_name' | 'idempotency_key'

/** The fingerprint that a value is found by: 24 hex characters, the same however it is written. */
export function foundBy(
  personalData: Pick<PersonalData, 'fingerprint'>,
  what: Fingerprinted,
  value: string,
): string {
  return personalData.fingerprint(
    `search_${what}`,
    what === 'idempotency_key' ? value.trim() : comparable(value),
  )
}

/** A text as it is compared: case, white space and compatible forms of letters do not count. */
export function comparable(text: string): string {
  return text.normalize('NFKC').trim().toLowerCase().replaceAll(/\s+/g, ' ')
}

/** The context under which what is stored is found by some values; null: there is none. */
export function findable(
  { personalData }: { readonly personalData: Pick<PersonalData, 'fingerprint'> },
  context: CommandContext,
  values: Readonly<{ [What in Fingerprinted]?: string | null | undefined }>,
): CommandContext {
  const fingerprints = Object.entries(values).flatMap(([what, value]) =>
    value ? [foundBy(personalData, what as Fingerprinted, value)] : [],
  )
  if (fingerprints.length === 0) return context
  return { ...context, foundBy: [...new Set([...(context.foundBy ?? []), ...fingerprints])] }
}
