import type express from 'express'
import { type Application, asOfNow } from '../../application/commands/application.ts'
import type { AddressRange } from '../../infrastructure/config/config.ts'
import { descriptionRoutes } from '../endpoints/description-routes.ts'
import { routesOf } from '../endpoints/request-pipeline.ts'
import { OperatorGate, type RefusedOperator } from '../http/bearer.ts'
import { writeEnvelopeError } from '../http/errors.ts'
import { OriginCheck, ownNamesOnly } from '../http/host-check.ts'
import { type RateLimits, rateLimits } from '../http/rate-limit.ts'
import { createHost, type SharedSettings } from '../http/server.ts'
import { consoleErrors, createConsole } from './console/routes.ts'
import { operatorEndpoints } from './endpoints.ts'
import type { OperatorServices } from './host/services.ts'
import { ProbeAccess } from './operations/probe-access.ts'
import { probeRoutes } from './operations/probes.ts'

export interface OperatorSettings extends SharedSettings {
  /** The setting `OPERATOR_TOKEN`. */
  readonly operatorToken: string
  /** Callers without a token of an operator are limited by address; operators are not. */
  readonly limits: Pick<RateLimits, 'addresses'>
  /** The address that the listener binds. */
  readonly host: string
  /** Addresses that may read probes and metrics without the token. */
  readonly probeRanges: readonly AddressRange[]
  /** Called for every caller that is refused for its token. */
  readonly onRefusedOperator: (refused: RefusedOperator) => void
}

/**
 * The operator API: issues parties, policies and credentials, runs the machinery, and shows auditors
 * everything the log holds. Probes answer known addresses without the token.
 */
export function createOperatorApp(
  app: Application,
  services: OperatorServices,
  settings: OperatorSettings,
): express.Express {
  const { operatorToken, limits, host: boundHost, probeRanges, onRefusedOperator, ...shared } = settings
  const gate = new OperatorGate({
    firstToken: operatorToken,
    addresses: limits.addresses,
    onRefused: onRefusedOperator,
  })
  const probeAccess = new ProbeAccess(probeRanges, app, gate, limits.addresses)
  const hostOf = () => ({ app: asOfNow(app), services, gate })
  const ofHost = { ...rateLimits(0), ...limits }
  const webConsole = createConsole({ endpoints: operatorEndpoints, hostOf, gate, limits: ofHost })
  return createHost({
    ...shared,
    routes: [
      ...routesOf(operatorEndpoints, hostOf, ofHost),
      ...webConsole.routes,
      ...descriptionRoutes(operatorEndpoints, limits, null),
      ...probeRoutes(services, probeAccess),
    ],
    guards: [
      { path: '/console', guard: webConsole.guard },
      { path: '/', guard: ownNamesOnly(new OriginCheck(boundHost, null, [])) },
    ],
    addresses: limits.addresses,
    writeError: consoleErrors(writeEnvelopeError),
  })
}
