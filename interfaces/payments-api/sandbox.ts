import { debitSandboxEndpoints } from './banking/debits/ach-debits.ts'
import { sandboxLinkEndpoints } from './payments/links/sandbox-links.ts'
import { subscriptionSandboxEndpoints } from './payments/subscriptions/sandbox-subscriptions.ts'

/** What only the outside world can do, simulated by keys of the sandbox. */
export const sandboxEndpoints = [
  ...sandboxLinkEndpoints,
  ...subscriptionSandboxEndpoints,
  ...debitSandboxEndpoints,
]
