import type { Environment } from '../../domain/kernel/ids.ts'
import type { BankFiles } from '../ports/bank-files.ts'
import type { BankLink } from '../ports/bank-link.ts'
import type { BankRail } from '../ports/bank-rail.ts'
import type { CardProcessor } from '../ports/card-processor.ts'
import type { Clock } from '../ports/clock.ts'
import type { EventLog } from '../ports/event-log.ts'
import type { Faults } from '../ports/faults.ts'
import type { FinancingProvider } from '../ports/financing-provider.ts'
import type { LastUsed } from '../ports/last-used.ts'
import type { Messages } from '../ports/messages.ts'
import type { OutsideWeb } from '../ports/outside-web.ts'
import type { PersonalData, SecretVault } from '../ports/personal-data.ts'
import type { Randomness } from '../ports/randomness.ts'
import type { ReadDatabase } from '../ports/read-database.ts'
import type { ReadModels } from '../ports/read-models.ts'
import type { WebhookDeliveries, WebhookSender } from '../ports/webhooks.ts'
import type { CommandHandler } from './command-handler.ts'
import type { EventRegistry } from './event-registry.ts'

/** Everything that use cases work with; the composition root fills it once. */
export interface Application {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly commands: CommandHandler
  readonly clock: Clock
  readonly randomness: Randomness
  readonly personalData: PersonalData
  readonly vault: SecretVault
  readonly read: ReadDatabase
  readonly readModels: ReadModels
  readonly lastUsed: LastUsed
  readonly faults: Faults
  /** Card processors of what is new: what a sandbox key asks for never reaches the real one. */
  readonly processors: Readonly<Record<Environment, CardProcessor>>
  /** Others that can still be asked about what is there: live links and subscriptions of before a change. */
  readonly formerProcessors: readonly CardProcessor[]
  /** What links bank accounts: what a sandbox key asks for never reaches the real one. */
  readonly bankLinks: Readonly<Record<Environment, BankLink>>
  /** What moves bank debits: what a sandbox key asks for never reaches a bank. */
  readonly bankRails: Readonly<Record<Environment, BankRail>>
  /** What the rail works with that writes files for a bank; null where none does. */
  readonly bankFiles: BankFiles | null
  /** Debits whose source was accepted earlier are not collected; epoch milliseconds. */
  readonly forwardCutoff: number
  /** The financing test path never leaves the service's own simulator. */
  readonly financing: FinancingProvider
  readonly messages: Messages
  readonly outsideWeb: OutsideWeb
  readonly webhooks: { readonly sender: WebhookSender; readonly deliveries: WebhookDeliveries }
}

/** The same for one request, see {@link CommandHandler.asOfNow}. */
export function asOfNow(app: Application): Application {
  return { ...app, commands: app.commands.asOfNow() }
}
