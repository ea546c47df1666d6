import type express from 'express'
import { type Application, asOfNow } from '../../application/commands/application.ts'
import { descriptionRoutes } from '../endpoints/description-routes.ts'
import { routesOf } from '../endpoints/request-pipeline.ts'
import { OperatorGate, type RefusedOperator } from '../http/bearer.ts'
import { crossOrigin } from '../http/cors.ts'
import { type ErrorWriter, writeCoreError } from '../http/errors.ts'
import { OriginCheck } from '../http/host-check.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { createHost, type SharedSettings } from '../http/server.ts'
import { agentCredentialEndpoints } from './access/agent-credentials.ts'
import { writeRpcRefusal } from './refusals.ts'
import { ToolServer } from './tool-server.ts'

export interface McpSettings extends SharedSettings {
  /** The setting `OPERATOR_TOKEN`. */
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

const PATH = '/mcp'

/** Refusals on the path of the tool server go out as JSON-RPC errors, wherever they were decided. @param url of the host. */
const writingErrors =
  (url: SharedSettings['url']): ErrorWriter =>
  (response, refusal, docUrl) => {
    // a proxy may send the whole address instead of the path
    const isToolServer = /^(?:https?:\/\/[^/?]*)?\/mcp\/?(?:\?|$)/.test(
      (response.req as express.Request).originalUrl,
    )
    if (isToolServer && [403, 429, 503].includes(refusal.status)) writeRpcRefusal(response, refusal, url())
    else writeCoreError(response, refusal, docUrl)
  }

/** The tool-server host: `POST /mcp` and the credential admin routes. */
export function createMcpApp(app: Application, settings: McpSettings): express.Express {
  const { operatorToken, serverName, host, publicUrl, allowedOrigins, rateLimitRps, ...rest } = settings
  const { onRefusedOperator, ...shared } = rest
  const limits = rateLimits(rateLimitRps)
  const toolServer = new ToolServer(app, { ...shared, serverName, limits })
  const gate = new OperatorGate({
    firstToken: operatorToken,
    addresses: limits.addresses,
    onRefused: onRefusedOperator,
  })
  const origins = new OriginCheck(host, publicUrl, allowedOrigins)
  return createHost({
    ...shared,
    routes: [
      { method: 'POST', path: PATH, handle: (request, response) => toolServer.handle(request, response) },
      ...routesOf(agentCredentialEndpoints, () => ({ app: asOfNow(app), gate }), limits),
      ...descriptionRoutes(agentCredentialEndpoints, limits, publicUrl),
    ],
    guards: [{ path: PATH, guard: crossOrigin(origins) }],
    addresses: limits.addresses,
    writeError: writingErrors(shared.url),
  })
}
