import type { Endpoint } from '../endpoints/endpoint.ts'
import type { PaymentsHost } from './api.ts'

export const subscriptionEndpoints: readonly Endpoint<PaymentsHost>[] = []
