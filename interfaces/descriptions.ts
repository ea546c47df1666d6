import project from '../package.json' with { type: 'json' }
import { coreEndpoints } from './core-api/app.ts'
import { type AsyncApi, asyncApi } from './endpoints/asyncapi.ts'
import { type OpenApi, openApiOf } from './endpoints/openapi.ts'
import { operatorEndpoints } from './operator-api/endpoints.ts'
import { paymentsEndpoints } from './payments-api/app.ts'

/** Endpoints of every API that has some, by the API's name. */
export const APIS = { core: coreEndpoints, operator: operatorEndpoints, payments: paymentsEndpoints } as const

/** The documents of all APIs by name, as hosts serve them that have no public address. */
export function descriptions(): Readonly<Record<keyof typeof APIS, OpenApi>> {
  return {
    core: openApiOf(coreEndpoints, project.version),
    operator: openApiOf(operatorEndpoints, project.version),
    payments: openApiOf(paymentsEndpoints, project.version),
  }
}

/** What partners and other systems are sent, as the payments host serves it. */
export function eventDescription(): AsyncApi {
  return asyncApi(project.version)
}
