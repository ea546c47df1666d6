import type express from 'express'
import { isActiveApiKey } from '../../application/access/agent-scope.ts'
import type { Application } from '../../application/application.ts'
import { OperatorGate } from '../http/bearer.ts'
import { writeCoreError } from '../http/errors.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { createHost, type HostSettings } from '../http/server.ts'
import { credentialRoutes } from './credential-routes.ts'
import { McpEndpoint } from './endpoint.ts'
import { OriginCheck } from './origin.ts'

export interface McpSettings extends Pick<HostSettings, 'onFailure' | 'onAnswer'> {
  /** Bearer token of the credential admin routes. */
  readonly operatorToken: string
  /** `serverInfo.name` of the initialize result. */
  readonly serverName: string
  /** The address that the listener binds. */
  readonly host: string
  /** Base address under which agents reach the tool server; null when it is the listener's own. */
  readonly publicUrl: string | null
  /** Browser origins that may call the tool server besides its own address. */
  readonly allowedOrigins: readonly string[]
  /** Requests per second and credential; 0 switches rate limits off. */
  readonly rateLimitRps: number
}

/** The tool-server host: `POST /mcp` and the credential admin routes. */
export function createMcpApp(app: Application, settings: McpSettings): express.Express {
  const limits = rateLimits(settings.rateLimitRps)
  const { onFailure } = settings
  const endpoint = new McpEndpoint(app, {
    serverName: settings.serverName,
    origins: new OriginCheck(settings.host, settings.publicUrl, settings.allowedOrigins),
    limits,
    onFailure,
  })
  const operator = new OperatorGate(settings.operatorToken, limits.addresses, (key) =>
    isActiveApiKey(app, key),
  )
  return createHost({
    routes: [
      { method: 'POST', path: '/mcp', handle: (request, response) => endpoint.handle(request, response) },
      ...credentialRoutes(app, operator),
    ],
    writeError: writeCoreError,
    newRequestId: () => app.randomness.id(),
    onFailure,
    ...(settings.onAnswer ? { onAnswer: settings.onAnswer } : {}),
  })
}
