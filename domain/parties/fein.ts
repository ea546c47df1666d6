const FEIN = /^(\d{2})-?(\d{7})$/

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
