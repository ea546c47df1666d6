/** The service's one source of ids and random values. */
export interface Randomness {
  /** A new id: 24 lower-case hex characters, roughly ascending in time. */
  id(): string
  /** A new UUID for a command. */
  commandId(): string
  /** `count` random bytes as lower-case hex. */
  hex(count: number): string
}
