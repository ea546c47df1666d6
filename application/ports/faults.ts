/** Where faults can be injected, and how; only with the virtual clock. */
export const FAULT_POINTS = [
  'card-processor',
  'bank-link',
  'bank-rail',
  'mail',
  'text',
  'financing',
  'pipeline',
  'intake',
] as const
export type FaultPoint = (typeof FAULT_POINTS)[number]
export type FaultMode = 'unreachable' | 'decline' | 'timeout' | 'hold'

/**
 * Faults that operators injected, for all processes together: each use is taken once, and a hold
 * that was set or cleared counts everywhere as soon as that is answered. Work that was held is due when its hold is
 * cleared.
 */
export interface Faults {
  /** Sets what the next `times` uses of a point run into; 0 clears the point. */
  inject(point: FaultPoint, mode: FaultMode, times: number): Promise<void>
  /** Takes one use of a fault at a point, if one of the given modes is set there. */
  take(point: FaultPoint, modes: readonly FaultMode[]): Promise<FaultMode | null>
  /** True while a hold is set at the point. */
  holding(point: FaultPoint): Promise<boolean>
}

/** Where none can be injected. */
export const NO_FAULTS: Faults = {
  inject: () => Promise.reject(new Error('Faults are injected only with CLOCK=virtual')),
  take: async () => null,
  holding: async () => false,
}
