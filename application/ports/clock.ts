/** The service's one source of time. Virtual clocks stand still between advances. */
export interface Clock {
  readonly kind: 'system' | 'virtual'
  /** Milliseconds since the epoch. */
  now(): number
}
