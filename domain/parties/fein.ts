const FEIN = /^(\d{2})-?(\d{7})$/
const PERSON = /^(\d{2})(\d)-(\d{2})-(\d{4})$/

/** How a number was written: as an employer's, as a person's (a sole proprietor), or as nine digits that do not tell. */
export type FeinNotation = 'employer' | 'person' | 'digits'

/**
 * A federal employer identification number in the form `XX-XXXXXXX`.
 * @param value 9 digits, with or without a hyphen after the second.
 * @returns null when the value is not of that form.
 */
export function normalizeFein(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const match = FEIN.exec(value)
  return match ? `${match[1]}-${match[2]}` : null
}

/**
 * Whether a number as it was sent may be the one of an employer.
 * @param known how that one's was written; undefined where that does not tell, or a release did not keep it.
 */
export function mayBeSameFein(
  sent: FeinNotation,
  known: Exclude<FeinNotation, 'digits'> | undefined,
): boolean {
  return sent === 'digits' || known === undefined || sent === known
}

/**
 * The same, of a number that may also be a person's, `XXX-XX-XXXX`.
 * @returns null when the value is of neither form.
 */
export function readFein(value: unknown): { readonly fein: string; readonly notation: FeinNotation } | null {
  const fein = normalizeFein(value)
  if (fein !== null) return { fein, notation: fein === value ? 'employer' : 'digits' }
  const person = typeof value === 'string' ? PERSON.exec(value) : null
  if (!person) return null
  const [, area, rest, ...others] = person
  return { fein: `${area}-${rest}${others.join('')}`, notation: 'person' }
}
