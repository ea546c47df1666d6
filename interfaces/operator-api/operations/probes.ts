import { sendBytes, sendJson } from '../../http/answers.ts'
import type { Route } from '../../http/server.ts'
import type { Health, OperatorServices } from '../host/services.ts'
import type { ProbeAccess } from './probe-access.ts'

/** Routes for probes, outside the prefix; without a token where `access` lets the address pass. */
export function probeRoutes(services: OperatorServices, access: ProbeAccess): readonly Route[] {
  const probe = (path: string, look: () => Health | Promise<Health>): Route => ({
    method: 'GET',
    path,
    isProbe: true,
    async handle(request, response) {
      await access.require(request, response)
      const health = await look()
      sendJson(response, health.ok ? 200 : 503, health)
    },
  })
  return [
    probe('/healthz', () => services.health()),
    probe('/readyz', () => services.readiness()),
    {
      method: 'GET',
      path: '/metrics',
      isProbe: true,
      async handle(request, response) {
        await access.require(request, response)
        const { contentType, text } = await services.metrics()
        sendBytes(response, 200, contentType, Buffer.from(text))
      },
    },
  ]
}
