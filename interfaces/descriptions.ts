import project from '../package.json' with { type: 'json' }
import { coreEndpoints } from './core-api/app.ts'
import { type OpenApi, openApiOf } from './endpoints/openapi.ts'
import { operatorEndpoints } from './operator-api/endpoints.ts'

/** Endpoints of every API that has some, by the API's name. */
export const APIS = { core: coreEndpoints, operator: operatorEndpoints } as const

/** The documents of all APIs by name, as hosts serve them that have no public address. */
export function descriptions(): Readonly<Record<keyof typeof APIS, OpenApi>> {
  return {
    core: openApiOf(coreEndpoints, project.version),
    operator: openApiOf(operatorEndpoints, project.version),
  }
}
