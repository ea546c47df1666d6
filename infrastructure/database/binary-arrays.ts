/**
 * PostgreSQL's binary wire format of one-dimensional arrays. One array per column makes one prepared statement fit any
 * number of rows, and binary spares the escaping that array literals need.
 */

const HEADER_BYTES = 20
const FIRST_BYTES = 4 * 1024
const OID = { int4: 23, text: 25, json: 114, uuid: 2950 } as const

/** An array that grows value by value, so that it is encoded by the time it is complete. */
export class BinaryArray {
  readonly #type: keyof typeof OID
  #buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #end = HEADER_BYTES
  #count = 0
  #hasNulls = false

  constructor(type: keyof typeof OID) {
    this.#type = type
  }

  /** For `int4`. */
  addInteger(value: number): void {
    const at = this.#grow(4)
    this.#buffer.writeInt32BE(value, at)
    this.#close(at, 4)
  }

  /** For `uuid`. @param value in the form 8-4-4-4-12. */
  addUuid(value: string): void {
    const at = this.#grow(16)
    this.#buffer.write(value.replaceAll('-', ''), at, 'hex')
    this.#close(at, 16)
  }

  /** For `text` and `json`. */
  addText(value: string): void {
    // a code unit of UTF-16 takes three bytes at the most
    const at = this.#grow(3 * value.length)
    this.#close(at, this.#buffer.write(value, at, 'utf8'))
  }

  /** For any type. */
  addNull(): void {
    this.#close(this.#grow(0), 0)
    this.#buffer.writeInt32BE(-1, this.#end - 4)
    this.#hasNulls = true
  }

  /** What is sent. Nothing is added any more. */
  encoded(): Buffer {
    // dimensions, whether there are nulls, element type, length, lower bound
    this.#buffer.writeInt32BE(1, 0)
    this.#buffer.writeInt32BE(this.#hasNulls ? 1 : 0, 4)
    this.#buffer.writeInt32BE(OID[this.#type], 8)
    this.#buffer.writeInt32BE(this.#count, 12)
    this.#buffer.writeInt32BE(1, 16)
    return this.#buffer.subarray(0, this.#end)
  }

  /** Makes room for a value of so many bytes. @returns where it begins, behind its length. */
  #grow(bytes: number): number {
    const needed = this.#end + 4 + bytes
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length))
      this.#buffer.copy(larger, 0, 0, this.#end)
      this.#buffer = larger
    }
    return this.#end + 4
  }

  #close(at: number, bytes: number): void {
    this.#buffer.writeInt32BE(bytes, at - 4)
    this.#end = at + bytes
    this.#count += 1
  }
}

/** A `text[]`. */
export function textArray(values: readonly string[]): Buffer {
  const array = new BinaryArray('text')
  for (const value of values) array.addText(value)
  return array.encoded()
}

/** An `int4[]`. */
export function integerArray(values: readonly number[]): Buffer {
  const array = new BinaryArray('int4')
  for (const value of values) array.addInteger(value)
  return array.encoded()
}
