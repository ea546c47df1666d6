import type express from 'express'
import type { Application } from '../../application/application.ts'
import { routesOf } from '../endpoints/request-pipeline.ts'
import { writeCoreError } from '../http/errors.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { createHost, type SharedSettings } from '../http/server.ts'
import { syncEmployeesEndpoint } from './employee-sync.ts'
import { getFileStatus } from './file-status.ts'
import { inboundWebhookEndpoint, reportPayrollEndpoint } from './payroll-reports.ts'

export interface CoreSettings extends SharedSettings {
  /** Requests per second and credential; 0 switches rate limits off. */
  readonly rateLimitRps: number
}

/** All endpoints of the core API. */
export const coreEndpoints = [
  reportPayrollEndpoint,
  syncEmployeesEndpoint,
  getFileStatus,
  inboundWebhookEndpoint,
]

/** The core developer API: payroll reports, employee changes, file status, inbound payroll webhook. */
export function createCoreApp(app: Application, { rateLimitRps, ...shared }: CoreSettings): express.Express {
  const limits = rateLimits(rateLimitRps)
  return createHost({
    ...shared,
    routes: routesOf(coreEndpoints, { app, limits }, limits),
    addresses: limits.addresses,
    credentialHeader: 'x-client-id',
    writeError: writeCoreError,
  })
}
