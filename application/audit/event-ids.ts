/** Bytes of an event's id, as a tile of the tree has it beside the event's leaf. */
export const ID_BYTES = 16

/** The bytes of an event's id. */
export function idBytes(eventId: string): Buffer {
  return Buffer.from(eventId.replaceAll('-', ''), 'hex')
}

/** The id at a place of ids that stand one after another. */
export function idAt(eventIds: Buffer, place: number): string {
  const hex = eventIds.subarray(place * ID_BYTES, (place + 1) * ID_BYTES).toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
