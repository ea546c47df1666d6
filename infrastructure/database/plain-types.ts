import pg from 'pg'

const { builtins } = pg.types
const OFFSET = /([+-])(\d{2})(?::?(\d{2}))?$/

/** `2026-01-02 03:04:05.678901+00` as ISO 8601 UTC with milliseconds. */
function isoTimestamp(text: string): string {
  if (text.endsWith('+00')) {
    const point = text.indexOf('.')
    const millis =
      point < 0
        ? '000'
        : text
            .slice(point + 1, -3)
            .padEnd(3, '0')
            .slice(0, 3)
    return `${text.slice(0, 10)}T${text.slice(11, 19)}.${millis}Z`
  }
  const iso = text
    .replace(' ', 'T')
    .replace(OFFSET, (_, sign, hours, minutes) => `${sign}${hours}:${minutes ?? '00'}`)
  return new Date(iso).toISOString()
}

function plainNumber(text: string): number | string {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}

/**
 * How values of read models come back, whatever the rest of the process does with its connections:
 * `bigint` as a number, `date` as `YYYY-MM-DD`, `timestamptz` as ISO 8601 UTC with milliseconds.
 */
export const plainTypes: pg.CustomTypesConfig = {
  getTypeParser: ((type: number, format?: 'text' | 'binary') => {
    if (type === builtins.INT8) return plainNumber
    if (type === builtins.TIMESTAMPTZ) return isoTimestamp
    if (type === builtins.DATE) return (text: string) => text
    return pg.types.getTypeParser(type, format as 'text')
  }) as pg.CustomTypesConfig['getTypeParser'],
}
