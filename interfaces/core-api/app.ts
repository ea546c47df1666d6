import type express from 'express'
import { type Application, asOfNow } from '../../application/commands/application.ts'
import { descriptionRoutes } from '../endpoints/description-routes.ts'
import { partyEndpoints } from '../endpoints/parties.ts'
import { routesOf } from '../endpoints/request-pipeline.ts'
import { writeCoreError } from '../http/errors.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { createHost, type SharedSettings } from '../http/server.ts'
import { endpoint } from './host/api.ts'
import { syncEmployeesEndpoint } from './parties/employee-sync.ts'
import { getFileStatus } from './payroll/file-status.ts'
import { inboundWebhookEndpoint, reportPayrollEndpoint } from './payroll/payroll-reports.ts'

export interface CoreSettings extends SharedSettings {
  /** Requests per second and credential; 0 switches rate limits off. */
  readonly rateLimitRps: number
  /** Base address under which partners reach the host; null when it is the listener's own. */
  readonly publicUrl: string | null
}

/** All endpoints of the core API. */
export const coreEndpoints = [
  reportPayrollEndpoint,
  syncEmployeesEndpoint,
  getFileStatus,
  inboundWebhookEndpoint,
  ...partyEndpoints(endpoint, 'not_found'),
]

/** The core developer API: payroll reports, employee changes, file status, inbound payroll webhook, parties. */
export function createCoreApp(app: Application, settings: CoreSettings): express.Express {
  const { rateLimitRps, publicUrl, ...shared } = settings
  const limits = rateLimits(rateLimitRps)
  return createHost({
    ...shared,
    routes: [
      ...routesOf(coreEndpoints, () => ({ app: asOfNow(app), limits }), limits),
      ...descriptionRoutes(coreEndpoints, limits, publicUrl),
    ],
    addresses: limits.addresses,
    credentialHeader: 'x-client-id',
    writeError: writeCoreError,
  })
}
