/** Whether a JSON value holds a number that reading may have changed: beyond the safe integers, or infinite. */
export function holdsInexact(value: unknown): boolean {
  if (typeof value === 'number') return !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInexact)
}
