import { isIdempotencyKey } from '../../application/idempotency/keyed-call.ts'
import { MAX_ROWS } from '../../application/payroll/submit-payroll.ts'
import { isRowTooLarge, MAX_ROW_BYTES } from '../../application/row-size.ts'
import { inTimeSlices } from '../../application/time-slices.ts'
import { INVALID_PARAMS, invalidParams, isObject, RpcError } from './json-rpc.ts'

/** The arguments of a tool call. */
export type Arguments = Readonly<Record<string, unknown>>

/** @throws RpcError -32602 naming the argument when it is missing or no string. */
export function requiredString(given: Arguments, field: string, what: string): string {
  const value = given[field]
  if (value === undefined || value === null) {
    throw invalidParams(field, `${field} is required: send ${what} as a string`)
  }
  if (typeof value !== 'string') throw invalidParams(field, `${field} must be a string: send ${what}`)
  if (value.trim() === '') throw invalidParams(field, `${field} is empty: send ${what}`)
  return value
}

/** @returns null when it is left out. @throws RpcError -32602 when it is there and no string: null is none. */
export function optionalString(given: Arguments, field: string, what: string): string | null {
  const value = given[field]
  if (value === undefined) return null
  if (value === null) throw invalidParams(field, `${field} must be a string: send ${what}, or leave it out`)
  return requiredString(given, field, what)
}

/** Left out it means false. @throws RpcError -32602 when it is no boolean: null is none. */
export function optionalBoolean(given: Arguments, field: string): boolean {
  const value = given[field]
  if (value === undefined) return false
  if (typeof value === 'boolean') return value
  throw invalidParams(field, `${field} must be a boolean: send true or false without quotes`)
}

/** @throws RpcError -32602 when it is there and not 1 to 255 visible ASCII characters. */
export function optionalIdempotencyKey(given: Arguments): string | null {
  const field = 'idempotency_key'
  const value = given[field]
  if (value === undefined) return null
  if (isIdempotencyKey(value)) return value
  throw invalidParams(
    field,
    `${field} must be a string of 1 to 255 visible ASCII characters, for example a UUID`,
  )
}

/**
 * @throws RpcError -32602 for field `rows` unless it is an array of 1 to 50,000 objects of moderate
 * size; more rows are HTTP 413.
 */
export async function payrollRows(given: Arguments): Promise<readonly Record<string, unknown>[]> {
  const field = 'rows'
  const { rows } = given
  if (rows === undefined || rows === null) {
    throw invalidParams(field, 'rows is required: send an array of payroll row objects')
  }
  if (!Array.isArray(rows)) throw invalidParams(field, 'rows must be an array of payroll row objects')
  if (rows.length === 0) throw invalidParams(field, 'rows is empty: send at least one payroll row')
  if (rows.length > MAX_ROWS) {
    const message = `rows has ${rows.length} elements: send at most ${MAX_ROWS} per call`
    throw new RpcError(INVALID_PARAMS, message, { field }, 413)
  }
  await inTimeSlices(rows as unknown[], (row, index) => {
    if (!isObject(row)) {
      throw invalidParams(field, `rows[${index}] must be an object, for example {"gross_wages": 1000}`)
    }
    if (isRowTooLarge(row)) {
      throw invalidParams(field, `rows[${index}] is larger than ${MAX_ROW_BYTES / 1024} KiB: shorten it`)
    }
  })
  return rows as Record<string, unknown>[]
}
