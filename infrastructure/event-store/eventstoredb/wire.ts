import type { StoredEvent } from '../../../application/ports/event-log.ts'

/**
 * The messages that there is one of per event, in protobuf's encoding. The client's generated classes would take
 * several times as long, and hand on neither text of an event as it is.
 */

const STREAM_NAME = 3
const JSON_CONTENT = field(2, Buffer.from('application/json'))
const CONTENT_TYPE = entry(Buffer.from('content-type'), JSON_CONTENT)
const TYPE_KEY = Buffer.from('type')
const EMPTY = Buffer.alloc(0)
const NO_STREAM = field(3, EMPTY)
const FINAL = Buffer.from([4 << 3, 1])

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
  const at = revision < 0 ? NO_STREAM : number(2, revision)
  const options = [field(1, field(STREAM_NAME, Buffer.from(stream))), at]
  const parts = [field(1, field(1, number(2, id))), ...nested(2, options)]
  for (const event of events) {
    parts.push(
      ...nested(3, [
        field(1, field(2, Buffer.from(event.eventId, 'latin1'))),
        entry(TYPE_KEY, field(2, Buffer.from(event.type))),
        CONTENT_TYPE,
        ...nested(3, [Buffer.from(event.metadata)]),
        ...nested(4, [Buffer.from(event.data)]),
      ]),
    )
  }
  parts.push(FINAL)
  return Buffer.concat(parts)
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

function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  while (rest > 127) {
    bytes.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return bytes
}

function number(tag: number, value: number): Buffer {
  return Buffer.from([tag << 3, ...varint(value)])
}

function field(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(tag << 3) | 2, ...varint(content.length)]), content])
}

/** A field whose content is in parts. */
function nested(tag: number, parts: readonly Buffer[]): Buffer[] {
  let length = 0
  for (const part of parts) length += part.length
  return [Buffer.from([(tag << 3) | 2, ...varint(length)]), ...parts]
}

/** An entry of the properties of an event. */
function entry(key: Buffer, value: Buffer): Buffer {
  return field(2, Buffer.concat([field(1, key), value]))
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
