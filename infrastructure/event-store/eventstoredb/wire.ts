import type { StoredEvent } from '../../../application/ports/event-log.ts'

/**
 * The messages that there is one of per event, in protobuf's encoding. The client's generated classes would take
 * several times as long, and hand on neither text of an event as it is.
 */

const STREAM_NAME = 3
const EMPTY = Buffer.alloc(0)

/** An event as it is sent: texts as they are to be stored. */
export interface EventToSend {
  readonly eventId: string
  readonly type: string
  readonly data: string
  readonly metadata: string
}

/**
 * A request to append events at exactly a revision.
 * @param id number of the request, which the answer carries.
 * @param revision of the event before them, -1 for none.
 */
export function encodeAppend(
  id: number,
  stream: string,
  revision: number,
  events: readonly EventToSend[],
): Buffer {
  const streamBytes = Buffer.byteLength(stream)
  const correlation = 1 + sizeOfVarint(id)
  const optionsBytes =
    nestedSize(nestedSize(streamBytes)) + (revision < 0 ? nestedSize(0) : 1 + sizeOfVarint(revision))
  const sizes = events.map(sizesOf)
  let total = nestedSize(nestedSize(correlation)) + nestedSize(optionsBytes) + FINAL.length
  for (const { message } of sizes) total += nestedSize(message)

  const to = new Writer(total)
  to.nested(1, nestedSize(correlation))
  to.nested(1, correlation)
  to.number(2, id)
  to.nested(2, optionsBytes)
  to.nested(1, nestedSize(streamBytes))
  to.text(STREAM_NAME, stream, streamBytes)
  if (revision < 0) to.nested(3, 0)
  else to.number(2, revision)
  for (let n = 0; n < events.length; n += 1) {
    const { eventId, type, metadata, data } = events[n]!
    const size = sizes[n]!
    to.nested(3, size.message)
    to.nested(1, nestedSize(eventId.length))
    to.text(2, eventId, eventId.length)
    to.nested(2, TYPE_KEY.length + nestedSize(size.type))
    to.copy(TYPE_KEY)
    to.text(2, type, size.type)
    to.copy(CONTENT_TYPE)
    to.text(3, metadata, size.metadata)
    to.text(4, data, size.data)
  }
  to.copy(FINAL)
  return to.bytes
}

/** Bytes of an event's texts, and of the message that carries them. */
function sizesOf({ eventId, type, metadata, data }: EventToSend) {
  const texts = {
    type: Buffer.byteLength(type),
    metadata: Buffer.byteLength(metadata),
    data: Buffer.byteLength(data),
  }
  const message =
    nestedSize(nestedSize(eventId.length)) +
    nestedSize(TYPE_KEY.length + nestedSize(texts.type)) +
    CONTENT_TYPE.length +
    nestedSize(texts.metadata) +
    nestedSize(texts.data)
  return { ...texts, message }
}

/** The answer to an append; one that failed is left to be read in full. */
export interface AppendAnswer {
  readonly id: number
  readonly success: { readonly revision: number; readonly position: bigint } | null
  readonly bytes: Buffer
}

export function decodeAppendAnswer(bytes: Buffer): AppendAnswer {
  let id = 0
  let success: AppendAnswer['success'] = null
  const reader = new Reader(bytes)
  while (reader.next()) {
    if (reader.field === 1) id = correlationOf(reader.message())
    else if (reader.field === 3) success = successOf(reader.message())
    else reader.skip()
  }
  return { id, success, bytes }
}

function correlationOf(uuid: Reader): number {
  let id = 0
  while (uuid.next()) {
    if (uuid.field !== 1) {
      uuid.skip()
      continue
    }
    const structured = uuid.message()
    while (structured.next()) {
      const bits = structured.varint()
      if (structured.field === 2) id = bits
    }
  }
  return id
}

function successOf(message: Reader): { revision: number; position: bigint } {
  let revision = 0
  let position = 0
  while (message.next()) {
    if (message.field === 1) revision = message.varint()
    else if (message.field === 3) {
      const place = message.message()
      while (place.next()) {
        const value = place.varint()
        if (place.field === 1) position = value
      }
    } else message.skip()
  }
  return { revision, position: BigInt(position) }
}

/** What the server sends to a reader. */
export type ReadAnswer =
  | RecordedEvent
  | { readonly kind: 'checkpoint'; readonly position: bigint }
  | { readonly kind: 'caught up' | 'no stream' | 'other' }

export function decodeReadAnswer(bytes: Buffer): ReadAnswer {
  const reader = new Reader(bytes)
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        return readEvent(reader.message())
      case 3:
        return { kind: 'checkpoint', position: checkpointOf(reader.message()) }
      case 4:
        return { kind: 'no stream' }
      case 8:
        return { kind: 'caught up' }
      default:
        reader.skip()
    }
  }
  return { kind: 'other' }
}

function checkpointOf(message: Reader): bigint {
  let commit = 0
  while (message.next()) {
    const value = message.varint()
    if (message.field === 1) commit = value
  }
  return BigInt(commit)
}

function readEvent(message: Reader): ReadAnswer {
  while (message.next()) {
    if (message.field === 1) return new RecordedEvent(message.message())
    message.skip()
  }
  return { kind: 'other' }
}

/** An event as the server sent it; its texts are turned into strings when asked for. */
export class RecordedEvent {
  readonly kind = 'event'
  readonly position: bigint = 0n
  readonly stream: string = ''
  readonly revision: number = 0
  readonly eventId: string = ''
  readonly type: string = ''
  readonly #metadata: Buffer = EMPTY
  readonly #data: Buffer = EMPTY

  constructor(message: Reader) {
    while (message.next()) {
      switch (message.field) {
        case 1:
          this.eventId = message.message().only(2).toString('latin1')
          break
        case 2:
          this.stream = message.message().only(STREAM_NAME).toString('utf8')
          break
        case 3:
          this.revision = message.varint()
          break
        case 5:
          this.position = BigInt(message.varint())
          break
        case 6: {
          const bytes = message.bytes()
          // an entry of the map: its key, and its value
          if (bytes[1] === 4 && bytes.toString('latin1', 2, 6) === 'type') {
            this.type = new Reader(bytes).only(2).toString('utf8')
          }
          break
        }
        case 7:
          this.#metadata = message.bytes()
          break
        case 8:
          this.#data = message.bytes()
          break
        default:
          message.skip()
      }
    }
  }

  get data(): string {
    return this.#data.toString('utf8')
  }

  get dataBytes(): number {
    return this.#data.length
  }

  get metadata(): string {
    return this.#metadata.toString('utf8')
  }
}

/** The event as the port has it. */
export function storedEvent(event: RecordedEvent): StoredEvent {
  const { position, stream, revision, eventId, type, data, metadata } = event
  return { position, stream, revision, eventId, type, data, metadata }
}

// ---- protobuf

function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) size += 1
  return size
}

/** Size of a field with a content of so many bytes. */
function nestedSize(content: number): number {
  return 1 + sizeOfVarint(content) + content
}

/** Writes fields one after the other into a message whose size is known. */
class Writer {
  readonly bytes: Buffer
  #at = 0

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size)
  }

  number(field: number, value: number): void {
    this.#byte(field << 3)
    this.#varint(value)
  }

  /** Begins a field whose content follows. */
  nested(field: number, size: number): void {
    this.#byte((field << 3) | 2)
    this.#varint(size)
  }

  text(field: number, text: string, size: number): void {
    this.nested(field, size)
    this.#at += this.bytes.write(text, this.#at)
  }

  copy(fields: Buffer): void {
    this.#at += fields.copy(this.bytes, this.#at)
  }

  #byte(value: number): void {
    this.bytes[this.#at] = value
    this.#at += 1
  }

  #varint(value: number): void {
    let rest = value
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#byte((rest % 128) + 128)
    this.#byte(rest)
  }
}

const TYPE_KEY = textField(1, 'type')
/** The entry of an event's properties that says what its texts are. */
const CONTENT_TYPE = (() => {
  const key = textField(1, 'content-type')
  const value = textField(2, 'application/json')
  const entry = new Writer(nestedSize(key.length + value.length))
  entry.nested(2, key.length + value.length)
  entry.copy(key)
  entry.copy(value)
  return entry.bytes
})()
/** Says that no more events follow. */
const FINAL = Buffer.from([4 << 3, 1])

function textField(field: number, text: string): Buffer {
  const size = Buffer.byteLength(text)
  const writer = new Writer(nestedSize(size))
  writer.text(field, text, size)
  return writer.bytes
}

/** Walks over the fields of a message. */
class Reader {
  field = 0
  #wireType = 0
  readonly #bytes: Buffer
  #at: number
  readonly #end: number

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  /** Goes to the next field. */
  next(): boolean {
    if (this.#at >= this.#end) return false
    const tag = this.varint()
    this.field = tag >>> 3
    this.#wireType = tag & 7
    return true
  }

  /** An unsigned number; exact to 2^53. */
  varint(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const byte = this.#bytes[this.#at]
      if (byte === undefined) throw new RangeError('a message of the server ends in the middle')
      this.#at += 1
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
  }

  bytes(): Buffer {
    const length = this.varint()
    const start = this.#at
    this.#at += length
    return this.#bytes.subarray(start, this.#at)
  }

  message(): Reader {
    const length = this.varint()
    const start = this.#at
    this.#at += length
    return new Reader(this.#bytes, start, this.#at)
  }

  /** The content of one field. */
  only(field: number): Buffer {
    while (this.next()) {
      if (this.field === field) return this.bytes()
      this.skip()
    }
    return EMPTY
  }

  skip(): void {
    if (this.#wireType === 0) this.varint()
    else if (this.#wireType === 2) this.message()
    else this.#at += this.#wireType === 1 ? 8 : 4
  }
}
