import type express from 'express'
import { isActiveApiKey } from '../../application/access/agent-scope.ts'
import type { Application } from '../../application/application.ts'
import { OperatorGate, type RefusedOperator } from '../http/bearer.ts'
import { crossOrigin } from '../http/cors.ts'
import { type ErrorWriter, writeCoreError } from '../http/errors.ts'
import { OriginCheck } from '../http/host-check.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { createHost, type HostSettings } from '../http/server.ts'
import { credentialRoutes } from './credential-routes.ts'
import { McpEndpoint } from './endpoint.ts'
import { writeRpcError } from './json-rpc.ts'

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
  /** Told of every refused caller of the credential admin routes. */
  readonly onRefusedOperator: (refused: RefusedOperator) => void
}

const ENDPOINT = '/mcp'

/** Refusals that concern the endpoint go out as JSON-RPC errors, wherever they were decided. */
const writeError: ErrorWriter = (response, status, error, message) => {
  // a proxy may send the whole address instead of the path
  const isEndpoint = /^(?:https?:\/\/[^/?]*)?\/mcp\/?(?:\?|$)/.test(
    (response.req as express.Request).originalUrl,
  )
  if (isEndpoint && [403, 429, 503].includes(status)) writeRpcError(response, status, message)
  else writeCoreError(response, status, error, message)
}

/** The tool-server host: `POST /mcp` and the credential admin routes. */
export function createMcpApp(app: Application, settings: McpSettings): express.Express {
  const limits = rateLimits(settings.rateLimitRps)
  const { onFailure } = settings
  const endpoint = new McpEndpoint(app, {
    serverName: settings.serverName,
    limits,
    onFailure,
  })
  const operator = new OperatorGate(settings.operatorToken, limits.addresses, {
    isAgentKey: (key) => isActiveApiKey(app, key),
    onRefused: settings.onRefusedOperator,
  })
  const origins = new OriginCheck(settings.host, settings.publicUrl, settings.allowedOrigins)
  return createHost({
    routes: [
      { method: 'POST', path: ENDPOINT, handle: (request, response) => endpoint.handle(request, response) },
      ...credentialRoutes(app, operator),
    ],
    guards: [{ path: ENDPOINT, guard: crossOrigin(origins) }],
    addresses: limits.addresses,
    writeError,
    newRequestId: () => app.randomness.id(),
    onFailure,
    ...(settings.onAnswer ? { onAnswer: settings.onAnswer } : {}),
  })
}
