import type express from 'express'
import type { Application } from '../../application/application.ts'
import { fileStatus } from '../../application/payroll/file-status.ts'
import { sendJson } from '../http/answers.ts'
import { LARGE_BODY, readBody } from '../http/body.ts'
import { Call } from '../http/calls.ts'
import { HttpError, writeCoreError } from '../http/errors.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { idempotencyKeyOf } from '../http/rejections.ts'
import { createHost, type HostSettings, type Route } from '../http/server.ts'
import { authenticate, requireSignature } from './authentication.ts'
import { answerSync } from './employee-changes.ts'
import { InboundWebhook } from './inbound-webhook.ts'
import { answerReport, parseReport } from './payroll-reports.ts'
import { parseBody, readJsonBytes } from './requests.ts'

export interface CoreSettings extends Pick<HostSettings, 'onFailure' | 'onAnswer'> {
  /** Requests per second and credential; 0 switches rate limits off. */
  readonly rateLimitRps: number
}

/** Both prefixes have the same handlers; new integrations use the first. */
const PREFIXES = ['/api/v1', '/api/v2'] as const

const NO_BODY = Buffer.alloc(0)

/** The core developer API: payroll reports, employee changes, file status, inbound payroll webhook. */
export function createCoreApp(app: Application, settings: CoreSettings): express.Express {
  const { onFailure, onAnswer } = settings
  const limits = rateLimits(settings.rateLimitRps)
  const inbound = new InboundWebhook(app, limits)

  /** A route whose handler knows what it costs its caller. */
  const route = (
    method: Route['method'],
    path: string,
    handle: (call: Call, request: express.Request, response: express.Response) => Promise<void>,
  ): Route => ({
    method,
    path,
    handle: (request, response) => Call.during(limits, (call) => handle(call, request, response)),
  })

  const routes: readonly Route[] = [
    route('POST', '/payroll/reports', async (call, request, response) => {
      const caller = await authenticate(app, limits, call, request)
      const bytes = await readJsonBytes(request, call)
      requireSignature(app, limits, caller, request, bytes)
      const header = idempotencyKeyOf(request.headers)
      const body = await parseBody(bytes, call)
      const { client } = caller
      const sender = {
        source: 'report',
        id: client.client_id,
        tenantId: client.tenant_id,
        environment: client.environment,
        scope: client,
      } as const
      const report = await parseReport(body)
      await answerReport(app, sender, report, body, { header, signature: null }, response)
    }),
    route('POST', '/employees/sync', async (call, request, response) => {
      const caller = await authenticate(app, limits, call, request)
      const bytes = await readJsonBytes(request, call)
      requireSignature(app, limits, caller, request, bytes)
      const key = idempotencyKeyOf(request.headers)
      await answerSync(app, caller.client, await parseBody(bytes, call), key, response)
    }),
    route('GET', '/files/status/:file_id', async (call, request, response) => {
      const caller = await authenticate(app, limits, call, request)
      if (caller.client.request_signing === 'required') {
        const bytes = hasBody(request) ? await readBody(request, LARGE_BODY, call) : NO_BODY
        requireSignature(app, limits, caller, request, bytes)
      }
      const status = await fileStatus(app, caller.client, String(request.params.file_id))
      if (status === null) throw new HttpError(404, 'File not found', 'There is no file with this file_id')
      sendJson(response, 200, status)
    }),
    route('POST', '/webhook/inbound/:connection_id', (call, request, response) =>
      inbound.handle(call, String(request.params.connection_id), request, response),
    ),
  ]

  return createHost({
    routes: PREFIXES.flatMap((prefix) => routes.map((one) => ({ ...one, path: `${prefix}${one.path}` }))),
    addresses: limits.addresses,
    writeError: writeCoreError,
    newRequestId: () => app.randomness.id(),
    onFailure,
    ...(onAnswer ? { onAnswer } : {}),
  })
}

function hasBody(request: express.Request): boolean {
  return request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
}
