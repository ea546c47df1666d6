const FEIN = /^(\d{2})-?(\d{7})$/
const PERSON = /^(\d{2})(\d)-(\d{2})-(\d{4})$/

/** How a number was written: as an employer's, or as a person's (a sole proprietor). */
export type FeinNotation = 'employer' | 'person'

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
 * The same, of a number that may also be a person's, `XXX-XX-XXXX`. Nine digits are one number however they are written.
 * @returns null when the value is of neither form.
 */
export function readFein(value: unknown): { readonly fein: string; readonly notation: FeinNotation } | null {
  const fein = normalizeFein(value)
  if (fein !== null) return { fein, notation: 'employer' }
  const person = typeof value === 'string' ? PERSON.exec(value) : null
  if (!person) return null
  const [, area, rest, ...others] = person
  return { fein: `${area}-${rest}${others.join('')}`, notation: 'person' }
}
