/** JSON bytes of one payroll row, or employee record, at the most. */
export const MAX_ROW_BYTES = 32 * 1024

/** Whether a row's JSON is too large. A value of any size is looked at only as far as it may fit. */
export function isRowTooLarge(row: unknown): boolean {
  // bytes that JSON takes at the least; what is left when the row is through may still fit, and is small
  let left = MAX_ROW_BYTES
  const open: unknown[] = [row]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node === 'string') {
      left -= node.length + 2
    } else if (Array.isArray(node)) {
      left -= node.length + 1
      if (left >= 0) open.push(...node)
    } else if (typeof node === 'object' && node !== null) {
      left -= 1
      for (const key in node) {
        left -= key.length + 4
        if (left < 0) return true
        const value = (node as Record<string, unknown>)[key]
        if (typeof value === 'string') left -= value.length + 2
        else if (typeof value === 'object' && value !== null) open.push(value)
        else left -= 1
      }
    } else {
      left -= 1
    }
    if (left < 0) return true
  }
  // a character takes up to six bytes, a number up to 24
  return left < (MAX_ROW_BYTES * 23) / 24 && Buffer.byteLength(JSON.stringify(row)) > MAX_ROW_BYTES
}
