import type { Express } from 'express'
import { writeEnvelopeError } from '../http/errors.ts'
import { createHost, type HostSettings } from '../http/server.ts'

/**
 * The payments host. It has its own address from the start, because the hosts share path names with
 * different routes; it serves no route yet, and says so in the payment API's own error body.
 */
export function createPaymentsApp(settings: Omit<HostSettings, 'routes' | 'writeError'>): Express {
  return createHost({ ...settings, routes: [], writeError: writeEnvelopeError })
}
