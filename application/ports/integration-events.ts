import type { Environment } from '../../domain/kernel/ids.ts'
import { SafeError } from './safe-error.ts'

/** A fact of the log as other systems see it. It holds no personal data, no sealed value and no secret. */
export interface IntegrationEvent {
  /** Id of the event in the log: the same fact always has the same one. */
  readonly id: string
  /** What happened, for example `payroll.file_received`. */
  readonly type: string
  readonly environment: Environment
  readonly tenantId: string
  /** JSON text of the whole message. */
  readonly text: string
}

/** The channel does not take this event, whatever is done; others may pass. */
export class IntegrationEventRefused extends SafeError {
  constructor(event: Pick<IntegrationEvent, 'id' | 'type'>, why: string) {
    super(`The integration event ${event.type} of ${event.id} is refused: ${why}`)
    this.name = 'IntegrationEventRefused'
  }
}

/** Where integration events are published to. Nothing in it is needed by the service itself. */
export interface IntegrationEventChannel {
  /** Whether the channel exists; one that does not holds nothing of what was published before. */
  exists(): Promise<boolean>
  create(): Promise<void>
  /**
   * Publishes one event; the same id again within the channel's memory is the same message.
   * @throws until it is stored; {@link IntegrationEventRefused} when it never will be.
   */
  publish(event: IntegrationEvent): Promise<void>
  /** Whether publishing may work now. */
  isAvailable(): boolean
  /** Resolves when publishing may work; with the signal's abort at the latest. */
  available(signal: AbortSignal): Promise<void>
  /** Hears when it went away: it may come back without what it held. @returns how to stop. */
  onLost(listener: () => void): () => void
}
