import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import type { StoredEvent } from '../../../application/ports/event-log.ts'

type ReadEvent = ReadResp.ReadEvent

/** An event as the server sent it; its texts are turned into strings when asked for. */
export class RecordedEvent {
  readonly position: bigint
  readonly stream: string
  readonly revision: number
  readonly eventId: string
  readonly #event: ReadResp.ReadEvent.RecordedEvent

  constructor(read: ReadEvent) {
    const event = read.getEvent()!
    this.#event = event
    this.position = BigInt(event.getCommitPosition())
    this.stream = text(event.getStreamIdentifier()!.getStreamName_asU8())
    this.revision = Number(event.getStreamRevision())
    this.eventId = event.getId()!.getString()
  }

  get type(): string {
    return this.#event.getMetadataMap().get('type') ?? ''
  }

  get data(): string {
    return text(this.#event.getData_asU8())
  }

  get dataBytes(): number {
    return this.#event.getData_asU8().length
  }

  get metadata(): string {
    return text(this.#event.getCustomMetadata_asU8())
  }

  stored(): StoredEvent {
    const { position, stream, revision, eventId, type, data, metadata } = this
    return { position, stream, revision, eventId, type, data, metadata }
  }
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}
