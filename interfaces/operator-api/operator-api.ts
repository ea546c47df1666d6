import type express from 'express'
import { isActiveApiKey } from '../../application/access/agent-scope.ts'
import type { Application } from '../../application/application.ts'
import type { AddressRange } from '../../infrastructure/config/config.ts'
import { descriptionRoutes } from '../endpoints/description-routes.ts'
import { routesOf } from '../endpoints/request-pipeline.ts'
import { OperatorGate, type RefusedOperator } from '../http/bearer.ts'
import { writeEnvelopeError } from '../http/errors.ts'
import { OriginCheck, ownNamesOnly } from '../http/host-check.ts'
import { type RateLimits, rateLimits } from '../http/rate-limit.ts'
import { createHost, type HostSettings } from '../http/server.ts'
import { accessRoutes } from './access-routes.ts'
import { auditRoutes } from './audit-routes.ts'
import { machineryRoutes, probeRoutes } from './machinery-routes.ts'
import { partyRoutes } from './party-routes.ts'
import { policyRoutes } from './policy-routes.ts'
import { ProbeAccess } from './probe-access.ts'
import type { OperatorServices } from './services.ts'
import { tenantEndpoints } from './tenants.ts'

export type {
  Health,
  OperatorServices,
  ProjectionOperations,
  WorkOperations,
} from './services.ts'

export interface OperatorSettings extends Pick<HostSettings, 'onFailure' | 'onAnswer'> {
  readonly operatorToken: string
  /** Callers without the token are limited by address; the token itself is not. */
  readonly limits: Pick<RateLimits, 'addresses'>
  /** The address that the listener binds. */
  readonly host: string
  /** Addresses that may read probes and metrics without the token. */
  readonly probeRanges: readonly AddressRange[]
  /** Told of everyone who is refused for the token. */
  readonly onRefusedOperator: (refused: RefusedOperator) => void
}

/** All endpoints of the operator API. */
export const operatorEndpoints = [...tenantEndpoints]

/**
 * The operator API: issues parties, policies and credentials, runs the machinery, and shows auditors
 * everything the log holds. Probes answer known addresses without the token.
 */
export function createOperatorApp(
  app: Application,
  services: OperatorServices,
  settings: OperatorSettings,
): express.Express {
  const { operatorToken, limits, onFailure, onAnswer } = settings
  const gate = new OperatorGate(operatorToken, limits.addresses, {
    isAgentKey: (key) => isActiveApiKey(app, key),
    onRefused: settings.onRefusedOperator,
  })
  const probeAccess = new ProbeAccess(settings.probeRanges, gate, limits.addresses)
  const host = { app, gate }
  return createHost({
    routes: [
      ...routesOf(operatorEndpoints, { app, services, gate }, { ...rateLimits(0), ...limits }),
      ...descriptionRoutes(operatorEndpoints, limits, null),
      ...partyRoutes(host),
      ...policyRoutes(host),
      ...accessRoutes(host),
      ...machineryRoutes(host, services),
      ...auditRoutes(host, services),
      ...probeRoutes(services, probeAccess),
    ],
    guards: [{ path: '/', guard: ownNamesOnly(new OriginCheck(settings.host, null, [])) }],
    addresses: limits.addresses,
    writeError: writeEnvelopeError,
    newRequestId: () => app.randomness.id(),
    onFailure,
    ...(onAnswer ? { onAnswer } : {}),
  })
}
