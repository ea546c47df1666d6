let scale = 1

/**
 * Multiplies all technical deadlines of this process, whatever was opened before; for machines that are slower than the
 * product expects. What pages and protocols promise, leases, and what answers early on purpose stay as they are.
 */
export function scaleTechnicalDeadlines(factor: number): void {
  scale = factor
}

/** How long a part that is well may take on this machine, in milliseconds. */
export function technicalDeadline(ms: number): number {
  return Math.ceil(ms * scale)
}
