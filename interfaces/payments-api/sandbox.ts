import { debitSandboxEndpoints } from './ach-debits.ts'
import { sandboxLinkEndpoints } from './sandbox-links.ts'
import { subscriptionSandboxEndpoints } from './sandbox-subscriptions.ts'

/** What only the outside world can do, played by keys of the sandbox. */
export const sandboxEndpoints = [
  ...sandboxLinkEndpoints,
  ...subscriptionSandboxEndpoints,
  ...debitSandboxEndpoints,
]
