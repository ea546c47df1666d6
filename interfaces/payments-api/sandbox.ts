import type { Endpoint } from '../endpoints/endpoint.ts'
import type { PaymentsHost } from './api.ts'
import { subscriptionSandboxEndpoints } from './sandbox-subscriptions.ts'

export const sandboxEndpoints: readonly Endpoint<PaymentsHost>[] = [...subscriptionSandboxEndpoints]
