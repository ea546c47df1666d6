/** The service's one source of time. Virtual clocks stand still between advances. */
export interface Clock {
  readonly kind: 'system' | 'virtual'
  /** Milliseconds since the epoch. */
  now(): number
}

/** A clock that stands still until it is moved; the aggregate `virtualClock` holds its time. */
export interface MovableClock extends Clock {
  readonly kind: 'virtual'
  /** Shows a time that the log has already; an earlier one than shown changes nothing. */
  moveTo(epochMs: number): void
}

export function isMovable(clock: Clock): clock is MovableClock {
  return clock.kind === 'virtual'
}
