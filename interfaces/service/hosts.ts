import type express from 'express'
import type { Application } from '../../application/commands/application.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import type { ServiceSecrets } from '../../infrastructure/installation/data-directory.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'
import type { Metrics } from '../../infrastructure/telemetry/metrics.ts'
import { createCoreApp } from '../core-api/app.ts'
import { Admission } from '../http/admission.ts'
import type { RefusedOperator } from '../http/bearer.ts'
import { rateLimits } from '../http/rate-limit.ts'
import { type Listener, listen, type SharedSettings } from '../http/server.ts'
import { createMcpApp } from '../mcp/app.ts'
import type { OperatorServices } from '../operator-api/host/services.ts'
import { createOperatorApp } from '../operator-api/operator-api.ts'
import { createPaymentsApp } from '../payments-api/app.ts'
import { createPortalApp } from '../portal/app.ts'
import { FailureLog } from './failure-log.ts'

/** A listener could not be bound; the message is one clear line. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
}

export type HostName = keyof Config['ports']

/** Real base addresses by host; hosts that this process does not serve are left out. */
export type Addresses = Readonly<Partial<Record<HostName, string>>>

interface Parts {
  readonly config: Config
  readonly app: Application
  /** What the operator API drives. */
  readonly operator: OperatorServices
  readonly secrets: ServiceSecrets
  readonly logger: Logger
  readonly metrics: Metrics
  /** Real addresses, known as soon as the hosts listen. */
  readonly addresses: Addresses
}

/** The hosts of this process: all of them with the role `api`, else the operator's alone. */
export function createHosts(parts: Parts): ReadonlyMap<HostName, express.Express> {
  const { config, app, operator, secrets, logger, metrics, addresses } = parts
  const { host, rateLimitPerSecond: rateLimitRps } = config
  const { operatorToken } = secrets

  const admission = new Admission({ onRefused: () => metrics.refused() })
  const failures = new FailureLog(logger)
  const common = (name: HostName): SharedSettings => ({
    admission,
    url: () => (name === 'ops' ? null : config.urls[name]) ?? addresses[name] ?? '',
    newRequestId: () => app.randomness.id(),
    onFailure: (error, request) => failures.report(name, request, error),
    onAnswer: (method, route, status, ms, answered) => {
      metrics.request(name, method, route, status, ms)
      if (!config.hasAccessLog) return
      const { id, caller, traceId } = answered()
      logger.info('request', {
        interface: name,
        method,
        route,
        status,
        milliseconds: Math.round(ms * 10) / 10,
        caller_id: caller,
        correlation_id: id,
        trace_id: traceId,
      })
    },
  })
  const onRefusedOperator =
    (name: HostName) =>
    ({ requestId, address, why, operatorId }: RefusedOperator) =>
      logger.warn('operator log-in refused', {
        interface: name,
        request_id: requestId,
        caller: address,
        reason: why,
        operator_id: operatorId,
      })

  const hosts = new Map<HostName, express.Express>()
  if (config.roles.has('api')) {
    hosts.set(
      'mcp',
      createMcpApp(app, {
        ...common('mcp'),
        operatorToken,
        host,
        rateLimitRps,
        serverName: config.serverName,
        publicUrl: config.urls.mcp,
        allowedOrigins: config.allowedOrigins,
        onRefusedOperator: onRefusedOperator('mcp'),
      }),
    )
    hosts.set('core', createCoreApp(app, { ...common('core'), rateLimitRps, publicUrl: config.urls.core }))
    hosts.set(
      'payments',
      createPaymentsApp(app, {
        ...common('payments'),
        rateLimitRps,
        publicUrl: config.urls.payments,
        portalUrl: () => (config.hasPortal ? (config.urls.portal ?? addresses.portal ?? null) : null),
      }),
    )
    if (config.hasPortal) {
      hosts.set(
        'portal',
        createPortalApp(app, {
          ...common('portal'),
          limits: rateLimits(rateLimitRps),
          ownHosts: () => portalHosts(config, addresses),
        }),
      )
    }
  }
  hosts.set(
    'ops',
    createOperatorApp(app, operator, {
      ...common('ops'),
      operatorToken,
      host,
      limits: rateLimits(rateLimitRps),
      probeRanges: config.probeRanges,
      onRefusedOperator: onRefusedOperator('ops'),
    }),
  )
  return hosts
}

/** Hosts under which the service shows hosted pages itself, with their ports. */
export function portalHosts({ urls }: Pick<Config, 'urls'>, { portal }: Addresses): readonly string[] {
  return [urls.portal, portal].flatMap((url) => (url ? [new URL(url).host] : []))
}

/**
 * Binds every host to its port.
 * @param listeners takes each listener as soon as it is bound; the caller closes them, also after a failure.
 * @param addresses takes their addresses.
 * @throws CannotListen
 */
export async function listenOnAll(
  hosts: ReadonlyMap<HostName, express.Express>,
  config: Pick<Config, 'host' | 'ports'>,
  listeners: Listener[],
  addresses: Partial<Record<HostName, string>>,
): Promise<void> {
  for (const [name, app] of hosts) {
    const listener = await listenOrExplain(app, config.host, config.ports[name], name)
    listeners.push(listener)
    addresses[name] = listener.url
  }
}

async function listenOrExplain(
  app: express.Express,
  host: string,
  port: number,
  name: HostName,
): Promise<Listener> {
  try {
    return await listen(app, host, port, { takesStreams: name === 'ops' })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    const setting = `${name.toUpperCase()}_PORT`
    const why = code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be bound (${code})`
    throw new CannotListen(`${setting}: ${host}:${port} ${why}; set another port`)
  }
}
