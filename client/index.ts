import type { ClientOptions } from './calls.ts'
import { type Client, clientOf } from './client.ts'
import { type operations as CoreOperations, coreOperations } from './core-api.ts'

export type { CallOptions, ClientOptions, Try } from './calls.ts'
export type { Client, ItemOf, RequestOf, ResultOf } from './client.ts'
export type { components, operations } from './core-api.ts'
export { ApiError, NoAnswerError } from './errors.ts'

/** A client of the core API. */
export type CoreClient = Client<CoreOperations>

/**
 * A client of the core API for one partner's credentials. It holds no connection and no state: one serves a whole
 * program.
 * @throws TypeError for an address that is none.
 */
export function createClient(options: ClientOptions): CoreClient {
  return clientOf<CoreOperations>(coreOperations, options)
}
