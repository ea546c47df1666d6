/**
 * PostgreSQL's binary wire format of one-dimensional arrays. One array per column makes one prepared statement fit any
 * number of rows, and binary spares the escaping that array literals need.
 */

const HEADER_BYTES = 20
const OID = { int4: 23, text: 25, json: 114, uuid: 2950 } as const

/** An `int4[]`. */
export function int4Array(values: readonly number[]): Buffer {
  const buffer = start(OID.int4, values.length, values.length * 8)
  let at = HEADER_BYTES
  for (const value of values) {
    buffer.writeInt32BE(4, at)
    buffer.writeInt32BE(value, at + 4)
    at += 8
  }
  return buffer
}

/** A `uuid[]`. @param values in the form 8-4-4-4-12. */
export function uuidArray(values: readonly string[]): Buffer {
  const buffer = start(OID.uuid, values.length, values.length * 20)
  let at = HEADER_BYTES
  for (const value of values) {
    buffer.writeInt32BE(16, at)
    buffer.write(value.replaceAll('-', ''), at + 4, 'hex')
    at += 20
  }
  return buffer
}

/** A `text[]` or `json[]`. */
export function textArray(values: readonly string[], type: 'text' | 'json' = 'text'): Buffer {
  const lengths = values.map((value) => Buffer.byteLength(value))
  const bytes = lengths.reduce((sum, length) => sum + length + 4, 0)
  const buffer = start(OID[type], values.length, bytes)
  let at = HEADER_BYTES
  for (const [index, value] of values.entries()) {
    const length = lengths[index]!
    buffer.writeInt32BE(length, at)
    buffer.write(value, at + 4, length, 'utf8')
    at += 4 + length
  }
  return buffer
}

function start(elementType: number, count: number, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + bytes)
  // dimensions, no nulls, element type, length, lower bound
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(0, 4)
  buffer.writeInt32BE(elementType, 8)
  buffer.writeInt32BE(count, 12)
  buffer.writeInt32BE(1, 16)
  return buffer
}
